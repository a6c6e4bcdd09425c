"""cards: the journal of the gateway against the rows: what was captured and given back there is what is paid here."""
import collections
import json

from say import broken, die

Entry = collections.namedtuple("Entry", "paid amount currency user")


KINDS = {"c": "charge", "p": "payment", "r": "refund"}


def code_of(currency):
    """As the tables have it: its letters as one number."""
    return int.from_bytes(currency.upper().encode(), "big")


def read(path):
    """Captures and refunds, each with what it is of and whose. A last line without its end was answered to nobody."""
    captures, refunds, of_id = [], [], {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                break
            try:
                entry = json.loads(line)
                form = entry["form"]
                if entry["kind"] == "intent" and "decline" not in entry:
                    captures.append(Entry(form["metadata[charge_id]"], entry["amount"], code_of(form["currency"]),
                                          int(form["customer"].removeprefix("cus_"))))
                    of_id[number] = captures[-1]
                elif entry["kind"] == "refund":
                    of = of_id[int(form["payment_intent"].removeprefix("pi_3"))]
                    refunds.append(Entry(form["metadata[charge_id]"], entry["amount"], of.currency, of.user))
            except (ValueError, KeyError, TypeError):
                die(f"{path}:{number}: no entry of a gateway")
    return captures, refunds


def once_each(there, here, what):
    """The gateway's entries, and the rows that say that they are there."""
    for entry, n in collections.Counter(e.paid for e in there).items():
        if n > 1:
            broken("captured_once", f"the gateway has {what} {entry} {n} times")
    for entry in sorted(set(there) - set(here)):
        broken("captured_is_paid", f"the gateway has {what} {entry}, and no row says so")
    for entry in sorted(set(here) - set(there)):
        broken("paid_is_captured", f"{what} {entry} is written down, and the gateway has nothing of it")


def effects_are_paid(payments, t):
    """Each period and order that is by card has its payment, and the other way round."""
    paid = {p.paid for p in payments}
    effects = {f"charge/{c.sub}/{c.period}" for c in t.charges if c.captured and c.by_card}
    effects |= {f"payment/{o.id}/0" for o in t.orders if o.state == 1 and o.by_card}
    for name in sorted(paid - effects):
        broken("paid_is_served", f"{name} was paid, and nothing was given for it")
    for name in sorted(effects - paid):
        broken("served_is_paid", f"{name} was given, and not paid")


def check(t, path):
    captures, refunds = read(path)
    taken, given = [], []
    for p in t.payments:
        kind = KINDS[chr(p.kind)]
        row = Entry(f"{kind}/{p.source}/{p.leg}", p.amount, p.currency, p.user)
        if p.captured:
            (given if kind == "refund" else taken).append(row)
    once_each(captures, taken, "capture")
    once_each(refunds, given, "refund")
    effects_are_paid(taken, t)
    print(f"gateway: {len(captures)} captures, {len(refunds)} refunds")
