"""`scripts/bench pressure idle`: a pool with little to do. The CPU of one that has nothing to do; how long a row waits that
comes due then; the cores that 1,000 rows a second take which come due one by one."""
import os
import random
import re
import time

import tools

SETTLE_S = 3  # until all workers have found nothing to do
IDLE_TARGET = 0.01  # cores of the pool and both servers
DELAY_TARGET_MS = {"subscription": 1100, "order": 50}  # p99, with poll_ms as it is shipped
TRICKLE_TARGET = 0.4  # cores of the pool and both servers
TRICKLE_TARGET_MS = 100  # p99 of the delay of a row


def flags(parser):
    parser.add_argument("--seconds", type=int, default=30, help="of each part that lasts (default 30)")
    parser.add_argument("--rows", type=int, default=100, help="that come due in an idle pool (default 100)")
    parser.add_argument("--per-second", type=int, default=1000, help="rows that trickle in (default 1000)")
    parser.add_argument("--pool-flags", default="-w 3", help="flags of `ledgerlock run` (default -w 3: three for "
                        "billing and one for orders)")
    parser.add_argument("--only", choices=[name for name, _ in PARTS], help="leave out the others")


def workers():
    return int(tools.psql("SELECT count(*) FROM ledgerlock.workers WHERE seen_at > now() - interval '10 seconds'"))


def part_idle(a):
    tools.bench("billing", "--rows", 1000, "--no-audit")
    tools.progress("an idle pool")
    with tools.Pool(*a.pool_flags.split()) as pool:
        time.sleep(SETTLE_S)
        cores = pool.cores_used(a.seconds)
        found = {"workers": workers(), "cores": cores}
    return dict(found, cores_target=IDLE_TARGET, met=cores["all"] < IDLE_TARGET)


# ---- a row that comes due in an idle pool --------------------------------------------------------------------------

def put_subscription(session, number):
    session.ask(f"""INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, currency,
                    anchor_at, unit, next_due_at) VALUES ({number}, {number % 1000 + 1}, 'late', 100, 'USD',
                    now(), 'month', now()) RETURNING 1""")
    return f"SELECT count(*) FROM ledgerlock.charges WHERE subscription_id = {number}"


def put_order(session, number):
    order = session.ask(f"SELECT ledgerlock.place_order({number % 1000 + 1}, 'late-{number}',"
                        " '[{\"sku\": \"late\", \"qty\": 1}]')")
    return f"SELECT count(*) FROM ledgerlock.orders WHERE order_id = {order} AND state <> 'pending'"


def await_one(session, counting):
    """Milliseconds until it can be read."""
    begun = time.monotonic()
    while time.monotonic() - begun < 60:
        if session.ask(counting) == "1":
            return 1000 * (time.monotonic() - begun)
        time.sleep(0.001)
    return tools.fail("a due row was not worked within a minute")


def poll_ms(job):
    shown = tools.run([tools.PROGRAM, "config", "show"], tools.settings("ledgerlock_worker"))
    return int(re.search(rf"pool\.{job}\.poll_ms\D+(\d+)", shown).group(1))


def part_delay(a):
    """Each row appears at a random moment of an idle pool."""
    tools.bench("billing", "--rows", 1000, "--no-audit")
    tools.psql("INSERT INTO ledgerlock.stock (sku, initial_qty, on_hand, unit_price_minor, currency)"
               " VALUES ('late', 1000000, 1000000, 1, 'USD')")
    session, found = tools.Session(), {}
    with tools.Pool(*a.pool_flags.split()):
        time.sleep(SETTLE_S)
        for name, job, appear in (("subscription", "billing", put_subscription), ("order", "orders", put_order)):
            polled, delays = poll_ms(job), []
            for number in range(a.rows):
                tools.progress(f"due {name} {number + 1} of {a.rows}")
                time.sleep(random.uniform(0.2, 1.2) * polled / 1000)
                delays.append(await_one(session, appear(session, 1000000 + number)))
            delays.sort()
            p99 = delays[min(len(delays) - 1, len(delays) * 99 // 100)]
            found[name] = {"rows": len(delays), "poll_ms": polled, "p50_ms": tools.median(delays), "p99_ms": p99,
                           "most_ms": delays[-1], "target_ms": DELAY_TARGET_MS[name], "met": p99 <= DELAY_TARGET_MS[name]}
    session.close()
    return dict(found, met=all(f["met"] for f in found.values()))


# ---- rows that trickle in ------------------------------------------------------------------------------------------

def part_trickle(a):
    """Subscriptions come due one by one, so many a second, from a moment on at which the pool is idle."""
    rows = a.per_second * (a.seconds + 10)
    tools.progress(f"{a.per_second} rows a second")
    tools.bench("billing", "--load-only", "--rows", rows)
    tools.psql("SET ledgerlock.repair = on; UPDATE ledgerlock.subscriptions AS s SET anchor_at = n.at, next_due_at = n.at"
               " FROM (SELECT subscription_id, now() + interval '4 seconds' + interval '1 second' *"
               f"  (row_number() OVER (ORDER BY hashint8(subscription_id)) / {a.per_second}::float8) AS at"
               " FROM ledgerlock.subscriptions) AS n WHERE n.subscription_id = s.subscription_id")
    tools.psql("VACUUM ANALYZE ledgerlock.subscriptions")
    with tools.Pool(*a.pool_flags.split()) as pool:
        while int(tools.psql("SELECT count(*) FROM ledgerlock.charges")) == 0:
            pool.check()
            time.sleep(0.1)
        time.sleep(1)
        since, begun = tools.psql("SELECT now()"), time.monotonic()
        cores = pool.cores_used(a.seconds)
        took = time.monotonic() - begun
        charged, late_ms = map(float, tools.psql(
            "SELECT count(*) || ' ' || coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY 1000 * extract(epoch FROM"
            f" charged_at - period_start)), 0) FROM ledgerlock.charges WHERE charged_at >= '{since}'").split())
    return {"rows_per_s": charged / took, "cores": cores, "cores_target": TRICKLE_TARGET,
            "delay_p99_ms": late_ms, "delay_target_ms": TRICKLE_TARGET_MS,
            "met": cores["all"] < TRICKLE_TARGET and late_ms <= TRICKLE_TARGET_MS and charged / took > 0.9 * a.per_second}


PARTS = (("idle", part_idle), ("delay", part_delay), ("trickle", part_trickle))


def main(a):
    tools.measure("idle", a, [part for part in PARTS if a.only in (None, part[0])], a.json)
