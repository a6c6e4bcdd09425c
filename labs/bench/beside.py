"""`scripts/bench pressure beside`: how fast others are worked beside rows that cannot be. Each case is measured over a
freshly filled database: the rows of the others, and what stands in their way. Its rate stands beside the rate of the same
others when nothing does."""
import os
import subprocess
import time

import tools

TARGET = 0.65  # of the undisturbed rate
PREFIX = os.environ.get("LEDGERLOCK_LOCKS_PREFIX", "lock:")
HOT = 7919 % 10000 + 1  # the SKU that is asked for most
ABSENT = 100  # rows that name one that does not exist
MANY = 1000  # due rows of a held user
UNPAYABLE = 10000
QUEUE = 300000  # orders of the future, or of a held user or SKU
BEHIND = 10000  # periods


def flags(parser):
    parser.add_argument("--rows", type=int, default=100000, help="subscriptions of the others (default 100000)")
    parser.add_argument("--orders", type=int, default=30000, help="orders of the others (default 30000)")
    parser.add_argument("--seconds", type=int, default=15, help="a case is given up after these (default 15)")
    parser.add_argument("--rounds", type=int, default=1, help="medians are over these (default 1)")
    parser.add_argument("--scale", type=int, default=1, help="divides how many rows stand in the way (default 1)")
    parser.add_argument("--workers", type=int, help="of the job (default: as the pool has them by default)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the cases whose name holds this")


# ---- what stands in the way ----------------------------------------------------------------------------------------

def put_user(user, balance):
    tools.psql(f"INSERT INTO ledgerlock.users (user_id, balance_minor, currency) VALUES ({user}, 0, 'USD')")
    if balance > 0:
        tools.psql(f"SELECT ledgerlock.deposit({user}, 'USD', {balance}, 'opening')")


def put_subscriptions(first_user, users, each, days=2):
    """Older than those of the others, due each once; all periods of the days between, if days are more than two."""
    tools.psql(f"""INSERT INTO ledgerlock.subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit, every,
                                                          next_due_at)
                   SELECT {first_user} + n % {users}, 'other-' || n, 100, 'USD', t.at, 'day', {1 if days > 2 else 1000},
                          t.at
                     FROM generate_series(0, {users * each - 1}) AS n, (SELECT now() - interval '{days} days') AS t (at)""")


def put_orders(users, each, sku):
    """By clients, for the SKU with this number."""
    tools.psql(f"""SELECT count(ledgerlock.place_order(u, 'other-' || n, jsonb_build_array(jsonb_build_object(
                            'sku', (SELECT sku FROM ledgerlock.stock WHERE sku_id = {sku}), 'qty', 1)),
                            now() - interval '2 hours'))
                     FROM unnest(ARRAY[{', '.join(map(str, users))}]::bigint[]) AS u, generate_series(1, {each}) AS n""")


def put_queue(first_user, users, n, at):
    """For the SKU that is asked for most, placed then."""
    tools.psql(f"""WITH made AS (
                     INSERT INTO ledgerlock.orders (user_id, idempotency_key, request_hash, total_minor, currency, placed_at)
                     SELECT {first_user} + n % {users}, 'queue-' || n, sha256('x'), s.unit_price_minor, 'USD', now() + {at}
                       FROM generate_series(1, {n}) AS n, ledgerlock.stock AS s WHERE s.sku_id = {HOT}
                     RETURNING order_id)
                   INSERT INTO ledgerlock.order_lines (order_id, sku_id, unit_price_minor, qty)
                   SELECT order_id, sku_id, unit_price_minor, 1 FROM made, ledgerlock.stock WHERE sku_id = {HOT}""")
    tools.psql("VACUUM ANALYZE ledgerlock.orders, ledgerlock.order_lines")


def redis(*words):
    done = subprocess.run(["redis-cli", "-s", os.environ["LL_REDIS_SOCK"], *words], capture_output=True, text=True,
                          check=True)
    return done.stdout.rstrip()


