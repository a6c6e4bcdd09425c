"""`scripts/bench --compare FOLDER`: the pool of this checkout and that of another, in turn and in rounds, each in a
database of its own on the same servers. Both rates are read from the tables in the same way, whatever either build
reports. "Both jobs together" is one run over subscriptions and orders of the same users, until all are done. "Locks" are
those of the library, as each build measures its own. The other checkout must be built (build/release). Its
`ledgerlock-bench`, or `ledgerlock bench` if it is older, loads the rows."""
import argparse
import json
import os
import subprocess

import limit
import tools

OTHER = "other"  # its database, and the prefix of its lock keys
CPU_TARGET = 1.0  # CPU of a row against that of the other build
TARGETS = {"billing": 1.0, "billing, shuffled": 1.0, "orders": 1.0, "hot SKU": None, "both jobs together": 1.05,
           "locks, 1 key": None, "locks, 100 keys": None, "locks, 1000 keys": None}


def folder(text):
    if not os.access(f"{text}/build/release/ledgerlock", os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} has no build/release/ledgerlock: build it first")
    return os.path.abspath(text)


def arguments():
    parser = tools.parser_of("compare", __doc__)
    parser.add_argument("folder", type=folder, metavar="FOLDER", help="checkout of the other build")
    parser.add_argument("--rows", type=int, default=200000, help="subscriptions (default 200000)")
    parser.add_argument("--orders", type=int, default=100000, help="orders and buyers (default 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="medians are over these (default 5)")
    parser.add_argument("--seconds", type=int, default=10, help="of billing over shuffled rows (default 10)")
    parser.add_argument("--batch", type=int, default=1000, help="rows of one transaction (default 1000)")
    parser.add_argument("--workers", type=int, default=3, help="of billing (default 3)")
    parser.add_argument("--order-workers", type=int, default=2, help="of orders and of the hot SKU (default 2)")
    parser.add_argument("--lock-seconds", type=int, default=3, help="of the locks (default 3)")
    parser.add_argument("--only", choices=list(PARTS), help="leave out the others")
    return tools.parse(parser)


TABLE = {"billing": "charges", "orders": "orders"}
EFFECT_AT = {"billing": "charged_at", "orders": "decided_at"}


def server_cpu_s(before=None):
    """CPU of the servers, so far or since then."""
    now = {"postgres": tools.tree_cpu_s(int(os.environ["LL_PG_PID"])),
           "redis": tools.tree_cpu_s(int(os.environ["LL_REDIS_PID"]))}
    return now if before is None else {name: now[name] - before[name] for name in now}


class Build:
    """A built checkout with a database of its own."""

    def __init__(self, name, program, database):
        self.name, self.database = name, database
        self.words = [program + "-bench"] if os.access(program + "-bench", os.X_OK) else [program, "bench"]
        self.program = program
        self.flags = tools.run([program, "run", "--help"])  # an older build refuses what it does not have

    def settings(self):
        of_test = os.environ.get("LEDGERLOCK_LOCKS_PREFIX", "lock:")
        found = dict(tools.settings("ledgerlock_owner", self.database),
                     LEDGERLOCK_LOCKS_PREFIX=of_test if self.database == tools.DATABASE else of_test + OTHER + ":")
        if "--catch-up-max" not in self.flags:
            del found["LEDGERLOCK_BILLING_CATCH_UP_MAX"]
        return found

    def make_database(self):
        tools.psql(f"DROP DATABASE IF EXISTS {self.database}", database="postgres")
        tools.psql(f"CREATE DATABASE {self.database} OWNER ledgerlock_owner", database="postgres")
        tools.psql("CREATE SCHEMA ledgerlock_bench AUTHORIZATION ledgerlock_owner", database=self.database)
        tools.run([self.program, "migrate"], self.settings())

    def bench(self, mode, *flags):
        return json.loads(tools.run([*self.words, mode, "--json", "--no-audit", *map(str, flags)], self.settings()))

    def psql(self, sql):
        return tools.psql(sql, database=self.database)

    def rate(self, *jobs):
        """Rows a second of the last run, as the tables tell, and nothing else was ever worked in this database since
        it was filled."""
        effects = " UNION ALL ".join(f"SELECT DISTINCT xmin AS xid, {EFFECT_AT[job]} AS at FROM ledgerlock.{TABLE[job]}"
                                     f" WHERE {EFFECT_AT[job]} IS NOT NULL" for job in jobs)
        seconds = float(self.psql(
            f"SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xid)) - min(at)) FROM ({effects}) AS t"))
        return sum(int(self.psql(limit.DONE[job])) for job in jobs) / seconds

    def run(self, *flags):
        """Works all that is due; a document with the CPU of the run, in all."""
        before = server_cpu_s()
        with subprocess.Popen([self.program, "run", "--once", "--log-level", "warn", *map(str, flags)],
                              env=self.settings(), stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            tools.fail(f"{self.name}: run --once ended with {process.returncode}")
        return dict(server_cpu_s(before), workers=used.ru_utime + used.ru_stime)

    def shuffle(self):
        """An older build cannot load rows shuffled: the tables are written anew in no order."""
        for table, key in (("users", "user_id"), ("subscriptions", "subscription_id")):
            self.psql(f"CREATE INDEX shuffled ON ledgerlock.{table} (hashint8({key}));"
                       f"CLUSTER ledgerlock.{table} USING shuffled; DROP INDEX ledgerlock.shuffled")
        self.psql("VACUUM ANALYZE ledgerlock.users, ledgerlock.subscriptions")
        self.psql("CHECKPOINT")


# ---- the parts: rates by mode, and the CPU of a row in microseconds where there are rows ---------------------------------

def of_pool(mode, rate, document):
    return {mode: (rate, tools.cost_of(document))}


def billing(build, a):
    document = build.bench("billing", "--rows", a.rows, "--batch", a.batch, "-w", a.workers)
    return of_pool("billing", build.rate("billing"), document)


def shuffled(build, a):
    build.bench("billing", "--load-only", "--steady", "--rows", a.rows)
    build.shuffle()
    document = build.bench("billing", "--steady", "--keep", "--seconds", a.seconds, "--batch", a.batch, "-w", a.workers)
    return of_pool("billing, shuffled", build.rate("billing"), document)


def orders(build, a):
    document = build.bench("orders", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)
    return of_pool("orders", build.rate("orders"), document)


def hot(build, a):
    document = build.bench("hot-sku", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)
    return of_pool("hot SKU", build.rate("orders"), document)


def together(build, a):
    build.bench("orders", "--load-only", "--rows", a.orders)
    build.psql(f"""INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at,
                                                         unit, next_due_at)
                   SELECT g, g % {a.orders // 2} + 1, 'plan-' || g, 100, 'USD', t.at, 'day', t.at
                     FROM generate_series(1, {a.rows}) AS g, LATERAL (SELECT now() - interval '1 hour'
                          - (hashint8extended(g, 1) & 4294967295) / 4294967296.0 * interval '20 hours') AS t (at)""")
    build.psql("VACUUM ANALYZE")
    build.psql("CHECKPOINT")
    workers = ("--billing", a.workers, "--orders", a.order_workers) if "--orders" in build.flags else ("-w", a.workers)
    used_s = build.run("--batch", a.batch, *workers)
    rows = a.rows + a.orders
    return {"both jobs together": (build.rate("billing", "orders"), {n: s / rows * 1e6 for n, s in used_s.items()})}


def locks(build, a):
    figures = build.bench("locks", "--seconds", a.lock_seconds, "--repetitions", 1)["locks"]
    return {f"locks, {keys}": (figures[f"{keys}: lock+unlock/s"], None) for keys in ("1 key", "100 keys", "1000 keys")}


PARTS = {"billing": billing, "billing, shuffled": shuffled, "orders": orders, "hot SKU": hot, "both jobs together": together,
         "locks": locks}


def measure(builds, a):
    """Rates and costs by mode and build; in every other round the other build is first."""
    rates, costs = {}, {}
    for number in range(a.rounds):
        for name, part in PARTS.items():
            for build in builds[:: -1 if number % 2 else 1]:
                if a.only not in (None, name):
                    continue
                tools.progress(f"round {number + 1} of {a.rounds}: {name}, {build.name}")
                for mode, (rate, cost) in part(build, a).items():
                    for found, value in ((rates, rate), (costs, cost)):
                        found.setdefault(mode, {b.name: [] for b in builds})[build.name].append(value)
    tools.progress("")
    return rates, costs


def judge(rates, costs):
    found = {}
    for mode, of_build in rates.items():
        ratio, target = tools.ratios(*of_build.values()), TARGETS[mode]
        found[mode] = dict(ratio, target=target, met=target is None or ratio["median"] >= target)
        if costs[mode][next(iter(of_build))][0] is not None:
            cpu = tools.ratios(*([sum(cost.values()) for cost in values] for values in costs[mode].values()))
            found[mode]["cpu"] = dict(cpu, target=CPU_TARGET, met=cpu["median"] <= CPU_TARGET)
    return found


def verdict(ratio, word):
    return "" if ratio["target"] is None else f"   wanted {word}{ratio['target']:.2f}: {'met' if ratio['met'] else 'MISSED'}"


def print_ratio(what, ratio, word):
    print(f"  {what:<34}{ratio['median']:>10.2f}{ratio['lowest']:>10.2f}{ratio['highest']:>10.2f}{verdict(ratio, word)}")


def print_report(rates, costs, ratios):
    for mode, of_build in rates.items():
        unit = "keys locked and unlocked a second" if mode.startswith("locks") else "rows a second"
        print(f"\n{mode + ', ' + unit:<54}\n{'':<36}{'median':>10}{'lowest':>10}{'highest':>10}")
        for name, values in of_build.items():
            cost = "" if costs[mode][name][0] is None else f"   CPU of a row: {tools.costs_text(costs[mode][name])}"
            print(f"  {name:<34}{tools.median(values):>10,.0f}{min(values):>10,.0f}{max(values):>10,.0f}{cost}")
        print_ratio("the one by the other", ratios[mode], "at least ")
        if "cpu" in ratios[mode]:
            print_ratio("CPU of a row by the other's", ratios[mode]["cpu"], "at most ")


def main():
    a = arguments()
    builds = [Build("this build", tools.PROGRAM, tools.DATABASE),
              Build("the other", f"{a.folder}/build/release/ledgerlock", OTHER)]
    builds[1].make_database()
    # The first to use the server's buffers and log pays for their pages.
    first = [build.bench("billing", "--rows", a.rows, "-w", a.workers) for build in builds]
    rates, costs = measure(builds, a)
    ratios = judge(rates, costs)
    print_report(rates, costs, ratios)
    tools.write(a.json, dict(tools.machine(first[0]), kind="compare", arguments=vars(a),
                             filesystem=os.environ["BENCH_FILESYSTEM"], rates=rates, ratios=ratios, costs=costs))


main()
