"""`scripts/bench cards`: payments by card at the stand-in gateway, which answers after 300 ms. Captures a second of the pool, in turn
with libcurl alone, with one call at a time and with node; the memory of a worker with thousands of calls under way; many buyers
of few units; how long answers that were lost stay unknown once the gateway is well. The tables and the witness of the gateway
must agree, and no charge may have been captured twice: else the measurement fails."""
import json
import os
import shutil
import subprocess
import time
import urllib.request

import limits
import tools

RATE_TARGET, LIMIT_TARGET, MEMORY_TARGET_MIB, RESOLVED_TARGET_S = 2000, 0.7, 64, 5
KEY_FILE = os.path.join(tools.FOLDER, "tmp", "gateway_key")
SYNCHRONOUS_CALLS = 10
LOOK_S = 0.1
LONG_MS = 300000  # longer than a call may take here
AWAY_S = 5  # the gateway is, for the pool that then finds it again
PATIENCE_S = 300
POOL, LIBCURL, SINGLE, NODE = "the pool", "libcurl alone", "one call at a time", "node"
OPEN = "SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown')"
CARDS = """UPDATE users SET card_customer = 'cus_bench_' || user_id, card_method = 'pm_bench_' || user_id;
           INSERT INTO events (event, user_id, reason)
           SELECT 'pays_with', user_id, card_customer || ' ' || card_method FROM users ORDER BY user_id"""


def flags(parser):
    parser.add_argument("--rows", type=int, default=20000, help="payments of a round (default 20000)")
    parser.add_argument("--rounds", type=int, default=3, help="medians are over these (default 3)")
    parser.add_argument("--workers", type=int, default=2, help="of payments, and processes of libcurl (default 2)")
    parser.add_argument("--calls", type=int, default=500, help="under way in each of them (default 500)")
    parser.add_argument("--latency-ms", type=int, default=300, help="of the gateway (default 300)")
    parser.add_argument("--many-calls", type=int, default=2000, help="under way where memory is measured (default 2000)")
    parser.add_argument("--buyers", type=int, default=1000, help="default 1000")
    parser.add_argument("--units", type=int, default=100, help="that they want to buy (default 100)")
    parser.add_argument("--unknowns", type=int, default=10000, help="answers that are lost (default 10000)")
    parser.add_argument("--only", choices=list(PARTS), help="leave out the others")


# ---- the gateway -----------------------------------------------------------------------------------------------------

