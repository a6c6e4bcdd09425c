"""history: what the workers said of their transactions, one line and one JSON object each, against what is there."""
import collections
import glob
import json
import types

from say import FOREVER, broken, die

PLANNERS = {"c": "billing", "p": "orders"}  # the job that planned an attempt, by its kind
MARKS = ("killed", "healed", "lost", "forgot")  # done to the pool: a process killed or stopped, no fault left, rows of a
#                                                 server that had not got the last of them, keys lost by Redis or about to be


class History:
    """Every *.jsonl of a folder. A last line without its end is left out and counted: whoever wrote it was killed. Any
    other line that cannot be understood ends the program."""

    def __init__(self, folder):
        self.attempts, self.marks, self.commits, self.workers, self.torn = [], [], {}, 0, 0
        for path in sorted(glob.glob(f"{folder}/*.jsonl")) or [die(f"no history in {folder}")]:
            self.read(path)
        self.attempts.sort(key=lambda a: (a.token, a.begun))
        self.by_token = collections.defaultdict(list)
        for a in self.attempts:
            self.by_token[a.token].append(a)

    def read(self, path):
        own = []  # attempts of this file
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    self.torn += 1
                    break
                try:
                    self.take(json.loads(line), own)
                except (ValueError, KeyError, TypeError, AttributeError):
                    die(f"{path}:{number}: no event that can stand here")
        self.attempts += own
        self.workers += bool(own)

    def take(self, line, own):
        event, last = line["event"], own[-1] if own else None
        is_begun = last is not None and last.seq == line.get("seq", 0) and last.end is None
        is_open = is_begun or last is not None and last.seq == line.get("seq", 0) and last.end == "unknown"
        if event == "invoke":
            if last is not None:
                last.is_last = False
            # commit: when COMMIT was about to be sent; end: None: nothing was said, "unknown": and nothing after it.
            own.append(types.SimpleNamespace(
                worker=line["worker"], pid=line["pid"], seq=line["seq"], token=line.get("token", 0), job=line["job"],
                keys=line.get("keys", ()), items=set(line.get("items", ())), begun=line["t"], ended=line["t"], commit=0, end=None,
                is_last=True, done=0))
        elif event == "commit" and is_begun:
            last.commit = line["t"]
            self.note_commit(line)
        elif event in ("ok", "fail") and is_open or event == "unknown" and is_begun:
            last.end, last.ended = event, line["t"]
            last.done = sum(line.get(counter, 0) for counter in ("charged", "fulfilled", "rejected"))
        elif event == "client":
            self.note_commit(line)
        elif event in MARKS:
            self.marks.append((event, line.get("pid", 0), line["t"]))
        else:
            raise ValueError

    def note_commit(self, line):
        """A worker or a client was about to commit, while every row of it was still locked: of two that wrote one row,
        the first has the lower time. A server that crashed gives the id of what did not reach its disk again: the last
        to have it is who wrote the row."""
        xid = line["xid"] % 2**32  # as the rows have it
        self.commits[xid] = max(line["t"], self.commits.get(xid, 0))

    def commit_of(self, xid):
        """When COMMIT was sent; 0: nobody said that it was."""
        return self.commits.get(xid % 2**32, 0)

    def mark(self, kind, since=0, pid=0):
        """When it was first done to the pool, from an instant on; pid 0: to any process."""
        return min((at for what, of, at in self.marks if what == kind and pid in (0, of) and at >= since), default=FOREVER)


# ---- what was written for each user and SKU, in the order of the COMMITs: a row lock is held until then ----


Write = collections.namedtuple("Write", "key at value xid order")


def writes_of(rows, h):
    """By key, then by time; at one time what is more is first. A write that nobody tells of was there before the workers
    were: time 0. Units that a card pays for may be taken at any time before their sale: a refusal may count them as taken,
    and the sum has them at the end."""
    writes = [Write(w.key, h.commit_of(w.xid) if w.xid >= 0 else FOREVER, w.value, w.xid, w.order) for w in rows]
    return sorted(writes, key=lambda w: (w.key, w.at, -w.value))


def unasked(what, key, xid):
    broken("nothing_unasked", f"{what} {key}: nobody has committed transaction {xid}")


