#!/usr/bin/python3 -B
"""checker: whether the final tables and the histories of the workers can both be true. The checker shares no code with
the workers; it reads rows, lines and the clock of periods for itself. Exit code 0: everything holds, 1: a rule is broken,
2: usage, 3: the check could not be made."""
import argparse
import calendar
import collections
import datetime
import os
import subprocess
import sys
import types

import cards
import history
from say import FOREVER, SHOWN, broken, counts, die

EPOCH = datetime.datetime(1970, 1, 1)
US = datetime.timedelta(microseconds=1)
OPEN, SET_ASIDE = 0, 3  # states of subscriptions and orders


def read_tables(url, schema, now, first):
    """The tables of tables.sql, rows with names; a null is 0."""
    words = ["psql", "-Xqt", "-A", "-F,", "-v", "ON_ERROR_STOP=1", "-v", f"now={now}", "-v", f"schema={schema}", "-d", url,
             "-f", os.path.join(os.path.dirname(__file__), "tables.sql")]
    done = subprocess.run(words + (["-v", f"first={first}"] if first else []), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        die(done.stderr)
    t = types.SimpleNamespace()
    for table in done.stdout.split("= ")[1:]:
        head, *lines = table.splitlines()
        name, columns = head.split(" ", 1)
        row = collections.namedtuple(name, columns)
        setattr(t, name, [row._make(int(value or 0) for value in line.split(",")) for line in lines])
    t.now_us = t.now[0].us
    return t


def none_twice(rows, keys, what):
    for key, n in collections.Counter(tuple(row[:keys]) for row in rows).items():
        for _ in range(n - 1):
            broken("charged_once", f"{what} {key} is there twice")


def start_of(sub, k):
    """Start of period k, in microseconds; one behind the year 9999 never comes."""
    anchor, n = EPOCH + sub.anchor * US, k * sub.every
    if chr(sub.unit) in "dw":
        return sub.anchor + n * (7 if chr(sub.unit) == "w" else 1) * 86400 * 1000000
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + n * (12 if chr(sub.unit) == "y" else 1), 12)
    if year > 9999:
        return FOREVER
    last = calendar.monthrange(year, month + 1)[1]
    return (anchor.replace(year=year, month=month + 1, day=min(anchor.day, last)) - EPOCH) // US


def missed(t, sub, charges):
    """The oldest period that has begun and is not captured, or None. A declined one is answered: it waits for money."""
    k = 0
    while start_of(sub, k) <= min(t.now_us, sub.cancel - 1 if sub.cancel else FOREVER):
        charge = charges.get((sub.id, k))
        if charge is None:
            return k
        if not charge.captured:
            return None
        k += 1
    return None


def nothing_is_missed(t):
    charges = {(c.sub, c.period): c for c in reversed(t.charges)}
    for sub in t.subs:
        k = None if sub.state == SET_ASIDE else missed(t, sub, charges)
        if k is not None:
            broken("nothing_missed", f"subscription {sub.id}: period {k} is due and not charged")
    for order in t.orders:
        if order.state == OPEN:
            broken("nothing_missed", f"order {order.id} is pending")
    for p in t.payments:
        if not p.decided:
            broken("nothing_missed", f"payment {p.id} is not decided")


def charges_are_right(t):
    """No period beyond those that have begun, none that begins when its subscription has ended, each of a subscription
    that is there, for its price, and from the wallet of its user."""
    subs = {sub.id: sub for sub in t.subs}
    for c in t.charges:
        sub = subs.get(c.sub)
        starts = FOREVER if sub is None else start_of(sub, c.period)
        if starts > t.now_us:
            broken("nothing_early", f"subscription {c.sub}: period {c.period} was not due")
        if sub is not None and sub.cancel and starts >= sub.cancel:
            broken("nothing_after_cancel", f"subscription {c.sub}: period {c.period} was cancelled")
        if sub is not None and c.amount != sub.amount:
            broken("right_amount", f"subscription {c.sub} costs {sub.amount}, and period {c.period} was charged {c.amount}")
        if sub is not None and c.user != sub.user:
            broken("right_payer", f"subscription {c.sub} is of user {sub.user}, and {c.user} paid for period {c.period}")


def totals_are_right(t):
    for order, there, should in t.totals:
        if there != should:
            broken("right_amount", f"order {order} is {there}, its lines say {should}")


def sums_are_right(rows, writes, what):
    """All that was written comes to what is left; nothing was written for what is not there."""
    there, sums = dict(rows), collections.Counter()
    for w in writes:
        sums[w.key] += w.value
    for key in sorted(there.keys() | sums.keys()):
        if there.get(key) != sums[key] or sums[key] < 0:
            broken("sums", f"{what} {key} is {there.get(key)}, its rows say {sums[key]}")


def rules_of_tables(t, set_aside):
    none_twice(t.charges, 2, "charge")
    none_twice(t.orders, 1, "order")
    nothing_is_missed(t)
    charges_are_right(t)
    totals_are_right(t)
    sums_are_right(t.wallets, t.money, "wallet")
    sums_are_right(t.shelves, t.goods, "stock")
    n = sum(row.state == SET_ASIDE for row in t.subs + t.orders)
    if n > set_aside:
        broken("set_aside", f"{n} rows are set aside, {set_aside} may be")


def parse():
    p = argparse.ArgumentParser(description="Compares the final tables with the lines that workers of a test build wrote.")
    p.add_argument("--postgres", required=True, metavar="URL")
    p.add_argument("--schema", default="ledgerlock", metavar="NAME", help="that has the tables")
    p.add_argument("--history", metavar="FOLDER", help="of the lines (LL_TEST_HISTORY)")
    p.add_argument("--gateway", metavar="FILE", help="its journal")
    p.add_argument("--now", default="now", metavar="TIME", help="the instant that the pool was given as --now")
    p.add_argument("--bound-ms", type=int, default=0, metavar="MS", help="longest time until work is taken up again")
    p.add_argument("--set-aside", type=int, default=0, metavar="N", help="rows that may be parked")
    p.add_argument("--lease-ms", type=int, default=0, metavar="MS",
                   help="longest lease of a lock: what Redis forgot is forgiven to those who took it so long before")
    p.add_argument("--first", metavar="SQL", help="is done before the rows are read, and undone")
    p.add_argument("--kills", action="store_true",
                   help="workers were killed that no line tells of: an invoke may lack its end")
    p.add_argument("--in-parts", action="store_true",
                   help="batches may have been refused as a whole and worked row by row, each row with the token of all")
    p.add_argument("--quorum", action="store_true",
                   help="the locks were those of several servers: batches of different rows may have one token")
    return p.parse_args()


def main():
    order = parse()
    t = read_tables(order.postgres, order.schema, order.now, order.first)
    rules_of_tables(t, order.set_aside)
    print(f"tables: {len(t.charges)} charges, {len(t.orders)} orders, {len(t.subs)} subscriptions")
    if order.gateway is not None:
        cards.check(t, order.gateway)
    if order.history is not None:
        history.check(t, order)
    for rule, n in counts.items():
        if n > SHOWN:
            print(f"broken: {rule}: {n} times")
    print(f"checker: {sum(counts.values())} broken")
    return 1 if counts else 0


try:
    sys.exit(main())
except Exception as error:  # 1 would say that a rule is broken
    die(repr(error))
