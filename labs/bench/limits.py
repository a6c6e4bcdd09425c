"""`scripts/bench limits`: the pool beside the limit and beside what users would write, in turn and in rounds, so
that the ratios hold on a noisy machine. Prints medians, how far the rounds lay apart, what a row costs, and what that
means for each target."""
import argparse
import os

import statements
import tools


def numbers(text):
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f"\"{text}\" is no list of positive whole numbers such as 2,3,4")
    return [int(word) for word in words]


def flags(parser):
    parser.add_argument("--rows", type=int, default=200000, help="subscriptions (default 200000)")
    parser.add_argument("--orders", type=int, default=100000, help="orders and buyers (default 100000)")
    parser.add_argument("--seconds", type=int, default=10, help="longest run of one row at a time (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="medians are over these (default 3)")
    parser.add_argument("--workers", type=numbers, default="2,3,4",
                        help="of billing, and connections of its limit: numbers to find the best of (default 2,3,4)")
    parser.add_argument("--batch", type=int, default=1000, help="rows of one transaction (default 1000)")
    parser.add_argument("--one-row-workers", type=numbers, default="4,8,16",
                        help="numbers to find the best of (default 4,8,16)")
    parser.add_argument("--only", choices=("billing", "orders", "hot-sku"), help="leave out the others")


class Contest:
    """Contestants by name: a function that measures once, and what it has given in each round."""

    def __init__(self):
        self.measure, self.rates, self.documents = {}, {}, {}

    def enter(self, name, measure):
        self.measure[name], self.rates[name] = measure, []

    def enter_pool(self, name, mode, *flags):
        """Runs of ours; their documents are kept beside their rates."""
        def measure():
            document = tools.bench(mode, *flags)
            self.documents.setdefault(name, []).append(document)
            return tools.rate_of(document)
        self.enter(name, measure)

    def run(self, rounds):
        for number in range(rounds):
            for done, (name, measure) in enumerate(self.measure.items()):
                tools.progress(f"round {number + 1} of {rounds}: {name}", (number + done / len(self.measure)) / rounds)
                self.rates[name].append(measure())
                tools.tell(f"round {number + 1} of {rounds}, {name}: {self.rates[name][-1]:,.0f} rows a second")
        print()

    def median(self, name):
        return tools.median(self.rates[name])

    def figures(self, name, key, section="result"):
        """One figure of a run of ours, from each round."""
        return [document[section][key] for document in self.documents[name]]

    def best(self, names):
        return max(names, key=self.median)


def baseline(name, rows, clients, seconds):
    """Row at a time by pgbench; what counts is what stands in the table."""
    tools.bench("billing", "--load-only", "--rows", rows)
    tools.psql("CREATE INDEX bench_baseline ON ledgerlock.subscriptions (next_due_at)"
               " WHERE state IN ('active', 'past_due')")
    with open(f"{tools.ROOT}/labs/bench/baseline_{name}.sql", encoding="ascii") as file:
        text = file.read()
    _, took = tools.pgbench(text, clients, "-T", seconds, session=tools.PLAIN)
    tools.psql("DROP INDEX ledgerlock.bench_baseline")
    return int(tools.psql(statements.DONE["billing"])) / took


def limit_of(mode, rows, batch, clients, order):
    tools.bench(mode, "--load-only", "--rows", rows, *tools.ORDERS[order])
    return statements.measure(mode, batch, clients)


def shipped(workers, order):
    return f"billing as shipped, {order}, {workers} workers"


def unlocked(workers):
    return f"billing, locks off, {workers} workers"


def limited(workers, order):
    return f"billing, the limit, {order}, {workers} connections"


def enter_billing(contest, a):
    size = ("--rows", a.rows, "--batch", a.batch)
    for n in a.workers:
        for order, flags in tools.ORDERS.items():
            contest.enter_pool(shipped(n, order), "billing", *size, "-w", n, *flags)
            contest.enter(limited(n, order),
                          lambda n=n, order=order: limit_of("billing", a.rows, a.batch, n, order))
        contest.enter_pool(unlocked(n), "billing", *size, "-w", n, "--lock-mode", "database-only", "--no-audit")
    for n in a.one_row_workers:
        contest.enter_pool(f"billing, one row, {n} workers", "billing", "--rows", a.rows, "-w", n, "--batch", 1,
                           "--seconds", a.seconds, "--no-audit")
        contest.enter(f"SKIP LOCKED, {n} clients",
                      lambda n=n: baseline("skip_locked", a.rows, n, a.seconds))
        contest.enter(f"advisory lock, {n} clients",
                      lambda n=n: baseline("advisory", a.rows, n, a.seconds))


def enter_orders(contest, a):
    for order, flags in tools.ORDERS.items():
        contest.enter_pool(f"orders as shipped, {order}", "orders", "--rows", a.orders, "--batch", a.batch, *flags)
        contest.enter(f"orders, the limit, {order}", lambda order=order: limit_of("orders", a.orders, a.batch, 1, order))


def enter_hot(contest, a):
    for order, flags in tools.ORDERS.items():
        contest.enter_pool(f"hot SKU as shipped, {order}", "hot-sku", "--rows", a.orders, "--batch", a.batch, *flags)
    contest.enter_pool("hot SKU, one order a transaction", "hot-sku", "--rows", a.orders, "--batch", 1, "--seconds", a.seconds,
                       "--no-audit")


class Judge:
    """Targets, each with what was reached."""

    def __init__(self, contest):
        self.contest, self.rows = contest, []

    def say(self, what, spread, target, form="{:.2f}", below=False):
        """Judges the median, or only tells it where there is no target; the spread tells how much of it is noise."""
        met = target is None or (spread["median"] < target if below else spread["median"] >= target)
        self.rows.append({"what": what, "value": spread["median"], "lowest": spread["lowest"],
                          "highest": spread["highest"], "target": target, "below": below, "met": met,
                          "text": [form.format(spread[name]) for name in ("median", "lowest", "highest")],
                          "wanted": "" if target is None else ("< " if below else ">= ") + form.format(target)})

    def ratio(self, what, name, other, target):
        spread = tools.ratios(self.contest.rates[name], self.contest.rates[other])
        self.say(f"{what} ({other})", spread, target, "{:.2f} x")


def judge_billing(judge, contest, a):
    for order in tools.ORDERS:
        n = max(a.workers, key=lambda n, order=order: contest.median(shipped(n, order)))
        judge.ratio(f"{shipped(n, order)} against the limit", shipped(n, order), limited(n, order), 0.85)
    n = max(a.workers, key=lambda n: contest.median(shipped(n, "sign-up")))
    ours = shipped(n, "sign-up")
    judge.ratio(f"{ours} against locks off", ours, unlocked(n), None)
    for what, prefix in (("billing against one row a transaction", "billing, one row,"),
                         ("billing against", "SKIP LOCKED,"), ("billing against", "advisory lock,")):
        names = [f"{prefix} {k} {'workers' if 'row' in prefix else 'clients'}" for k in a.one_row_workers]
        judge.ratio(what, ours, contest.best(names), None)
    judge.say("peak memory of a worker, MiB", tools.spread(contest.figures(ours, "peak_mib_per_worker")), 16,
              below=True)


def judge_orders(judge, contest, order):
    ours = f"orders as shipped, {order}"
    judge.ratio(f"{ours}, against the limit", ours, f"orders, the limit, {order}", None)
    judge.say(f"{ours}: orders served out of order", tools.spread(contest.figures(ours, "out_of_order")), 1, "{:.0f}",
              below=True)


def judge_hot(judge, contest, a):
    for order in tools.ORDERS:
        ours = f"hot SKU as shipped, {order}"
        judge.ratio(f"hot SKU, {order}, against one order a transaction", ours, "hot SKU, one order a transaction", 40)
        exact = contest.figures(ours, "totals_exact")
        judge.say(f"hot SKU, {order}, rounds with exact totals", tools.spread([exact.count(True)]), a.rounds, "{:d}")


def judge(contest, a):
    court = Judge(contest)
    if a.only in (None, "billing"):
        judge_billing(court, contest, a)
    if a.only in (None, "orders"):
        for order in tools.ORDERS:
            judge_orders(court, contest, order)
    if a.only in (None, "hot-sku"):
        judge_hot(court, contest, a)
    return court.rows


def print_verdicts(verdicts):
    print(f"\n{'':<8}{'median':>9}{'lowest':>10}{'highest':>10}   target")
    for row in verdicts:
        text, lowest, highest = row["text"]
        verdict = "" if row["target"] is None else "met" if row["met"] else "MISSED"
        print(f"{verdict:<6}  {text:>9}{lowest:>10}{highest:>10}   {row['wanted']:<10}  "
              f"{row['what']}")


def print_report(contest, verdicts, about, a):
    shown = {**about["versions"], **about["settings"], "workers": ", ".join(map(str, a.workers)),
             "cores": about["machine"]["cores"], "rounds": a.rounds, "filesystem": os.environ["BENCH_FILESYSTEM"]}
    print("\n".join(f"{name:<20} {value}" for name, value in shown.items()))
    print(f"\n{'rows a second':<42}{'median':>10}{'lowest':>10}{'highest':>10}   CPU of a row")
    for name, rates in contest.rates.items():
        cost = tools.cost_text(contest.documents[name]) if name in contest.documents else ""
        print(f"{name:<42}{contest.median(name):>10,.0f}{min(rates):>10,.0f}{max(rates):>10,.0f}   {cost}")
    print_verdicts(verdicts)


def touch_memory(a):
    """A run that is not counted: the first to use the server's buffers and log pays for their pages, a fifth of its
    rate."""
    tools.progress("before the first round: a run that is not counted")
    tools.bench("billing", "--rows", a.rows, "-w", max(a.workers), "--batch", a.batch, "--no-audit")


def main(a):
    contest = Contest()
    for name, enter in (("billing", enter_billing), ("orders", enter_orders), ("hot-sku", enter_hot)):
        if a.only in (None, name):
            enter(contest, a)
    touch_memory(a)
    contest.run(a.rounds)
    verdicts = judge(contest, a)
    about = tools.machine(next(iter(contest.documents.values()))[0])
    print_report(contest, verdicts, about, a)
    tools.write(a.json, dict(about, kind="limits", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"],
                             rates=contest.rates, medians={n: contest.median(n) for n in contest.rates},
                             lowest={n: min(rates) for n, rates in contest.rates.items()},
                             highest={n: max(rates) for n, rates in contest.rates.items()},
                             targets=verdicts, documents=contest.documents))
