"""`scripts/bench --size`: what must not change as the data grows. The rate over a large table and a small one; one
pull over dead rows that an old snapshot keeps; a pool that has nothing to do; the delay of a row that comes due
while it is idle; an audit of many rows."""
import argparse
import os
import random
import subprocess
import time

import limit
import tools

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STEADY_DAYS = 36500  # how far `bench --steady` sets every row behind
NOTIFIED_POLL_MS = 10000  # so long that what is charged soon was not found by polling
NOTIFIED_TARGET_MS = 50
AUDIT_TARGET_S = 10
SETTLE_S = 12  # a session tells the statistics within ten seconds what it did, such as its start
RATIO_TARGET = 0.85


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench --size", description=__doc__)
    parser.add_argument("--rows", type=int, default=2000000, help="subscriptions of the large table (default 2000000)")
    parser.add_argument("--small-rows", type=int, default=100000, help="of the small one, and dead rows")
    parser.add_argument("--audit-rows", type=int, default=1000000, help="charges, and order lines (default 1000000)")
    parser.add_argument("--seconds", type=int, default=20, help="of each timed part (default 20)")
    parser.add_argument("--steady-seconds", type=int, default=60, help="of the rate when all pages were written: as "
                        "long as autovacuum rests, so that it comes once (default 60)")
    parser.add_argument("--rounds", type=int, default=1, help="of the large table and the small one (default 1)")
    parser.add_argument("--workers", type=int, default=4, help="for the rate (default 4)")
    parser.add_argument("--batch", type=int, default=1000, help="for the rate (default 1000)")
    parser.add_argument("--snapshot-seconds", type=int, default=300, help="age of the old snapshot (default 300)")
    parser.add_argument("--appear", type=int, default=30, help="rows that come due in an idle pool (default 30)")
    parser.add_argument("--poll-ms", type=int, default=1000, help="of the idle pool (default 1000)")
    parser.add_argument("--pool-flags", default="", help="more flags of `ledgerlock run`, as one word")
    parser.add_argument("--only", choices=[name for name, _ in PARTS], help="leave out the others")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return tools.parse(parser)


# ---- the rate over a large table -----------------------------------------------------------------------------------

def steady(a, seconds, *flags):
    return tools.bench("billing", "--steady", "--workers", a.workers, "--batch", a.batch, "--seconds", seconds,
                       "--no-audit", *flags)["result"]


def vacuums():
    """How many rounds of autovacuum the table of subscriptions has seen."""
    return int(tools.psql("SELECT autovacuum_count FROM pg_stat_all_tables "
                          "WHERE relid = 'ledgerlock.subscriptions'::regclass"))


def warm_up(a):
    """Until every row was charged since the load ended with a checkpoint: by then no page of them is new to the log."""
    begun = time.monotonic()
    while (left := int(tools.psql("SELECT count(*) FROM ledgerlock.subscriptions WHERE next_period_no = 0"))) > 0:
        tools.progress(f"warming up: {left} rows were not met yet")
        if steady(a, a.seconds, "--keep")["charges"] == 0:
            tools.fail(f"{left} rows are never charged")
    return time.monotonic() - begun


def measure_rates(a, rows):
    """Results of one load: right after its checkpoint, and when all pages were written since."""
    tools.progress(f"steady over {rows} rows")
    after_checkpoint = steady(a, a.seconds, "--rows", rows)
    seconds = warm_up(a)
    tools.progress(f"steady over {rows} rows, without a checkpoint before")
    begun, vacuumed = tools.checkpoints(), vacuums()
    result = steady(a, a.steady_seconds, "--keep")
    return after_checkpoint, dict(result, warm_up_seconds=seconds, checkpoints=tools.checkpoints() - begun,
                                  vacuums=vacuums() - vacuumed)


def rates(results):
    """Median and spread of what tells how fast, and why."""
    names = ("charges_per_s", "wal_bytes_per_charge", "wal_page_images_per_charge", "postgres_cpu_us_per_charge",
             "warm_up_seconds", "checkpoints", "vacuums")
    return {name: tools.spread([r[name] for r in results]) for name in names if name in results[0]}


def beside(large, small):
    """Both sizes, and the one by the other, round by round."""
    found = {"large": rates(large), "small": rates(small),
             "ratio": tools.ratios([r["charges_per_s"] for r in large], [r["charges_per_s"] for r in small])}
    return dict(found, target=RATIO_TARGET, met=found["ratio"]["median"] >= RATIO_TARGET)