class Nothing:
    """Holds nothing while a case runs."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class HeldRow(Nothing):
    """A client that has locked a row and does not end its transaction."""

    def __init__(self, table, key, value):
        self.session = tools.Session()
        self.session.ask(f"BEGIN; SELECT 1 FROM ledgerlock.{table} WHERE {key} = {value} FOR UPDATE")

    def __exit__(self, *_):
        self.session.close()


class OldSnapshot(Nothing):
    """A client whose transaction keeps the server from forgetting the rows that were worked meanwhile."""

    def __init__(self):
        self.session = tools.Session()
        self.session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledgerlock.stock")

    def __exit__(self, *_):
        self.session.close()


class HeldKey(Nothing):
    """A client that has taken a lock in Redis."""

    def __init__(self, name):
        self.key = PREFIX + name
        if redis("SET", self.key, "another|1", "NX", "PX", "3600000") != "OK":
            tools.fail(f"{self.key} is not free")

    def __exit__(self, *_):
        redis("DEL", self.key)


# ---- the cases -----------------------------------------------------------------------------------------------------

class Case:
    """One thing that stands in the way of a job. prepare puts its rows, given the number of a user who is none of the
    others; hold makes what is held meanwhile."""

    def __init__(self, job, name, prepare=None, hold=lambda user: Nothing()):
        self.job, self.name, self.prepare, self.hold = job, name, prepare or (lambda a, user: None), hold


def user_row(user):
    return HeldRow("users", "user_id", user)


def user_key(user):
    return HeldKey(f"user:{user}")


def held_subscriptions(_, user):
    put_user(user, 10**9)
    put_subscriptions(user, 1, 1)


def many_subscriptions(a, user):
    put_user(user, 10**9)
    put_subscriptions(user, 1, MANY // a.scale)


def held_orders(_, user):
    put_user(user, 10**9)
    put_orders([user], 1, HOT)


def many_orders(a, user):
    put_user(user, 10**9)
    put_orders([user], MANY // a.scale, HOT)


def queued_orders(a, user):
    """More than the others have, before all of theirs."""
    put_user(user, 10**9)
    put_queue(user, 1, QUEUE // a.scale, "interval '-2 hours'")


def absent_users(job):
    def prepare(_, user):
        absent = range(user, user + ABSENT)
        for number in absent:
            put_user(number, 0)
        if job == "billing":
            put_subscriptions(user, ABSENT, 1)
        else:
            put_orders(absent, 1, HOT)
        tools.psql(f"SET session_replication_role = replica; DELETE FROM ledgerlock.users WHERE user_id >= {user}")
    return prepare


def absent_sku(_, user):
    sku = 10**6
    put_user(user, 10**9)
    tools.psql("INSERT INTO ledgerlock.stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)"
               f" VALUES ({sku}, 'gone', 1000, 1000, 1, 'USD')")
    put_orders([user], ABSENT, sku)
    tools.psql(f"SET session_replication_role = replica; DELETE FROM ledgerlock.stock WHERE sku_id = {sku}")


def unpayable(a, user):
    put_user(user, 0)
    put_subscriptions(user, 1, UNPAYABLE // a.scale)


def one_behind(a, user):
    put_user(user, 10**9)
    put_subscriptions(user, 1, 1, days=BEHIND // a.scale)


CASES = (
    Case("billing", "a held user (row)", held_subscriptions, user_row),
    Case("billing", "a held user (key)", held_subscriptions, user_key),
    Case("billing", "1,000 due rows of a held user (row)", many_subscriptions, user_row),
    Case("billing", "1,000 due rows of a held user (key)", many_subscriptions, user_key),
    Case("billing", "100 absent users", absent_users("billing")),
    Case("billing", "10,000 subscriptions of a user who cannot pay", unpayable),
    Case("billing", "one subscription 10,000 periods behind", one_behind),
    Case("orders", "a held user (row)", held_orders, user_row),
    Case("orders", "a held user (key)", held_orders, user_key),
    Case("orders", "1,000 due rows of a held user (row)", many_orders, user_row),
    Case("orders", "1,000 due rows of a held user (key)", many_orders, user_key),
    Case("orders", "a held SKU (row)", hold=lambda user: HeldRow("stock", "sku_id", HOT)),
    Case("orders", "a held SKU (key)", hold=lambda user: HeldKey(f"sku:{HOT}")),
    Case("orders", "a snapshot older than all that is worked", hold=lambda user: OldSnapshot()),
    Case("orders", "100 absent users", absent_users("orders")),
    Case("orders", "100 orders of an absent SKU", absent_sku),
    Case("orders", "300,000 orders of a held user (row)", queued_orders, user_row),
    Case("orders", "300,000 orders of a held user (key)", queued_orders, user_key),
    Case("orders", "300,000 orders of a held SKU (key)", queued_orders, lambda user: HeldKey(f"sku:{HOT}")),
    Case("orders", "300,000 orders of the future",
         lambda a, user: put_queue(1, user - 1, QUEUE // a.scale, "interval '7 days'")),
)


# ---- their rate ----------------------------------------------------------------------------------------------------

class Others:
    """The rows of the others: filled by ledgerlock-bench, told from those in their way by the number of their user.
    Orders of the SKU that is held in a case are in nobody's rate."""

    def __init__(self, a, job):
        self.a, self.job = a, job
        self.rows = a.rows if job == "billing" else a.orders
        self.users = a.rows if job == "billing" else a.orders // 2
        tools.bench(job, "--load-only", "--rows", self.rows)
        for table, column in (("subscriptions", "subscription_id"), ("orders", "order_id")):
            tools.psql(f"SELECT setval(pg_get_serial_sequence('ledgerlock.{table}', '{column}'), {self.rows})")
        self.wanted = self.rows if job == "billing" else int(tools.psql(self.orders("true", "count(*)")))

    def orders(self, condition, what):
        return (f"SELECT {what} FROM ledgerlock.orders AS o WHERE {condition} AND user_id <= {self.users}"
                f" AND idempotency_key LIKE 'bench-%' AND NOT EXISTS (SELECT FROM ledgerlock.order_lines AS l"
                f" WHERE l.order_id = o.order_id AND l.sku_id = {HOT})")

    def done(self, what):
        if self.job == "billing":
            return tools.psql(f"SELECT {what} FROM ledgerlock.charges AS o WHERE user_id <= {self.users}")
        return tools.psql(self.orders("state IN ('fulfilled', 'rejected')", what))

    def rate(self):
        """Works them; rows a second from the first on until all are done, or the time is over."""
        at = "charged_at" if self.job == "billing" else "decided_at"
        flags = ("-w", self.a.workers) if self.a.workers else ()
        with tools.Pool("--jobs", self.job, *flags) as pool:
            until = time.monotonic() + self.a.seconds
            while (n := int(self.done("count(*)"))) < self.wanted and time.monotonic() < until:
                pool.check()
                time.sleep(0.2)
            last = "max(pg_xact_commit_timestamp(o.xmin))" if n == self.wanted else "clock_timestamp()"
            took = self.done(f"extract(epoch FROM {last} - min({at}))")
        return (n / float(took) if n else 0), n


