"""`scripts/bench compare FOLDER`: the pool of this checkout and that of another, in turn and in rounds, each in a
database of its own on the same servers. Both rates are read from the tables in the same way, whatever either build
reports. "Both jobs together" is one run over subscriptions and orders of the same users, until all are done. "Locks" are
those of the library, as each build measures its own. The other checkout must be built. Its
`ledgerlock-bench`, or `ledgerlock bench` if it is older, loads the rows."""
import os

import builds as checkouts
import clients
import tools

CPU_TARGET = 1.0  # CPU of a row against that of the other build
TARGETS = {"billing": 1.0, "billing, shuffled": 1.0, "orders": 1.0, "hot SKU": None, "both jobs together": 1.05,
           "calls of place_order": 1.0, "calls of deposit": 1.0, "locks, 1 key": None, "locks, 100 keys": None, "locks, 1000 keys": None}


def flags(parser):
    parser.add_argument("folder", type=checkouts.folder, metavar="FOLDER", help="checkout of the other build")
    parser.add_argument("--rows", type=int, default=200000, help="subscriptions (default 200000)")
    parser.add_argument("--orders", type=int, default=100000, help="orders and buyers (default 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="medians are over these (default 5)")
    parser.add_argument("--seconds", type=int, default=10, help="of billing over shuffled rows (default 10)")
    parser.add_argument("--batch", type=int, default=1000, help="rows of one transaction (default 1000)")
    parser.add_argument("--workers", type=int, default=3, help="of billing (default 3)")
    parser.add_argument("--order-workers", type=int, default=2, help="of orders and of the hot SKU (default 2)")
    parser.add_argument("--lock-seconds", type=int, default=3, help="of the locks (default 3)")
    parser.add_argument("--calls", type=int, default=2000, help="of each client function in a round (default 2000)")
    parser.add_argument("--only", choices=list(PARTS), help="leave out the others")


# ---- the parts: rates by mode, and the CPU of a row in microseconds where there are rows ---------------------------------

def of_pool(mode, rate, document):
    return {mode: (rate, tools.cost_of(document))}


def billing(build, a):
    document = build.bench("billing", "--rows", a.rows, "--batch", a.batch, "-w", a.workers)
    return of_pool("billing", build.rate("billing"), document)


def shuffled(build, a):
    build.bench("billing", "--load-only", "--steady", "--rows", a.rows)
    build.shuffle()
    document = build.bench("billing", "--steady", "--keep", "--seconds", a.seconds, "--batch", a.batch, "-w", a.workers)
    return of_pool("billing, shuffled", build.rate("billing"), document)


def orders(build, a):
    document = build.bench("orders", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)
    return of_pool("orders", build.rate("orders"), document)


def hot(build, a):
    document = build.bench("hot-sku", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)
    return of_pool("hot SKU", build.rate("orders"), document)


def together(build, a):
    build.bench("orders", "--load-only", "--rows", a.orders)
    build.psql(f"""INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at,
                                                         unit, next_due_at)
                   SELECT g, g % {a.orders // 2} + 1, 'plan-' || g, 100, 'USD', t.at, 'day', t.at
                     FROM generate_series(1, {a.rows}) AS g, LATERAL (SELECT now() - interval '1 hour'
                          - (hashint8extended(g, 1) & 4294967295) / 4294967296.0 * interval '20 hours') AS t (at)""")
    build.psql("VACUUM ANALYZE")
    build.psql("CHECKPOINT")
    workers = ("--billing", a.workers, "--orders", a.order_workers) if "--orders" in build.flags else ("-w", a.workers)
    used_s = build.run("--batch", a.batch, *workers)
    rows = a.rows + a.orders
    return {"both jobs together": (build.rate("billing", "orders"), {n: s / rows * 1e6 for n, s in used_s.items()})}


def calls(build, a):
    """Builds of the first edition number the deposits of a user: another function."""
    if not a.has_keys:
        return {}
    clients.load(build)
    return {f"calls of {name}": (clients.rate(build, name, a.calls), None) for name in clients.SCRIPTS}


def locks(build, a):
    figures = build.bench("locks", "--seconds", a.lock_seconds, "--repetitions", 1)["locks"]
    return {f"locks, {keys}": (figures[f"{keys}: lock+unlock/s"], None) for keys in ("1 key", "100 keys", "1000 keys")}


PARTS = {"billing": billing, "billing, shuffled": shuffled, "orders": orders, "hot SKU": hot, "both jobs together": together,
         "client functions": calls, "locks": locks}


def measure(builds, a):
    """Rates and costs by mode and build; in every other round the other build is first."""
    rates, costs = {}, {}
    for number in range(a.rounds):
        for name, part in PARTS.items():
            for build in builds[:: -1 if number % 2 else 1]:
                if a.only not in (None, name):
                    continue
                tools.progress(f"round {number + 1} of {a.rounds}: {name}, {build.name}", number / a.rounds)
                for mode, (rate, cost) in part(build, a).items():
                    tools.tell(f"round {number + 1} of {a.rounds}, {mode}, {build.name}: {rate:,.0f} a second")
                    for found, value in ((rates, rate), (costs, cost)):
                        found.setdefault(mode, {b.name: [] for b in builds})[build.name].append(value)
    return rates, costs


def judge(rates, costs):
    found = {}
    for mode, of_build in rates.items():
        ratio, target = tools.ratios(*of_build.values()), TARGETS[mode]
        found[mode] = dict(ratio, target=target, met=target is None or ratio["median"] >= target)
        if costs[mode][next(iter(of_build))][0] is not None:
            cpu = tools.ratios(*([sum(cost.values()) for cost in values] for values in costs[mode].values()))
            found[mode]["cpu"] = dict(cpu, target=CPU_TARGET, met=cpu["median"] <= CPU_TARGET)
    return found


def verdict(ratio, word):
    return "" if ratio["target"] is None else f"   wanted {word}{ratio['target']:.2f}: {'met' if ratio['met'] else 'MISSED'}"


def print_ratio(what, ratio, word):
    print(f"  {what:<34}{ratio['median']:>10.2f}{ratio['lowest']:>10.2f}{ratio['highest']:>10.2f}{verdict(ratio, word)}")


def print_report(rates, costs, ratios):
    for mode, of_build in rates.items():
        unit = "keys locked and unlocked a second" if mode.startswith("locks") else "rows a second"
        print(f"\n{mode + ', ' + unit:<54}\n{'':<36}{'median':>10}{'lowest':>10}{'highest':>10}")
        for name, values in of_build.items():
            cost = "" if costs[mode][name][0] is None else f"   CPU of a row: {tools.costs_text(costs[mode][name])}"
            print(f"  {name:<34}{tools.median(values):>10,.0f}{min(values):>10,.0f}{max(values):>10,.0f}{cost}")
        print_ratio("the one by the other", ratios[mode], "at least ")
        if "cpu" in ratios[mode]:
            print_ratio("CPU of a row by the other's", ratios[mode]["cpu"], "at most ")


def main(a):
    builds = checkouts.pair(a.folder)
    a.has_keys = all(clients.takes_key(build) for build in builds)
    # The first to use the server's buffers and log pays for their pages.
    tools.progress("before the first round: runs that are not counted")
    first = [build.bench("billing", "--rows", a.rows, "-w", a.workers) for build in builds]
    rates, costs = measure(builds, a)
    ratios = judge(rates, costs)
    print_report(rates, costs, ratios)
    tools.write(a.json, dict(tools.machine(first[0]), kind="compare", arguments=vars(a),
                             filesystem=os.environ["BENCH_FILESYSTEM"], rates=rates, ratios=ratios, costs=costs))
