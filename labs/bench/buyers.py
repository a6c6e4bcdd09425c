"""Buyers who call place_order at a fixed rate, whatever becomes of their calls. A call whose answer is lost is repeated
with the same keys, so it is done once. A call places what is due by then, at most 20 orders."""
import bisect
import itertools
import json
import random
import threading
import time

import tools
import wire

SESSIONS = 4
GROUP = 20
SKUS = 1000
RETRY_S = 0.02


class Order:
    __slots__ = ("key", "user", "skus", "due", "order_id")

    def __init__(self, key, user, skus, due):
        self.key, self.user, self.skus, self.due, self.order_id = key, user, skus, due, None

    def row(self):
        lines = json.dumps([{"sku": f"S{sku}", "qty": 1} for sku in self.skus])
        return f"('{self.key}', {self.user}, '{lines}'::jsonb)"


class Buyers:
    """Buyers place while a block runs. rate: orders a second, None for as many as can be placed; it may change meanwhile.
    All times are those of the clock of this machine, which is the server's as well."""

    def __init__(self, mark, users, rate):
        self.mark, self.users, self.rate = mark, users, rate
        self.random = random.Random(7)
        self.popularity = list(itertools.accumulate(1 / rank for rank in range(1, SKUS + 1)))
        self.lock, self.over, self.orders, self.trouble = threading.Lock(), threading.Event(), [], None
        self.give_up_at = None
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(SESSIONS)]

    def __enter__(self):
        self.next_due = time.time()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop(0)

    def stop(self, patience_s):
        """No more orders are due; those that are get so long."""
        self.give_up_at = time.time() + patience_s
        self.over.set()
        for thread in self.threads:
            thread.join()

    def draw_sku(self):
        """The one of rank k is asked for 1/k as often as the first."""
        return bisect.bisect(self.popularity, self.random.random() * self.popularity[-1]) + 1

    def draw(self, due):
        skus = {self.draw_sku() for _ in range(self.random.randint(1, 2))}
        order = Order(f"{self.mark}-{len(self.orders)}", self.random.randint(1, self.users), tuple(skus), due)
        self.orders.append(order)
        return order

    def take(self):
        """The orders that are due, and when the next one is."""
        taken, now = [], time.time()
        with self.lock:
            while len(taken) < GROUP and not self.over.is_set():
                if self.rate is None:
                    taken.append(self.draw(now))
                elif self.next_due <= now:
                    taken.append(self.draw(self.next_due))
                    self.next_due += 1 / self.rate
                else:
                    break
        return taken, self.next_due

    def run(self):
        session = None
        while not self.over.is_set():
            group, next_due = self.take()
            if not group:
                self.over.wait(max(0.0005, next_due - time.time()))
                continue
            session = self.place(session, group)

    def place(self, session, group):
        """Until it is done; the session that is left."""
        sql = ("SELECT o.key, ledgerlock.place_order(o.buyer, o.key, o.lines) FROM (VALUES "
               + ", ".join(order.row() for order in group) + ") AS o (key, buyer, lines)")
        while self.give_up_at is None or time.time() < self.give_up_at:
            try:
                session = session or wire.Session("ledgerlock_shop")
                placed = dict(session.ask(sql))
                for order in group:
                    order.order_id = int(placed[order.key])
                return session
            except (OSError, wire.Refused) as error:
                self.trouble = str(error)
                if session is not None:
                    session.close()
                session = None
                time.sleep(RETRY_S)
        return session


def load_stock():
    tools.psql(f"""INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
                   SELECT 'S' || n, 100000000, 100000000, 1, 'USD' FROM generate_series(1, {SKUS}) AS n""",
               "ledgerlock_migrate")
