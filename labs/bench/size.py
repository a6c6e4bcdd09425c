"""`scripts/bench size`: what must not change as the data grows. The rate over a large table and a small one, with rows
in the order in which users signed up and shuffled, with the large one's size on disk and an audit of it; one pull over
dead rows that an old snapshot keeps; an audit of many rows, and one of many that lie in closed months."""
import json
import os
import subprocess
import time

import statements
import tools

STEADY_DAYS = 36500  # how far `--steady` sets every row behind
LAG_OF_ANY = "73000d"  # no row is late
GIB = 1 << 30
AUDIT_TARGET_S = 10
MONTHS_DAYS = 396  # daily periods of each user: more than thirteen months
MONTHS_TARGET_S = 2
PULL_TARGET_MS = 10
RATIO_TARGETS = {"sign-up": 0.78, "shuffled": 0.65}


def flags(parser):
    parser.add_argument("--rows", type=int, default=2000000, help="subscriptions of the large table (default 2000000)")
    parser.add_argument("--small-rows", type=int, default=100000, help="of the small one, and dead rows")
    parser.add_argument("--audit-rows", type=int, default=1000000, help="charges, and order lines (default 1000000)")
    parser.add_argument("--seconds", type=int, default=60, help="of each timed part: as long as autovacuum rests, so "
                        "that it comes once (default 60)")
    parser.add_argument("--rounds", type=int, default=1, help="of the large table and the small one (default 1)")
    parser.add_argument("--workers", type=int, default=4, help="for the rate (default 4)")
    parser.add_argument("--batch", type=int, default=1000, help="for the rate (default 1000)")
    parser.add_argument("--snapshot-seconds", type=int, default=300, help="age of the old snapshot (default 300)")
    parser.add_argument("--only", choices=[name for name, _ in PARTS], help="leave out the others")
    parser.add_argument("--order", choices=list(tools.ORDERS), help="of the rows, for the rate (default: both)")


# ---- the rate over a large table -----------------------------------------------------------------------------------

def steady(a, seconds, *flags):
    return tools.bench("billing", "--steady", "-w", a.workers, "--batch", a.batch, "--seconds", seconds, "--no-audit",
                       *flags)


def vacuums():
    """How many rounds of autovacuum the table of subscriptions has seen."""
    return int(tools.psql("SELECT autovacuum_count FROM pg_stat_all_tables "
                          "WHERE relid = 'ledgerlock.subscriptions'::regclass"))


def warm_up(a, rows, order):
    """Loads, and runs until as many charges were made as there are rows since the checkpoint that ends the load: by then
    hardly a page of them is new to the log."""
    begun, charged = time.monotonic(), 0
    tools.bench("billing", "--load-only", "--steady", "--rows", rows, *tools.ORDERS[order])
    while charged < rows:
        tools.progress(f"{rows} rows, {order}: warming up, {charged} charges")
        charges = steady(a, min(20, a.seconds), "--keep")["result"]["charges"]
        if charges == 0:
            tools.fail("nothing is charged")
        charged += charges
    return time.monotonic() - begun


