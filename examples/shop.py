#!/usr/bin/env python3
"""A shop's first hour: a SKU, a user, money, a subscription, an order, what was decided, a refund.

    examples/shop.py postgresql://webshop@localhost/ledgerlock

The login is a member of ledgerlock_shop, _cashier, _warehouse and _support, and a pool runs: ledgerlock run.
Every call may be made again with its key when its answer was lost, and changes nothing then."""
import json
import sys
import time
import uuid
from datetime import datetime, timezone

import psycopg2
import psycopg2.extras

db = psycopg2.connect(sys.argv[1], cursor_factory=psycopg2.extras.NamedTupleCursor)
db.autocommit = True  # a transaction that stays open keeps rows locked, and holds up the feed of decisions


def rows(function, *values):
    with db.cursor() as cursor:
        cursor.execute(f"SELECT * FROM ledgerlock.{function}({', '.join(['%s'] * len(values))})", values)
        return cursor.fetchall()


def value(function, *values):
    return rows(function, *values)[0][0]


def decisions(cursor):
    """The decisions behind a cursor, for ever. A program that ends keeps the cursor of the last one it has dealt with."""
    while True:
        page = rows("decisions_since", cursor)
        for decision in page:
            cursor = decision.cursor
            yield decision
        if not page:
            time.sleep(0.1)


name = f"customer-{uuid.uuid4()}"
value("create_sku", "TEA", 450, "EUR")  # 4.50 a box; support
value("receive_stock", "TEA", f"delivery for {name}", 10)  # warehouse
user = value("create_user", name, "EUR")
value("deposit", user, "EUR", 5000, "first top-up")  # cashier, when the payment provider says so
start = value("decisions_from")
club = value("subscribe", user, "tea club", 900, "EUR", "month", 1, datetime.now(timezone.utc), 0, "tea club")
order = value("place_order", user, "cart 1", json.dumps([{"sku": "TEA", "qty": 2}]))
assert value("place_order", user, "cart 1", json.dumps([{"sku": "TEA", "qty": 2}])) == order

waiting = {("order", order), ("subscription", club)}
for d in decisions(start):
    of = ("order", d.order_id) if d.order_id else ("subscription", d.subscription_id)
    if of in waiting:
        print(d.decision, d.amount_minor, d.currency, d.reason or "")
        waiting.remove(of)
    if not waiting:
        break

try:
    value("refund", user, "payment", order, 0, 1000, "a box was crushed", "refund 1")
except psycopg2.Error as error:  # LL003: more than was paid
    print("refused", error.pgcode, error.diag.message_primary)
print("refunded", value("refund", user, "payment", order, 0, 450, "a box was crushed", "refund 1"))  # support
print("balance", rows("balance", user)[0].balance_minor)
