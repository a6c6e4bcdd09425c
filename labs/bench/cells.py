"""`scripts/bench cells`: what a charge costs with one cell and with more. The same subscriptions are dealt to 1, 2, 4 and 8 cells, one pool
works them all, and its CPU, that of PostgreSQL and that of Redis is counted for each charge. The cells are databases of one server; with
--citus they are schemas of a cluster, on one node and on two."""
import os
import subprocess
import time

import tools

LOOK_S = 0.5
SKUS = 10
LAG_OF_ANY = "73000d"  # no row is late
MOST = 1.1  # of the CPU of a charge with one cell
DUE = ("SELECT EXISTS (SELECT FROM {schema}.subscriptions WHERE state IN ('active', 'past_due') AND next_due_at <= now())::int")
CHARGES = "SELECT count(*) FROM {schema}.charges WHERE state <> 'declined'"


def flags(parser):
    parser.add_argument("--cells", default="1,2,4,8", help="how many, one measurement each (default 1,2,4,8)")
    parser.add_argument("--subscriptions", type=int, default=80000, help="of all cells together (default 80000)")
    parser.add_argument("--workers", type=int, default=4, help="of billing (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="(default 3)")
    parser.add_argument("--citus", metavar="URL", help="a superuser's at the coordinator of a cluster with two nodes on this machine, whose "
                        "cells ledgerlock_bench_N are dropped")


class Databases:
    """Cells that are databases of the server of this run."""

    def __init__(self, _):
        self.places = [""]
        self.roots = [int(os.environ["LL_PG_PID"])]

    def urls(self, cells, role):
        return " ".join(f"{n}=postgresql:///bench_cell_{n}?host={tools.PG_DIR}&user={role}" for n in range(1, cells + 1))

    def settings(self, cells, role="ledgerlock_worker"):
        return dict(os.environ, LEDGERLOCK_CELLS_URLS=self.urls(cells, role), LEDGERLOCK_REDIS_URL="unix://" + os.environ["LL_REDIS_SOCK"])

    def make(self, cells, _):
        for n in range(1, cells + 1):
            tools.psql(f"CREATE DATABASE bench_cell_{n}")
            tools.run([*tools.psql_words(database=f"bench_cell_{n}"), "-f", f"{tools.ROOT}/config/postgres/10-roles.sql"])
        tools.run([tools.PROGRAM, "migrate"], self.seeder(cells))

    def drop(self, cells):
        for n in range(1, cells + 1):
            tools.psql(f"DROP DATABASE IF EXISTS bench_cell_{n}")

    def seeder(self, cells):
        return self.settings(cells, "ledgerlock_migrate")

    def ask(self, cell, sql):
        return int(tools.psql(sql.format(schema="ledgerlock"), database=f"bench_cell_{cell}"))

    def vacuum(self, cell):
        tools.psql("VACUUM ANALYZE", database=f"bench_cell_{cell}")


class Cluster:
    """Cells that are schemas of a Citus cluster: all on one node, or in turn on two."""

    def __init__(self, url):
        self.url = url
        self.places = ["one node", "two nodes"]
        nodes = self.psql(url, "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE shouldhaveshards AND noderole = 'primary'"
                          " AND groupid > 0 ORDER BY nodeport")
        self.nodes = nodes.split()[:2]
        folders = [self.psql(url, "SHOW data_directory")]
        folders += self.psql(url, "SELECT result FROM run_command_on_workers('SHOW data_directory')").split()
        self.roots = [self.pid_of(folder) for folder in folders]

    @staticmethod
    def pid_of(folder):
        with open(f"{folder}/postmaster.pid", encoding="ascii") as file:
            return int(file.readline())

    @staticmethod
    def psql(url, sql):
        return tools.run([f"{tools.PG_BIN}/psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]).rstrip()

    def settings(self, _):
        return dict(os.environ, LEDGERLOCK_CELLS_CITUS=self.url, LEDGERLOCK_POSTGRES_SCHEMA="ledgerlock_bench",
                    LEDGERLOCK_REDIS_URL="unix://" + os.environ["LL_REDIS_SOCK"])

    seeder = settings

    def make(self, cells, place):
        for n in range(1, cells + 1):
            tools.run([tools.PROGRAM, "cells", "add", str(n)], self.settings(cells))
            node = self.nodes[n % 2 if place == "two nodes" else 0]
            tools.run([tools.PROGRAM, "cells", "move", str(n), node], self.settings(cells))

    def drop(self, cells):
        for n in range(1, cells + 1):
            self.psql(self.url, f"DROP SCHEMA IF EXISTS ledgerlock_bench_{n} CASCADE")

    def ask(self, cell, sql):
        return int(self.psql(self.url, sql.format(schema=f"ledgerlock_bench_{cell}")))

    def vacuum(self, cell):
        tables = self.psql(self.url, f"SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind IN ('r', 'p') AND"
                           f" relnamespace = 'ledgerlock_bench_{cell}'::regnamespace")
        self.psql(self.url, f"VACUUM ANALYZE {tables}")


def seed(a, world, cells, place):
    world.drop(cells)
    world.make(cells, place)
    for n in range(1, cells + 1):
        tools.run([tools.PROGRAM, "seed", "--cells", str(n), "--seed", str(n), "--users", str(a.subscriptions // cells // 4),
                   "--subscriptions", str(a.subscriptions // cells), "--skus", str(SKUS), "--orders", "0"], world.seeder(cells))
        world.vacuum(n)


def work(a, world, cells):
    """One pool until nothing is due: charges, seconds, CPU of each part in seconds."""
    log = os.path.join(tools.FOLDER, "tmp", "cells.log")
    redis, left, begun = int(os.environ["LL_REDIS_PID"]), list(range(1, cells + 1)), time.monotonic()
    before = {"postgres": sum(map(tools.tree_cpu_s, world.roots)), "redis": tools.tree_cpu_s(redis)}
    words = [tools.PROGRAM, "run", "--jobs", "billing", "-w", str(a.workers), "--log-level", "warn"]
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(words, env=world.settings(cells), stdout=out, stderr=out) as pool:
        while left:
            if pool.poll() is not None:
                with open(log, encoding="utf-8") as file:
                    tools.fail(f"the pool ended with {pool.returncode}: {file.read()[-600:]}")
            time.sleep(LOOK_S)
            left = left if world.ask(left[0], DUE) else left[1:]
        seconds = time.monotonic() - begun
        cpu = {"pool": tools.tree_cpu_s(pool.pid), "redis": tools.tree_cpu_s(redis) - before["redis"]}
        pool.terminate()
        pool.wait()
    time.sleep(1)  # until the sessions have ended, whose time their servers count then
    cpu["postgres"] = sum(map(tools.tree_cpu_s, world.roots)) - before["postgres"]
    return sum(world.ask(n, CHARGES) for n in range(1, cells + 1)), seconds, cpu


def measure(a, world, cells, place):
    seed(a, world, cells, place)
    charges, seconds, cpu = work(a, world, cells)
    begun = time.monotonic()
    tools.run([tools.PROGRAM, "audit", "--lag", LAG_OF_ANY], world.settings(cells))
    found = {"charges_per_s": charges / seconds, "audit_s": time.monotonic() - begun,
             **{f"{name}_cpu_us_per_charge": 1e6 * s / charges for name, s in cpu.items()}}
    found["cpu_us_per_charge"] = sum(1e6 * s / charges for s in cpu.values())
    tools.tell(f"{cells} cells{', ' + place if place else ''}: {charges:,} charges, {found['charges_per_s']:,.0f} a second, "
               f"{found['cpu_us_per_charge']:.1f} us of CPU each, of these PostgreSQL {found['postgres_cpu_us_per_charge']:.1f}; "
               f"audit {found['audit_s']:.2f} s")
    world.drop(cells)
    return found


def main(a):
    world, counts, found = (Cluster(a.citus) if a.citus else Databases(a)), [int(n) for n in a.cells.split(",")], {}
    for number in range(a.rounds):
        for place in world.places:
            for cells in counts:
                tools.progress(f"round {number + 1} of {a.rounds}: {cells} cells {place}")
                found.setdefault(f"{cells} cells {place}".rstrip(), []).append(measure(a, world, cells, place))
    result = {name: {key: tools.spread([r[key] for r in rounds]) for key in rounds[0]} for name, rounds in found.items()}
    first = found[f"{counts[0]} cells {world.places[0]}".rstrip()]
    for name, rounds in found.items():
        ratio = tools.ratios([r["cpu_us_per_charge"] for r in rounds], [r["cpu_us_per_charge"] for r in first])
        result[name].update(cpu_ratio=ratio, met=ratio["median"] <= MOST)
        tools.show(name, result[name])
    about = tools.machine(tools.bench("billing", "--load-only", "--rows", 100))
    tools.write(a.json, dict(about, kind="cells", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"], **result))
