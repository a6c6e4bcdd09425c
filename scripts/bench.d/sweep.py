"""`scripts/bench --sweep`: the rate of billing over the batch size, the number of workers and the size of the
table, each always with more due than can be done."""
import argparse
import os

import tools

BATCHES = (1, 5, 10, 25, 50, 100, 200, 500, 1000)
WORKERS = (1, 2, 3, 4, 6, 8, 12, 16)
SIZES = (10000, 30000, 100000, 300000, 1000000, 2000000)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench --sweep", description=__doc__)
    parser.add_argument("--rows", type=int, default=100000, help="subscriptions where their number is not swept")
    parser.add_argument("--seconds", type=int, default=10, help="of each run (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="medians are over these (default 3)")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--most-rows", type=int, default=SIZES[-1], help="leave out larger tables")
    parser.add_argument("--only", choices=("batch", "workers", "rows"), help="leave out the others")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return tools.parse(parser)


def points(a):
    usual = {"rows": a.rows, "workers": a.workers, "batch": a.batch}
    over = {"batch": BATCHES, "workers": WORKERS, "rows": [n for n in SIZES if n <= a.most_rows]}
    return [(name, x, dict(usual, **{name: x})) for name, xs in over.items() if a.only in (None, name) for x in xs]


def measure(values, seconds):
    flags = [word for name, value in values.items() for word in ("--" + name, value)]
    return tools.bench("billing", "--steady", "--seconds", seconds, "--no-audit", *flags)


def main():
    a = arguments()
    swept, document = {}, None
    for number in range(a.rounds):
        for name, x, values in points(a):
            tools.progress(f"round {number + 1} of {a.rounds}: {name} {x}")
            document = measure(values, a.seconds)
            swept.setdefault(name, {}).setdefault(x, []).append(document["result"])
    tools.progress("")
    curves = {}
    for name, xs in swept.items():
        print(f"\n{name:>10}{'charges/s':>12}{'p50 ms':>10}{'p99 ms':>10}")
        for x, results in xs.items():
            row = {"x": x, "rates": [r["charges_per_s"] for r in results],
                   "rate": tools.median([r["charges_per_s"] for r in results]),
                   "batch_p50_ms": tools.median([r["batch_p50_ms"] for r in results]),
                   "batch_p99_ms": tools.median([r["batch_p99_ms"] for r in results])}
            curves.setdefault(name, []).append(row)
            print(f"{x:>10}{row['rate']:>12,.0f}{row['batch_p50_ms']:>10.1f}{row['batch_p99_ms']:>10.1f}")
    tools.write(a.json, dict(tools.machine(document), kind="sweep", arguments=vars(a),
                             filesystem=os.environ["BENCH_FILESYSTEM"], curves=curves))


main()