def audit_once():
    """One audit of a database in which everything may be due: time, memory of the program, files that sorts wrote."""
    temporary = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"
    tools.progress("auditing")
    tools.psql("VACUUM ANALYZE")
    before, begun = int(tools.psql(temporary)), time.monotonic()
    words = [tools.PROGRAM, "audit", "--lag", LAG_OF_ANY, "--json"]
    with subprocess.Popen(words, env=tools.settings("ledgerlock_worker"), stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tools.fail(f"the audit ended with {process.returncode}")
    seconds = time.monotonic() - begun
    return {"audit_seconds": seconds, "audit_mib": used.ru_maxrss / 1024,
            "audit_temporary_gib": (int(tools.psql(temporary)) - before) / GIB}


def size_on_disk():
    """The whole database and its largest tables, with their indexes."""
    tables = tools.psql("SELECT json_object_agg(name, bytes) FROM (SELECT coalesce(inhparent, c.oid)::regclass::text AS name,"
                        " sum(pg_total_relation_size(c.oid)) AS bytes FROM pg_class AS c LEFT JOIN pg_inherits ON"
                        " inhrelid = c.oid WHERE relkind = 'r' AND relnamespace = 'ledgerlock'::regnamespace"
                        " GROUP BY 1 ORDER BY 2 DESC LIMIT 5) AS t")
    whole = int(tools.psql("SELECT pg_database_size(current_database())"))
    return {"database_gib": whole / GIB, "tables_gib": {k: v / GIB for k, v in json.loads(tables).items()}}


def measure_rate(a, rows, order):
    seconds = warm_up(a, rows, order)
    tools.progress(f"{rows} rows, {order}")
    begun, vacuumed = tools.checkpoints(), vacuums()
    document = steady(a, a.seconds, "--keep")
    return dict(document["result"], warm_up_seconds=seconds, checkpoints=tools.checkpoints() - begun,
                vacuums=vacuums() - vacuumed)


def rates(results):
    """Median and spread of what tells how fast, at what cost, and why."""
    names = ("charges_per_s", "cpu_us_per_charge", "postgres_cpu_us_per_charge", "redis_cpu_us_per_charge",
             "workers_cpu_us_per_charge", "wal_bytes_per_charge", "wal_page_images_per_charge", "peak_mib_per_worker",
             "warm_up_seconds", "checkpoints", "vacuums")
    return {name: tools.spread([r[name] for r in results]) for name in names}


def measure_order(a, order):
    large, small, grown = [], [], {}
    for number in range(a.rounds):
        large.append(measure_rate(a, a.rows, order))
        grown = {**size_on_disk(), **audit_once()}
        small.append(measure_rate(a, a.small_rows, order))
        tools.tell(f"round {number + 1} of {a.rounds}, {order}: {large[-1]['charges_per_s']:,.0f} charges a second of {a.rows:,}"
                   f" rows, {small[-1]['charges_per_s']:,.0f} of {a.small_rows:,}")
    ratio = tools.ratios([r["charges_per_s"] for r in large], [r["charges_per_s"] for r in small])
    target = RATIO_TARGETS[order]
    return {"large": rates(large), "small": rates(small), "ratio": ratio, "target": target,
            "grown": grown, "met": ratio["median"] >= target}


def part_rate(a):
    return {"large_rows": a.rows, "small_rows": a.small_rows,
            **{order: measure_order(a, order) for order in tools.ORDERS if a.order in (None, order)}}


# ---- one pull over dead rows ---------------------------------------------------------------------------------------

def time_pulls(seconds):
    """Latencies of billing_pull_due, one client, in milliseconds."""
    script = "\\set shard random(0, 1023)\n\\set limit 500\n" + statements.statement("billing_pull_due")
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
    tools.progress("pulls over fresh rows")
    tools.bench("billing", "--load-only", "--steady", "--rows", a.small_rows)
    fresh = time_pulls(min(20, a.seconds))
    old = tools.Session()
    old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledgerlock.subscriptions")
    begun = time.monotonic()
    tools.progress("making dead rows under an old snapshot")
    # At this instant exactly one period of each is due: every row, and every entry of its index, is left dead once.
    now = tools.psql(f"SELECT now() - {STEADY_DAYS} * interval '24 hours'")
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "billing", "--now", now], tools.settings("ledgerlock_worker"))
    charged = int(tools.psql(statements.DONE["billing"]))
    tools.progress("waiting for the snapshot to grow old")
    time.sleep(max(0, a.snapshot_seconds - (time.monotonic() - begun)))
    tools.psql("VACUUM ledgerlock.subscriptions")  # finds all of it dead, and may remove none
    dead = int(tools.psql("SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = 'ledgerlock.subscriptions'::regclass"))
    if charged != a.small_rows or dead < a.small_rows:
        tools.fail(f"{charged} rows were charged and {dead} are dead, not {a.small_rows}")
    kept = time_pulls(min(20, a.seconds))
    age = time.monotonic() - begun
    old.close()
    return {"fresh": fresh, "dead_rows": dead, "snapshot_age_s": round(age), "over_dead_rows": kept,
            "p99_target_ms": PULL_TARGET_MS, "met": kept["p99_ms"] < PULL_TARGET_MS}