def measure(a, case):
    others = Others(a, case.job)
    user = others.users + 1
    case.prepare(a, user)
    tools.psql("CHECKPOINT")
    with case.hold(user):
        rate, done = others.rate()
    return rate, done == others.wanted


def run_round(a, cases, found, number):
    alone = {}
    for done, case in enumerate(cases):
        share = (number + done / len(cases)) / a.rounds
        if case.job not in alone:
            tools.progress(f"{case.job}: nothing in the way", share)
            alone[case.job], _ = measure(a, Case(case.job, "nothing"))
        tools.progress(f"{case.job}: {case.name}", share)
        rate, complete = measure(a, case)
        tools.tell(f"round {number + 1} of {a.rounds}, {case.job}: {case.name}: {rate:,.0f} rows a second, alone {alone[case.job]:,.0f}")
        found.setdefault(f"{case.job}: {case.name}", []).append(
            {"undisturbed": alone[case.job], "beside": rate, "complete": complete})


def judge(rounds):
    share = tools.ratios([r["beside"] for r in rounds], [r["undisturbed"] for r in rounds])
    return {"share": share, "undisturbed_per_s": tools.median([r["undisturbed"] for r in rounds]),
            "beside_per_s": tools.median([r["beside"] for r in rounds]),
            "all_done": all(r["complete"] for r in rounds), "target": TARGET, "met": share["median"] >= TARGET}


def main(a):
    cases = [case for case in CASES if a.only in f"{case.job}: {case.name}"]
    if not cases:
        tools.fail(f"no case has \"{a.only}\" in its name")
    found = {}
    tools.progress("before the first round: a run that is not counted")
    tools.bench("billing", "--rows", a.rows, "--no-audit")  # the first to use the server's buffers pays for their pages
    for number in range(a.rounds):
        run_round(a, cases, found, number)
    verdicts = {name: judge(rounds) for name, rounds in found.items()}
    tools.tell(f"\n{'rows of others a second':<60}{'alone':>10}{'beside':>10}{'share':>8}")
    for name, v in verdicts.items():
        print(f"{name:<60}{v['undisturbed_per_s']:>10,.0f}{v['beside_per_s']:>10,.0f}{v['share']['median']:>8.2f}"
              f"  {'met' if v['met'] else 'MISSED'}{'' if v['all_done'] else ', not all done'}")
    about = tools.machine(tools.bench("billing", "--load-only", "--rows", 100))
    tools.write(a.json, dict(about, kind="beside", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"],
                             cases=verdicts))