def part_rate(a):
    large, small = [], []
    for _ in range(a.rounds):
        large.append(measure_rates(a, a.rows))
        small.append(measure_rates(a, a.small_rows))
    fresh, later = (beside([pair[i] for pair in large], [pair[i] for pair in small]) for i in (0, 1))
    return {"large_rows": a.rows, "small_rows": a.small_rows, "right_after_a_checkpoint": fresh, "steady": later}


# ---- one pull over dead rows ---------------------------------------------------------------------------------------

def time_pulls(seconds):
    """Latencies of billing_pull_due, one client, in milliseconds."""
    script = "\\set bucket random(0, 63)\n\\set limit 500\n" + limit.statement("billing_pull_due")
    log = os.path.join(tools.FOLDER, "tmp", "pulls")
    tools.pgbench(script, 1, "-T", seconds, "--log", f"--log-prefix={log}")
    times = []
    for name in os.listdir(os.path.dirname(log)):
        if name.startswith("pulls."):
            path = os.path.join(os.path.dirname(log), name)
            with open(path, encoding="ascii") as file:
                times += [int(line.split()[2]) / 1000 for line in file]
            os.remove(path)
    return {"pulls": len(times), "p50_ms": tools.quantile(times, 0.5), "p99_ms": tools.quantile(times, 0.99)}


def part_pull(a):
    tools.bench("billing", "--load-only", "--steady", "--rows", a.small_rows)
    fresh = time_pulls(a.seconds)
    old = tools.Session()
    old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledgerlock.subscriptions")
    begun = time.monotonic()
    tools.progress("making dead rows under an old snapshot")
    # At this instant exactly one period of each is due: every row, and every entry of its index, is left dead once.
    now = tools.psql(f"SELECT now() - {STEADY_DAYS} * interval '24 hours'")
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "billing", "--now", now], tools.settings("ledgerlock_worker"))
    charged = int(tools.psql(limit.DONE["billing"]))
    tools.progress("waiting for the snapshot to grow old")
    time.sleep(max(0, a.snapshot_seconds - (time.monotonic() - begun)))
    tools.psql("VACUUM ledgerlock.subscriptions")  # finds all of it dead, and may remove none
    dead = int(tools.psql("SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = 'ledgerlock.subscriptions'::regclass"))
    if charged != a.small_rows or dead < a.small_rows:
        tools.fail(f"{charged} rows were charged and {dead} are dead, not {a.small_rows}")
    kept = time_pulls(a.seconds)
    age = time.monotonic() - begun
    old.close()
    return {"fresh": fresh, "dead_rows": dead, "snapshot_age_s": round(age), "over_dead_rows": kept,
            "p99_target_ms": 10, "met": kept["p99_ms"] < 10}


# ---- a pool that has nothing to do ---------------------------------------------------------------------------------

def tree_cpu_s(roots):
    """CPU of processes, of those they have waited for, and of their living descendants."""
    stats = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
            stats[int(name)] = (int(words[1]), sum(map(int, words[11:15])))
        except (OSError, ValueError):
            continue
    wanted = set(roots)
    while True:
        more = {pid for pid, (parent, _) in stats.items() if parent in wanted} - wanted
        if not more:
            return sum(stats[pid][1] for pid in wanted if pid in stats) * TICK_S
        wanted |= more


def queries():
    """Transactions of the pool's database: an idle pool's are one query each."""
    return int(tools.psql("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"))


