"""What the measurements share: the servers that scripts/bench started, the program, pgbench, medians."""
import json
import os
import re
import shlex
import statistics
import subprocess
import sys

ROOT = os.environ["LL_ROOT"]
FOLDER = os.environ["LL_DIR"]
PROGRAM = os.environ["BENCH_PROGRAM"]
PG_BIN = os.environ["LL_PG_BIN"]
PG_DIR = os.environ["LL_PG_DIR"]
DATABASE = os.environ["BENCH_DATABASE"]
PLAIN = "-c jit=off -c timezone=UTC -c client_min_messages=warning"
# As the sessions of the pool are set.
SESSION = PLAIN + " -c enable_seqscan=off -c enable_indexonlyscan=off -c plan_cache_mode=force_generic_plan"


def fail(sentence):
    sys.exit(f"bench: {sentence}")


def parse(parser):
    """What was given; or the end, when scripts/bench only asks whether that can be used, before it starts anything."""
    given = parser.parse_args()
    if "BENCH_ARGUMENTS_ONLY" in os.environ:
        sys.exit(75)
    return given


def progress(text):
    """One line, written over; on a terminal only."""
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def settings(role):
    """Environment of the program for a role."""
    return dict(os.environ,
                LEDGERLOCK_POSTGRES_URL=f"postgresql:///{DATABASE}?host={PG_DIR}&user={role}",
                LEDGERLOCK_REDIS_URL="unix://" + os.environ["LL_REDIS_SOCK"])


def run(words, env=None, text=None):
    """Standard output of a command that must succeed."""
    done = subprocess.run(words, env=env, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        fail(f"{shlex.join(words[:4])} ended with {done.returncode}: {done.stdout[-600:]}{done.stderr[-1200:]}")
    return done.stdout


def bench(mode, *flags):
    """The document of one `ledgerlock bench`."""
    return json.loads(run([PROGRAM, "bench", mode, "--json", *map(str, flags)], settings("ledgerlock_owner")))


def rate_of(document):
    return document["result"][document["load"]["unit"] + "_per_s"]


def psql_words(user="postgres"):
    return [f"{PG_BIN}/psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", PG_DIR, "-U", user, "-d", DATABASE]


def psql(sql, user="postgres"):
    return run([*psql_words(user), "-c", sql]).strip()


def psql_file(path, **variables):
    words = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
    return run([*psql_words("ledgerlock_owner"), *words, "-f", path]).strip()


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
        return line.strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def pgbench(script, clients, *flags, session=SESSION):
    """Runs a script; (transactions, seconds that they took, connecting left out)."""
    path = os.path.join(FOLDER, "tmp", "pgbench.sql")
    with open(path, "w", encoding="ascii") as file:
        file.write(script)
    env = dict(os.environ, PGOPTIONS=session)
    out = run([f"{PG_BIN}/pgbench", "-n", "-M", "prepared", "-h", PG_DIR, "-U", "ledgerlock_owner", "-c", str(clients),
               "-j", str(min(clients, os.cpu_count())), "-f", path, *map(str, flags), DATABASE], env)
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


def machine(document):
    """What a result must say about where it was measured."""
    return {key: document[key] for key in ("machine", "versions", "settings")}


def write(path, document):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
