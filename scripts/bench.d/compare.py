"""`scripts/bench --compare FOLDER`: the pool of this checkout and that of another, in turn and in rounds, each in a
database of its own on the same servers. Both rates are read from the tables in the same way, whatever either build
reports. The other checkout must be built (build/release). Its `ledgerlock-bench`, or `ledgerlock bench` if it is older,
loads the rows."""
import os

import builds as checkouts
import tools

TARGETS = {"billing": 0.95, "billing, shuffled": 0.95, "orders": 0.85, "hot SKU": None}


def arguments():
    parser = tools.parser_of("compare", __doc__)
    parser.add_argument("folder", type=checkouts.folder, metavar="FOLDER", help="checkout of the other build")
    parser.add_argument("--rows", type=int, default=200000, help="subscriptions (default 200000)")
    parser.add_argument("--orders", type=int, default=100000, help="orders and buyers (default 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="medians are over these (default 5)")
    parser.add_argument("--seconds", type=int, default=10, help="of billing over shuffled rows (default 10)")
    parser.add_argument("--batch", type=int, default=1000, help="rows of one transaction (default 1000)")
    parser.add_argument("--workers", type=int, default=3, help="of billing (default 3)")
    parser.add_argument("--order-workers", type=int, default=2, help="of orders and of the hot SKU (default 2)")
    parser.add_argument("--only", choices=list(TARGETS), help="leave out the others")
    return tools.parse(parser)


def billing(build, a):
    return "billing", build.bench("billing", "--rows", a.rows, "--batch", a.batch, "-w", a.workers)


def shuffled(build, a):
    build.bench("billing", "--load-only", "--steady", "--rows", a.rows)
    build.shuffle()
    return "billing", build.bench("billing", "--steady", "--keep", "--seconds", a.seconds, "--batch", a.batch, "-w",
                                  a.workers)


def orders(build, a):
    return "orders", build.bench("orders", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)


def hot(build, a):
    return "hot-sku", build.bench("hot-sku", "--rows", a.orders, "--batch", a.batch, "-w", a.order_workers)


MODES = dict(zip(TARGETS, (billing, shuffled, orders, hot)))


def measure(builds, modes, a):
    """Rates and documents by mode and build; in every other round the other build is first."""
    rates = {mode: {build.name: [] for build in builds} for mode in modes}
    documents = {mode: {build.name: [] for build in builds} for mode in modes}
    for number in range(a.rounds):
        for mode in modes:
            for build in builds[:: -1 if number % 2 else 1]:
                tools.progress(f"round {number + 1} of {a.rounds}: {mode}, {build.name}")
                name, document = MODES[mode](build, a)
                rates[mode][build.name].append(build.rate(name))
                documents[mode][build.name].append(document)
    tools.progress("")
    return rates, documents


def judge(rates):
    found = {}
    for mode, of_build in rates.items():
        ours, theirs = of_build.values()
        ratio, target = tools.ratios(ours, theirs), TARGETS[mode]
        found[mode] = dict(ratio, target=target, met=target is None or ratio["median"] >= target)
    return found


def print_report(rates, documents, ratios):
    for mode, of_build in rates.items():
        print(f"\n{mode + ', rows a second':<36}{'median':>10}{'lowest':>10}{'highest':>10}   CPU of a row")
        for name, values in of_build.items():
            print(f"  {name:<34}{tools.median(values):>10,.0f}{min(values):>10,.0f}{max(values):>10,.0f}"
                  f"   {tools.cost_text(documents[mode][name])}")
        ratio = ratios[mode]
        wanted = "" if ratio["target"] is None else f"   wanted {ratio['target']:.2f}: " + (
            "met" if ratio["met"] else "MISSED")
        print(f"  {'the one by the other':<34}{ratio['median']:>10.2f}{ratio['lowest']:>10.2f}{ratio['highest']:>10.2f}"
              f"{wanted}")


def main():
    a = arguments()
    builds = checkouts.pair(a.folder)
    modes = [mode for mode in MODES if a.only in (None, mode)]
    for build in builds:  # the first to use the server's buffers and log pays for their pages
        build.bench("billing", "--rows", a.rows, "-w", a.workers)
    rates, documents = measure(builds, modes, a)
    ratios = judge(rates)
    print_report(rates, documents, ratios)
    about = tools.machine(documents[modes[0]]["this build"][0])
    tools.write(a.json, dict(about, kind="compare", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"],
                             rates=rates, ratios=ratios, documents=documents))


main()