def tokens_rise(rows, h, in_parts, what):
    """A transaction has one token, and the next one a higher; but a batch with a row that is set aside, or that a dead
    worker left, is worked in several, with the token of all."""
    writes = writes_of(rows, h)
    for a, b in zip(writes[:1] + writes, writes):
        is_equal = a.value == b.value
        is_right = is_equal if a.xid == b.xid else a.value < b.value or is_equal and in_parts
        if b.at == 0:
            unasked(what, b.key, b.xid)
        if a.key == b.key and not is_right:
            broken("tokens_rise", f"{what} {a.key}: token {b.value} was written after {a.value}")


def refusals_are_true(refused, writes, h, rule, what):
    """Something was short at that COMMIT: there was all that was committed before, and of the transaction itself
    charges, and payments of older orders."""
    of_key = collections.defaultdict(list)
    for w in writes:
        of_key[w.key].append(w)
    for row in refused:
        at = h.commit_of(row.xid)
        was = sum(w.value for w in of_key[row.key]
                  if (w.order < row.id or w.order == 0 if w.xid == row.xid else w.at < at or w.at == FOREVER))
        if at == 0:
            unasked(what, row.id, row.xid)
        elif was >= row.wanted:
            broken(rule, f"{what} {row.id} was refused {row.wanted} of {row.key}, where there were {was}")


def never_below_zero(writes, what):
    """Also in the middle, and not at the end alone."""
    total, key = 0, None
    for w, after in zip(writes, writes[1:] + [None]):
        total, key = (total if w.key == key else 0) + w.value, w.key
        if total < 0 and (after is None or (after.key, after.xid) != (w.key, w.xid)):
            broken("never_negative", f"{what} {key} was {total} after transaction {w.xid}")


def rules_of_truth(t, h):
    money, goods = writes_of(t.money, h), writes_of(t.goods, h)
    refusals_are_true(t.declined, money, h, "declined_truly", "subscription")
    refusals_are_true(t.poor, money, h, "rejected_truly", "order")
    refusals_are_true(t.shortages, goods, h, "rejected_truly", "order")
    never_below_zero(money, "wallet")
    never_below_zero(goods, "stock")


# ---- no two workers held one key at once ----


def rules_of_keys(h, lease_us):
    """A key is held from BEGIN until COMMIT was about to be sent: just before that the worker has seen that its lease
    lasts. An attempt that did not get so far may have lost its lease. A loss by Redis in time is forgiven: the holder
    took its keys before it began, and at most a lease before."""
    holds = sorted(((key, a.begun, a) for a in h.attempts if a.commit for key in a.keys), key=lambda hold: hold[:2])
    longest = holds[:1]  # the hold that ends last so far
    for key, _, b in holds[1:]:
        is_same, a = longest[0][0] == key, longest[0][2]
        if is_same and a.commit > b.begun and a.worker != b.worker and h.mark("forgot", a.begun - lease_us) > b.begun:
            broken("one_holder", f"{key} was held by {a.worker} until {a.commit} and by {b.worker} from {b.begun}")
        if not is_same or b.commit > a.commit:
            longest = [(key, b.begun, b)]


# ---- every effect was asked for, and every outcome is what was said ----


def effects_of(t):
    """The rows that batches left, by token: job, item, and whether a later batch may write over it. Effects that cards pay for
    come later than the batch: a row of payments tells who planned it, and who asked last."""
    effects = collections.defaultdict(list)
    for c in t.charges:
        if not c.by_card:
            effects[c.fence].append(("billing", c.sub, not c.captured))
    for o in t.orders:
        if o.state in (1, 2) and not o.by_card:  # fulfilled or rejected
            effects[o.fence].append(("orders", o.id, False))
    for p in t.payments:
        if chr(p.kind) in PLANNERS:
            effects[p.planned].append((PLANNERS[chr(p.kind)], p.source, True))
        if p.fence != p.planned:
            effects[p.fence].append(("payments", p.id, True))
    return effects


def nothing_is_unasked(effects, h):
    for token, rows in effects.items():
        for job, item, _ in rows:
            if not any(a.job == job and item in a.items for a in h.by_token.get(token, ())):
                broken("nothing_unasked", f"{job}: {item} has token {token}, and no invoke of it")