class Pool:
    """`ledgerlock run`, ended with the block."""

    def __init__(self, a, poll_ms):
        words = [tools.PROGRAM, "run", "-w", "4", "--poll-ms", str(poll_ms), *a.pool_flags.split()]
        self.log = open(os.path.join(tools.FOLDER, "tmp", "pool.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(words, env=tools.settings("ledgerlock_worker"), stderr=self.log)

    def __enter__(self):
        time.sleep(3)
        if self.process.poll() is not None:
            tools.fail(f"the pool ended with {self.process.returncode}")
        return self.process.pid

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def part_idle(a):
    tools.bench("billing", "--rows", 1000, "--no-audit")
    servers = [int(os.environ["LL_PG_PID"]), int(os.environ["LL_REDIS_PID"])]
    tools.progress("an idle pool")
    with Pool(a, a.poll_ms) as pid:
        time.sleep(SETTLE_S)
        cpu, asked, begun = tree_cpu_s([pid, *servers]), queries(), time.monotonic()
        time.sleep(max(20, a.seconds))
        took = time.monotonic() - begun
        cpu, asked = tree_cpu_s([pid, *servers]) - cpu, queries() - asked - 1
    percent, per_s = 100 * cpu / took, asked / took
    return {"workers": 4, "seconds": took, "cpu_percent_of_a_core": percent, "cpu_target": 1,
            "queries_per_s": per_s, "queries_target": 20, "met": percent < 1 and per_s < 20}


# ---- a row that comes due in an idle pool --------------------------------------------------------------------------

def put_subscription(session, number, state):
    session.ask(f"""INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, currency,
                    anchor_at, unit, next_due_at, state) VALUES ({number}, {number % 1000 + 1}, 'late', 100, 'USD',
                    now(), 'month', now(), '{state}') RETURNING 1""")


def resume(session, number):
    """Through the door, which announces it."""
    session.ask(f"SELECT ledgerlock.resume_subscription({number})")


def await_charge(session, number):
    """Seconds until it can be read."""
    begun = time.monotonic()
    while time.monotonic() - begun < 60:
        if session.ask(f"SELECT count(*) FROM ledgerlock.charges WHERE subscription_id = {number}") == "1":
            return time.monotonic() - begun
        time.sleep(0.001)
    return tools.fail("a due row was not charged within a minute")


def appear(a, first, notified):
    """Rows come due one by one, each at a random moment of an idle pool's sleep."""
    poll_ms, delays, session = NOTIFIED_POLL_MS if notified else a.poll_ms, [], tools.Session()
    with Pool(a, poll_ms):
        for number in range(first, first + a.appear):
            tools.progress(f"due row {number - first + 1} of {a.appear}")
            if notified:
                put_subscription(session, number, "parked")
            time.sleep(random.uniform(0.2, 1.2) * a.poll_ms / 1000)
            if notified:
                resume(session, number)
            else:
                put_subscription(session, number, "active")
            delays.append(1000 * await_charge(session, number))
    session.close()
    target = NOTIFIED_TARGET_MS if notified else 1.5 * poll_ms
    return {"rows": len(delays), "poll_ms": poll_ms, "p50_ms": tools.median(delays), "most_ms": max(delays),
            "target_ms": target, "met": max(delays) <= target}


def part_appear(a):
    tools.bench("billing", "--rows", 1000, "--no-audit")
    return {"found_by_polling": appear(a, 1000000, False), "notified": appear(a, 2000000, True)}


# ---- an audit of many rows -----------------------------------------------------------------------------------------

def charge_periods(users, periods):
    """So many charges of each user by the pool; the instant at which nothing more is due."""
    tools.bench("billing", "--load-only", "--steady", "--rows", users)
    now = tools.psql(f"SELECT now() - {STEADY_DAYS - periods + 1} * interval '24 hours'")
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "billing", "--now", now], tools.settings("ledgerlock_worker"))
    return now


def time_audits(a, periods):
    tools.progress(f"charges and orders for an audit: {periods} periods of each user")
    users = a.audit_rows // periods
    now = charge_periods(users, periods)
    tools.psql_file(f"{tools.ROOT}/scripts/bench.d/audit_orders.sql", orders=a.audit_rows // 4)
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "orders"], tools.settings("ledgerlock_worker"))
    tools.psql("VACUUM ANALYZE")
    times = {}
    for connections in (1, 2) * 3:
        tools.progress(f"auditing over {connections} connections")
        begun = time.monotonic()
        tools.run([tools.PROGRAM, "audit", "--now", now, "--lag", "0s", "--connections", str(connections)],
                  tools.settings("ledgerlock_worker"))
        times.setdefault(connections, []).append(time.monotonic() - begun)
    counted = tools.psql("SELECT (SELECT count(*) FROM ledgerlock.charges) || ' ' ||"
                         " (SELECT count(*) FROM ledgerlock.order_lines)").split()
    return {"users": users, "charges": int(counted[0]), "order_lines": int(counted[1]),
            "seconds_one_connection": tools.median(times[1]), "seconds": tools.median(times[2])}


def part_audit(a):
    found = {"ten_periods_each": time_audits(a, 10), "one_period_each": time_audits(a, 1)}
    return dict(found, target_s=AUDIT_TARGET_S, met=all(f["seconds"] < AUDIT_TARGET_S for f in found.values()))


PARTS = (("rate", part_rate), ("pull", part_pull), ("idle", part_idle), ("appear", part_appear), ("audit", part_audit))


def show(name, values, depth=0):
    print("  " * depth + name)
    for key, value in values.items():
        label = key.replace("_", " ")
        if isinstance(value, dict) and "median" not in value:
            show(label, value, depth + 1)
        else:
            print(f"{'  ' * (depth + 1) + label:<38}{tools.shown(value):>14}")


def main():
    a = arguments()
    found = {name: part(a) for name, part in PARTS if a.only in (None, name)}
    tools.progress("")
    for name, values in found.items():
        show(name, values)
    about = tools.machine(tools.bench("billing", "--load-only", "--rows", 100))
    tools.write(a.json, dict(about, kind="size", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"], **found))


main()
