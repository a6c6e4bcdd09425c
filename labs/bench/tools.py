"""Shared by the measurements: the servers that scripts/bench started, the program, pgbench, medians."""
import argparse
import atexit
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.environ["LL_ROOT"]
FOLDER = os.environ["LL_DIR"]
PROGRAM = os.environ["BENCH_PROGRAM"]
PG_BIN = os.environ["LL_PG_BIN"]
PG_DIR = os.environ["LL_PG_DIR"]
DATABASE = os.environ["BENCH_DATABASE"]
PLAIN = "-c search_path=ledgerlock,pg_temp -c jit=off -c timezone=UTC -c client_min_messages=warning"
# As the sessions of the pool are set.
SESSION = PLAIN + " -c enable_seqscan=off -c enable_indexonlyscan=off -c plan_cache_mode=force_generic_plan"
ORDERS = {"sign-up": (), "shuffled": ("--shuffled",)}  # in which rows lie, and the flags for it
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def fail(sentence):
    sys.exit(f"bench: {sentence}")


def parser_of(mode, about):
    """A parser with the flag that every measurement has."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {mode}", description=about)
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def parse(parser, words):
    """The parsed arguments; ends the program when scripts/bench only checks them, before it starts a server."""
    given = parser.parse_args(words)
    if "BENCH_ARGUMENTS_ONLY" in os.environ:
        sys.exit(75)
    return given


class Progress:
    """The measurement at hand, its time until now, and the time that all of it still takes: on standard error, a line that moves on a
    terminal, elsewhere a line every ten seconds. A timer tells it, so that no measurement has to."""

    def __init__(self):
        self.text, self.since, self.left_s, self.begun = "", 0.0, None, None
        self.moves = sys.stderr.isatty()
        self.pause_s = 1 if self.moves else 10

    def step(self, text, share):
        self.since = time.monotonic()
        if self.begun is None:
            self.begun = self.since
            signal.signal(signal.SIGALRM, lambda *_: self.show())
            signal.setitimer(signal.ITIMER_REAL, self.pause_s, self.pause_s)
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # Python ends without a handler
        self.text = text
        self.left_s = (self.since - self.begun) * (1 - share) / share if share else None
        if self.moves:
            self.show()

    def show(self):
        if not self.text:
            return
        took = time.monotonic() - self.since
        line = f"{self.text}, {took:.0f} s"
        if self.left_s is not None:
            line += f"; {max(1, (self.left_s - took) / 60):.0f} min still"
        # The timer may come while this program prints: nothing of it is buffered.
        os.write(2, (f"\r\033[K{line}" if self.moves else f"{line}\n").encode())

    def clear(self):
        self.text = ""
        if self.moves:
            os.write(2, b"\r\033[K")


PROGRESS = Progress()


def progress(text, share=None):
    """A step begins; share: how much of the whole measurement is done."""
    PROGRESS.step(text, share)


def tell(line):
    """A result, as soon as it is there."""
    PROGRESS.clear()
    print(line, flush=True)


def settings(role, database=DATABASE):
    """Environment of the program for a role."""
    return dict(os.environ,
                LEDGERLOCK_POSTGRES_URL=f"postgresql:///{database}?host={PG_DIR}&user={role}",
                LEDGERLOCK_REDIS_URL="unix://" + os.environ["LL_REDIS_SOCK"],
                LEDGERLOCK_BILLING_CATCH_UP_MAX="1000000")  # a benchmark that lasts has rows that are far behind


def run(words, env=None, text=None):
    """Standard output of a command that must succeed."""
    done = subprocess.run(words, env=env, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        fail(f"{shlex.join(words[:4])} ended with {done.returncode}: {done.stdout[-600:]}{done.stderr[-1200:]}")
    return done.stdout


def bench(mode, *flags):
    """The document of one `ledgerlock-bench`."""
    return json.loads(run([PROGRAM + "-bench", mode, "--json", *map(str, flags)], settings("ledgerlock_migrate")))


def rate_of(document):
    return document["result"][document["load"]["unit"] + "_per_s"]


def cost_of(document):
    """Microseconds of CPU of one row: of workers, PostgreSQL and Redis; a server without work for it is left out."""
    row = document["load"]["unit"][:-1]
    costs = {name: document["result"][f"{name}_cpu_us_per_{row}"] for name in ("workers", "postgres", "redis")}
    return {name: us for name, us in costs.items() if not isinstance(us, str)}


def cost_text(documents):
    return costs_text([cost_of(document) for document in documents])


def costs_text(costs):
    """Several of them as words, by their medians."""
    return ", ".join(f"{name} {median([c[name] for c in costs]):.1f}" for name in costs[0]) + " us"


def psql_words(user="postgres", database=DATABASE):
    return [f"{PG_BIN}/psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", PG_DIR, "-U", user,
            "-d", f"dbname={database} options='-c search_path=ledgerlock,pg_temp'"]


def psql(sql, user="postgres", database=DATABASE):
    return run([*psql_words(user, database), "-c", sql]).rstrip()


def psql_file(path, **variables):
    words = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
    return run([*psql_words("ledgerlock_migrate"), *words, "-f", path]).rstrip()


class Session:
    """One psql that stays connected."""

    def __init__(self, user="postgres"):
        self.process = subprocess.Popen(psql_words(user), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, sql):
        """The first line of the answer to a query that has one."""
        self.process.stdin.write(sql + ";\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            fail(f"psql ended at: {sql}")
        return line.rstrip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tree_cpu_s(root):
    """CPU of a process, of those that it has waited for, and of its living descendants."""
    stats, wanted, grown = {}, {root}, True
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
            stats[int(name)] = (int(words[1]), sum(map(int, words[11:15])))
        except (OSError, ValueError):
            continue
    while grown:
        more = {pid for pid, (parent, _) in stats.items() if parent in wanted} - wanted
        wanted, grown = wanted | more, bool(more)
    return sum(stats[pid][1] for pid in wanted if pid in stats) * TICK_S


class Pool:
    """`ledgerlock run`, ended with the block. log: a file of its own, where several run at once."""

    def __init__(self, *flags, log="pool.log"):
        self.words = [PROGRAM, "run", "--log-level", "warn", *map(str, flags)]
        self.log = os.path.join(FOLDER, "tmp", log)

    def __enter__(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.words, env=settings("ledgerlock_worker"), stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.check()
        self.process.terminate()
        self.process.wait()

    def check(self):
        """Fails if it has ended by itself."""
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8") as log:
                fail(f"the pool ended with {self.process.returncode}: {log.read()[-600:]}")

    def cpu_s(self):
        """CPU so far: of the pool, of PostgreSQL, of Redis."""
        return {"pool": tree_cpu_s(self.process.pid), "postgres": tree_cpu_s(int(os.environ["LL_PG_PID"])),
                "redis": tree_cpu_s(int(os.environ["LL_REDIS_PID"]))}

    def cores_used(self, seconds):
        """Cores that pool and servers use from now on, each by itself and all together."""
        before, begun = self.cpu_s(), time.monotonic()
        time.sleep(seconds)
        took, after = time.monotonic() - begun, self.cpu_s()
        cores = {name: (after[name] - before[name]) / took for name in before}
        return dict(cores, all=sum(cores.values()))


def pgbench(script, clients, *flags, session=SESSION, database=DATABASE):
    """Runs a script; (transactions, seconds that they took, connecting left out)."""
    path = os.path.join(FOLDER, "tmp", "pgbench.sql")
    with open(path, "w", encoding="ascii") as file:
        file.write(script)
    env = dict(os.environ, PGOPTIONS=session)
    out = run([f"{PG_BIN}/pgbench", "-n", "-M", "prepared", "-h", PG_DIR, "-U", "ledgerlock_migrate", "-c", str(clients),
               "-j", str(min(clients, os.cpu_count())), "-f", path, *map(str, flags), database], env)
    calls = int(re.search(r"actually processed: (\d+)", out).group(1))
    per_s = float(re.search(r"tps = ([\d.]+) \(without initial", out).group(1))
    return calls, calls / per_s


def median(values):
    return statistics.median(values)


def spread(values):
    """The median with how far the rounds lay apart."""
    return {"median": median(values), "lowest": min(values), "highest": max(values)}


def ratios(values, others):
    """The median by the median; the spread is that of the rounds, each of which has measured both."""
    each = [value / other for value, other in zip(values, others)]
    return {"median": median(values) / median(others), "lowest": min(each), "highest": max(each)}


def shown(value):
    """As a report prints it: a figure, a yes or no, or a median with its spread."""
    if isinstance(value, dict) and value["lowest"] == value["highest"]:
        return shown(value["median"])
    if isinstance(value, dict):
        return f"{shown(value['median'])}   ({shown(value['lowest'])} to {shown(value['highest'])})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.4f}" if abs(value) < 0.1 else f"{value:,.2f}"


def checkpoints():
    """How many were begun so far."""
    is_17 = int(psql("SHOW server_version_num")) >= 170000
    return int(psql("SELECT num_timed + num_requested FROM pg_stat_checkpointer" if is_17 else
                    "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"))


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(name, values, depth=0):
    """A result as indented lines."""
    tell("  " * depth + name)
    for key, value in values.items():
        label = key.replace("_", " ")
        if isinstance(value, dict) and "median" not in value:
            show(label, value, depth + 1)
        else:
            tell(f"{'  ' * (depth + 1) + label:<42}{shown(value):>14}")


def measure(kind, a, parts, path):
    """Measures each part and prints what it found, at once; writes all of it with what it was measured on."""
    found = {}
    for name, part in parts:
        found[name] = part(a)
        show(name, found[name])
    about = machine(bench("billing", "--load-only", "--rows", 100))
    write(path, dict(about, kind=kind, arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"], **found))


def machine(document):
    """The machine and the versions, for the head of a result."""
    return {key: document[key] for key in ("machine", "versions", "settings")}


def write(path, document):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