# ---- an audit of many rows -----------------------------------------------------------------------------------------

def charge_periods(users, periods):
    """So many charges of each user by the pool; the instant at which nothing more is due."""
    tools.bench("billing", "--load-only", "--steady", "--rows", users)
    now = tools.psql(f"SELECT now() - {STEADY_DAYS - periods + 1} * interval '24 hours'")
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "billing", "--now", now], tools.settings("ledgerlock_worker"))
    return now


def time_audit(now, *flags):
    times = []
    for _ in range(3):
        tools.progress("auditing")
        begun = time.monotonic()
        tools.run([tools.PROGRAM, "audit", "--now", now, "--lag", "0s", *flags], tools.settings("ledgerlock_worker"))
        times.append(time.monotonic() - begun)
        tools.tell(f"an audit: {times[-1]:.2f} s")
    return tools.median(times)


def time_audits(a, periods):
    tools.progress(f"charges and orders for an audit: {periods} periods of each user")
    users = a.audit_rows // periods
    now = charge_periods(users, periods)
    tools.psql_file(f"{tools.ROOT}/labs/bench/audit_orders.sql", orders=a.audit_rows // 4)
    tools.run([tools.PROGRAM, "run", "--once", "--jobs", "orders"], tools.settings("ledgerlock_worker"))
    tools.psql("VACUUM ANALYZE")
    seconds = time_audit(now)
    counted = tools.psql("SELECT (SELECT count(*) FROM ledgerlock.charges) || ' ' ||"
                         " (SELECT count(*) FROM ledgerlock.order_lines)").split()
    return {"users": users, "charges": int(counted[0]), "order_lines": int(counted[1]),
            "seconds": seconds}


def part_audit(a):
    found = {"ten_periods_each": time_audits(a, 10), "one_period_each": time_audits(a, 1)}
    return dict(found, target_s=AUDIT_TARGET_S, met=all(f["seconds"] < AUDIT_TARGET_S for f in found.values()))


def renew_schema():
    """Rows of a closed month cannot be wiped."""
    tools.psql("DROP SCHEMA ledgerlock CASCADE")
    tools.run([tools.PROGRAM, "migrate"], tools.settings("ledgerlock_migrate"))


def part_months(a):
    tools.progress("charges of thirteen months")
    now = charge_periods(max(1, a.audit_rows // MONTHS_DAYS), MONTHS_DAYS)
    tools.psql("VACUUM ANALYZE")
    found = {"charges": int(tools.psql("SELECT count(*) FROM charges")), "all_open_s": time_audit(now)}
    months = tools.psql(f"SELECT to_char(month, 'YYYY-MM') FROM months WHERE month < date_trunc('month', '{now}'::timestamptz)"
                        " ORDER BY month").split()
    for month in months:
        tools.progress(f"closing {month}")
        tools.run([tools.PROGRAM, "close-month", month], tools.settings("ledgerlock_migrate"))
    tools.psql("VACUUM ANALYZE")
    found.update(months_closed=len(months), charges_open=int(tools.psql("SELECT count(*) FROM open_charges")),
                 closed_s=time_audit(now), closed_with_sealed_rows_s=time_audit(now, "--sealed"))
    renew_schema()
    return dict(found, target_s=MONTHS_TARGET_S, met=found["closed_s"] < MONTHS_TARGET_S)


PARTS = (("rate", part_rate), ("pull", part_pull), ("audit", part_audit), ("months", part_months))


def main(a):
    tools.measure("size", a, [part for part in PARTS if a.only in (None, part[0])], a.json)