def one_holder(attempts, quorum):
    for i, a in enumerate(attempts):
        for b in attempts[:i]:
            if a.worker != b.worker and (not quorum or a.job == b.job and a.items & b.items):
                broken("one_holder", f"token {a.token} was held by {b.worker} and by {a.worker}")


def outcomes_are_right(effects, h, quorum):
    for token, attempts in h.by_token.items():
        one_holder(attempts, quorum)
        # The effects of one that began before a server was lost with the last of its rows may be lost with it.
        sure = [a for a in attempts if a.end == "ok" and h.mark("lost", a.begun + 1) == FOREVER]
        done = sum(a.done for a in sure)
        maybe = sum(a.done for a in attempts if a.end in ("ok", "unknown")) - done
        found = sum(not is_declined for _, _, is_declined in effects.get(token, ()))
        if found < done:
            broken("ok_in_tables", f"token {token}: {done} effects were ok, {found} are there")
        if found > done and found != done + maybe and all(a.end is not None for a in attempts):
            broken("fail_without_effect", f"token {token}: {found} effects are there, {done} were ok")


def killed_at(h, a):
    """When it was killed over this attempt."""
    return h.mark("killed", a.ended, a.pid)


def everything_ends(h, kills):
    for a in h.attempts:
        may_be = a.is_last and (kills or killed_at(h, a) != FOREVER)
        if a.end is None and not may_be:
            broken("invoke_ends", f"{a.worker}, invoke {a.seq}: nothing is said of its end")
        if a.end == "unknown" and not may_be:
            broken("unknown_settled", f"{a.worker}, invoke {a.seq} was never settled")


# ---- recovery ----


def first(times):
    return min(times, default=FOREVER)


def recovery_of(effects, h, a, bound_us):
    """Its work could be taken up from its death on, or from the end of the fault that it died in."""
    death = killed_at(h, a)
    death = death if death != FOREVER else a.ended
    healed, longest = h.mark("healed", death), 0
    since = healed if healed != FOREVER else death
    for item in a.items:
        again = first(b.begun for b in h.attempts if b.begun > a.begun and b.job == a.job and item in b.items)
        took_effect = any((job, of) == (a.job, item) for job, of, _ in effects.get(a.token, ()))
        took = 0 if again == FOREVER or took_effect else max(0, again - since)
        longest = max(longest, took)
        if 0 < bound_us < took:
            broken("recovery_bounded",
                   f"item {item} of {a.worker}, invoke {a.seq} was worked again after {took // 1000} ms")
    return longest


def recovery(effects, h, bound_us):
    """The longest that was seen, in microseconds; 0: there was nothing to recover."""
    longest = max((recovery_of(effects, h, a, bound_us) for a in h.attempts if a.end in (None, "unknown")), default=0)
    for kind, _, at in h.marks:
        if kind != "healed":
            continue
        ok = first(a.ended for a in h.attempts if a.end == "ok" and a.ended >= at)
        if ok == FOREVER:
            broken("recovery_bounded", "healed, and nothing was ok any more")
        elif 0 < bound_us < ok - at:
            broken("recovery_bounded", f"healed, and the first ok after {(ok - at) // 1000} ms")
        longest = max(longest, 0 if ok == FOREVER else ok - at)
    return longest


def check(t, order):
    h, effects = History(order.history), effects_of(t)
    in_parts = order.set_aside > 0 or order.kills or order.in_parts or h.mark("killed") != FOREVER
    tokens_rise(t.user_writes, h, in_parts, "user")
    tokens_rise(t.sku_writes, h, in_parts, "sku")
    rules_of_truth(t, h)
    rules_of_keys(h, order.lease_ms * 1000)
    nothing_is_unasked(effects, h)
    outcomes_are_right(effects, h, order.quorum)
    everything_ends(h, order.kills)
    longest = recovery(effects, h, order.bound_ms * 1000)
    n = collections.Counter(a.end for a in h.attempts)
    print(f"history: {h.workers} workers, {len(h.attempts)} invokes, {n['ok']} ok, {n['fail']} fail, {n['unknown']} unknown,"
          f" {n[None]} without an end, {h.torn} lines torn; longest recovery {longest // 1000} ms")