class Gateway:
    """The stand-in with a journal of its own, ended with the block. Programs find it by their settings."""

    def __init__(self, **behaviour):
        self.journal, self.address = os.path.join(tools.FOLDER, "tmp", "gateway_journal"), "127.0.0.1:0"
        self.behaviour = behaviour

    def start(self, **behaviour):
        """At the address that it had before, with what it has captured."""
        words = [word for name, value in behaviour.items() for word in ("--fault", f"{name}={value}")]
        self.process = subprocess.Popen([os.path.join(os.path.dirname(tools.PROGRAM), "ledgerlock_gateway"), "--journal", self.journal,
                                         "--listen", self.address, *words], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.address = self.url.removeprefix("http://")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        self.start(**self.behaviour)
        with open(os.open(KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write("sk_test_bench\n")
        os.environ.update(LEDGERLOCK_GATEWAY_URL=self.url, LEDGERLOCK_GATEWAY_KEY_FILE=KEY_FILE)
        return self

    def __exit__(self, *_):
        self.kill()
        os.unlink(self.journal)

    def ask(self, path, form=None):
        with urllib.request.urlopen(f"{self.url}/_/{path}", form.encode() if form else None, timeout=60) as answer:
            return json.load(answer)

    def check(self, captures):
        """Fails unless it has captured as many charges, and each once."""
        seen = self.ask("witness?brief=1")
        if seen["captures"] != captures or seen["duplicates"]:
            tools.fail(f"{captures} captures are told of, the gateway has {seen['captures']}, and of these twice: {seen['duplicates']}")


# ---- payments ----------------------------------------------------------------------------------------------------------

def load_users(rows):
    """So many users with a card, and a period each that is due."""
    tools.bench("billing", "--load-only", "--rows", rows)
    tools.psql(CARDS, "ledgerlock_migrate")


def load(rows):
    """So many users with a card and a period that is planned to be paid by it."""
    load_users(rows)
    tools.run([tools.PROGRAM, "run", "--once", "--log-level", "warn", "--jobs", "billing"], tools.settings("ledgerlock_worker"))
    if int(tools.psql(OPEN)) != rows:
        tools.fail(f"{tools.psql(OPEN)} payments are planned, not {rows}")
    tools.psql("VACUUM ANALYZE")
    tools.psql("CHECKPOINT")


def await_count(pool, query, wanted, each=None):
    """Until the query counts as many. each: is called meanwhile."""
    session, end = tools.Session(), time.monotonic() + PATIENCE_S
    while (found := int(session.ask(query))) != wanted:
        pool.check()
        if each:
            each()
        if time.monotonic() > end:
            tools.fail(f"after {PATIENCE_S} s: {found}, not {wanted}: {query}")
        time.sleep(LOOK_S)
    session.close()


def captured(gateway, rows):
    """Seconds from the begin of the first transaction that sent a payment to the COMMIT of the last capture."""
    found, paid, seconds = tools.psql(
        "SELECT count(*), (SELECT count(*) FROM charges WHERE state = 'paid'),"
        " extract(epoch FROM max(pg_xact_commit_timestamp(xmin)) - min(first_sent_at)) FROM payments WHERE state = 'captured'").split("|")
    if int(found) != rows or int(paid) != rows:
        tools.fail(f"of {rows} payments {found} are captured, and {paid} periods paid")
    gateway.check(rows)
    tools.run([tools.PROGRAM, "audit", "--lag", "1000d"], tools.settings("ledgerlock_migrate"))
    return float(seconds)


def pool_of(a, calls, *flags):
    return tools.Pool("--jobs", "payments", "--payments", a.workers, "--gateway-calls", calls, *flags)


# ---- captures a second -------------------------------------------------------------------------------------------------

def cpu_s(pool, gateway):
    return dict(pool.cpu_s(), gateway=tools.tree_cpu_s(gateway.process.pid))


def measure_pool(a, costs):
    load(a.rows)
    with Gateway(latency_ms=a.latency_ms) as gateway, pool_of(a, a.calls) as pool:
        before = dict(cpu_s(pool, gateway), pool=0)
        await_count(pool, OPEN, 0)
        after = cpu_s(pool, gateway)
        seconds = captured(gateway, a.rows)
    costs.append({name: (after[name] - before[name]) / a.rows * 1e6 for name in before})
    return a.rows / seconds


def measure_others(a, words, calls, processes):
    """Succeeded calls a second of programs that are started together, of which each prints what it has done."""
    with Gateway(latency_ms=a.latency_ms) as gateway:
        words = [str(word).replace("URL", gateway.url) for word in words]
        env = tools.settings("ledgerlock_migrate")
        started = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        printed = [json.loads(process.communicate()[0]) for process in started]
        found = [document.get("calls", document) for document in printed]
        if any(document["succeeded"] != calls for document in found):
            tools.fail(f"not all of {calls} calls have succeeded: {found}")
        gateway.check(calls * processes)
    return calls * processes / max(document["seconds"] for document in found)


def measure_libcurl(a, calls, in_flight):
    words = [tools.PROGRAM + "-bench", "calls", "--json", "--calls", calls, "--in-flight", in_flight]
    return measure_others(a, words, calls, a.workers)


def part_captures(a, judge):
    contest, costs = judge.contest, []
    contest.enter(POOL, lambda: measure_pool(a, costs))
    contest.enter(LIBCURL, lambda: measure_libcurl(a, a.rows // a.workers, a.calls))
    contest.enter(SINGLE, lambda: measure_libcurl(a, SYNCHRONOUS_CALLS, 1))
    if shutil.which("node"):
        words = ["node", f"{tools.ROOT}/labs/bench/promises.mjs", "URL", KEY_FILE, a.rows, a.calls * a.workers]
        contest.enter(NODE, lambda: measure_others(a, words, a.rows, 1))
    else:
        tools.tell("node is left out: there is none on this machine")
    contest.run(a.rounds)
    judge.say("captures a second", tools.spread(contest.rates[POOL]), RATE_TARGET, "{:,.0f}")
    judge.say(f"calls a second of libcurl alone, {a.workers} processes with {a.calls} each", tools.spread(contest.rates[LIBCURL]), None, "{:,.0f}")
    judge.ratio("captures", POOL, LIBCURL, LIMIT_TARGET)
    judge.ratio("captures", POOL, SINGLE, None)
    if NODE in contest.rates:
        judge.say(f"calls a second of node, {a.calls * a.workers} promises", tools.spread(contest.rates[NODE]), None, "{:,.0f}")
        judge.ratio("captures", POOL, NODE, None)
    for name in costs[0]:
        judge.say(f"CPU of a capture, us: {name}", tools.spread([cost[name] for cost in costs]), None, "{:.0f}")
    return {"rates": contest.rates, "cpu_us_per_capture": costs}


# ---- memory --------------------------------------------------------------------------------------------------------------

def peaks_mib(pool):
    """The most that each process of the pool has had in memory so far."""
    pid = pool.process.pid
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = file.read().split()
    lines = [line for child in children for line in open(f"/proc/{child}/status", encoding="ascii")]
    return [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]


def part_memory(a, judge):
    """The gateway is so slow that all calls that may be are under way."""
    all_calls = a.many_calls * a.workers
    most = {"calls": 0, "mib": 0}
    tools.progress(f"{a.many_calls} calls under way in a worker")
    load(3 * all_calls)
    with Gateway(latency_ms=30 * a.latency_ms) as gateway, pool_of(a, a.many_calls) as pool:
        def look():
            most["calls"] = max(most["calls"], gateway.ask("calls")["in_flight"] - 1)
            most["mib"] = max([most["mib"], *peaks_mib(pool)])
        await_count(pool, OPEN, 0, look)
        captured(gateway, 3 * all_calls)
    judge.say(f"calls under way at once, of {all_calls:,} that may be", tools.spread([most["calls"]]), None, "{:,.0f}")
    judge.say("peak memory of a worker with them, MiB", tools.spread([most["mib"]]), MEMORY_TARGET_MIB, "{:.1f}", below=True)
    return most


# ---- buyers ----------------------------------------------------------------------------------------------------------------

def part_buyers(a, judge):
    """All order at once, with the same right to few units."""
    tools.progress(f"{a.buyers} buyers of {a.units} units")
    load_users(a.buyers)
    tools.psql("INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)"
               f" VALUES ('few', {a.units}, {a.units}, 100, 'USD')", "ledgerlock_migrate")
    with Gateway(latency_ms=a.latency_ms) as gateway, \
            tools.Pool("--jobs", "orders,payments", "--payments", a.workers, "--gateway-calls", a.calls) as pool:
        await_count(pool, "SELECT count(*) FROM live_workers WHERE job = 'orders'", 1)
        tools.psql(f"SELECT count(place_order(n, 'buyer', '[{{\"sku\": \"few\", \"qty\": 1}}]')) FROM generate_series(1, {a.buyers}) AS n")
        await_count(pool, "SELECT count(*) FROM orders WHERE state IN ('pending', 'paying')", 0)
        paid, refused, held, seconds = tools.psql(
            "SELECT count(*) FILTER (WHERE state = 'fulfilled' AND by_card), count(*) FILTER (WHERE state = 'rejected'),"
            " (SELECT sum(held) FROM stock), extract(epoch FROM max(decided_at) - min(placed_at)) FROM orders").split("|")
        gateway.check(int(paid))
        tools.run([tools.PROGRAM, "audit", "--lag", "1000d"], tools.settings("ledgerlock_migrate"))
    found = {"paid": int(paid), "refused": int(refused), "held": int(held), "seconds": float(seconds)}
    judge.say(f"units that {a.buyers:,} buyers by card have paid, of {a.units}", tools.spread([found["paid"]]), a.units, "{:d}")
    judge.say("buyers who were refused", tools.spread([found["refused"]]), a.buyers - a.units, "{:d}")
    judge.say("units that are held at the end", tools.spread([found["held"]]), 1, "{:d}", below=True)
    judge.say("seconds until all were decided", tools.spread([found["seconds"]]), None)
    return found


# ---- unknown ---------------------------------------------------------------------------------------------------------------

def part_unknowns(a, judge):
    """The gateway captures each payment at once, and dies before it answers. Then it is back, for a pool as it is shipped."""
    tools.progress(f"{a.unknowns} answers are lost")
    load(a.unknowns)
    with Gateway(latency_ms=LONG_MS, run_at=0) as gateway:
        with pool_of(a, a.unknowns // a.workers + 1, "--gateway-timeout-ms", LONG_MS) as pool:
            await_count(pool, "SELECT count(*) FROM payments WHERE state = 'sent'", a.unknowns)
            while gateway.ask("witness?brief=1")["captures"] < a.unknowns:  # a row is sent before its call is
                time.sleep(LOOK_S)
            gateway.kill()
            await_count(pool, "SELECT count(*) FROM payments WHERE state = 'unknown'", a.unknowns)
        with pool_of(a, a.calls) as pool:
            time.sleep(AWAY_S)
            gateway.start(latency_ms=a.latency_ms)
            begun = time.monotonic()
            await_count(pool, OPEN, 0)
            seconds = time.monotonic() - begun
        captured(gateway, a.unknowns)
    calls = int(tools.psql("SELECT max(calls) FROM payments"))
    judge.say(f"seconds until {a.unknowns:,} lost answers are known again", tools.spread([seconds]), RESOLVED_TARGET_S, below=True)
    judge.say("calls of a payment at most", tools.spread([calls]), None, "{:d}")
    return {"seconds": seconds, "calls_of_a_payment": calls}


PARTS = {"captures": part_captures, "memory": part_memory, "buyers": part_buyers, "unknowns": part_unknowns}


def main(a):
    judge, found = limits.Judge(limits.Contest()), {}
    for name, part in PARTS.items():
        if a.only in (None, name):
            found[name] = part(a, judge)
    tools.PROGRESS.clear()
    limits.print_verdicts(judge.rows)
    about = tools.machine(tools.bench("billing", "--load-only", "--rows", 100))
    tools.write(a.json, dict(about, kind="cards", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"], targets=judge.rows, **found))
