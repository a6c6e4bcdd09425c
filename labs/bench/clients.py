"""`scripts/bench --clients`: the time of a call of a client function, over one session that does nothing else. Each call
is a transaction of its own, with a COMMIT that reached the disk. With --compare the same beside the build of another
checkout, in turn and in rounds."""
import builds as checkouts
import tools

SKUS = 1000
SCRIPTS = {
    "place_order": "\\set user random(1, {users})\n\\set sku random(1, {skus} - 1)\n"
                   "SELECT place_order(:user, 'call-' || nextval('ledgerlock_bench.calls'), jsonb_build_array("
                   "jsonb_build_object('sku', 'S' || :sku, 'qty', 1),"
                   " jsonb_build_object('sku', 'S' || :sku + 1, 'qty', 2)));\n",
    "deposit": "\\set user random(1, {users})\n"
               "SELECT deposit(:user, 'USD', 100, 'call-' || nextval('ledgerlock_bench.calls'));\n",
}
# The first edition numbers the deposits of a user.
NUMBERED = "\\set user random(1, {users})\nSELECT deposit(:user, nextval('ledgerlock_bench.calls'), 100);\n"


def arguments():
    parser = tools.parser_of("clients", __doc__)
    parser.add_argument("--users", type=int, default=20000, help="default 20000")
    parser.add_argument("--calls", type=int, default=2000, help="of each function in a round (default 2000)")
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    parser.add_argument("--compare", type=checkouts.folder, metavar="FOLDER", help="checkout of another build")
    return tools.parse(parser)


def load(build, a):
    tools.progress(f"{build.name}: {a.users} users and {SKUS} SKUs")
    build.bench("billing", "--load-only", "--rows", a.users)
    tools.psql(f"""INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
                   SELECT 'S' || n, 1000000, 1000000, 100, 'USD' FROM generate_series(1, {SKUS}) AS n;
                   CREATE SEQUENCE IF NOT EXISTS ledgerlock_bench.calls""", "ledgerlock_migrate", build.database)
    tools.psql("VACUUM ANALYZE", database=build.database)


def script_of(build, name, a):
    takes_currency = tools.psql("SELECT bool_or(pg_get_function_arguments(oid) LIKE '%p_currency%') FROM pg_proc"
                                " WHERE proname = 'deposit'", database=build.database) == "t"
    script = SCRIPTS[name] if name != "deposit" or takes_currency else NUMBERED
    return script.format(users=a.users, skus=SKUS)


def microseconds(build, script, a):
    calls, seconds = tools.pgbench(script, 1, "-t", a.calls, session=tools.PLAIN, database=build.database)
    return seconds / calls * 1e6


def effects(build):
    """Orders that are there, and deposits of 100 in all wallets."""
    counts = tools.psql("SELECT (SELECT count(*) FROM ledgerlock.orders) || ' ' ||"
                        " (SELECT (sum(balance_minor) / 100)::bigint FROM ledgerlock.users)", database=build.database)
    return [int(count) for count in counts.split()]


def measure(builds, a):
    """Times by function and build; in every other round the other build is first."""
    scripts = {build: {name: script_of(build, name, a) for name in SCRIPTS} for build in builds}
    before = {build: effects(build) for build in builds}
    found = {name: {build.name: [] for build in builds} for name in SCRIPTS}
    for number in range(a.rounds):
        for name in SCRIPTS:
            for build in builds[:: -1 if number % 2 else 1]:
                tools.progress(f"round {number + 1} of {a.rounds}: {name}, {build.name}", number / a.rounds)
                found[name][build.name].append(microseconds(build, scripts[build][name], a))
                tools.tell(f"round {number + 1} of {a.rounds}, {name}, {build.name}: {found[name][build.name][-1]:,.0f} us a call")
    for build in builds:
        made = [after - then for after, then in zip(effects(build), before[build])]
        if made != [a.calls * a.rounds] * 2:
            tools.fail(f"the calls left {made} orders and deposits")
    return found


def main():
    a = arguments()
    builds = checkouts.pair(a.compare) if a.compare else [checkouts.this()]
    for build in builds:
        load(build, a)
    found = measure(builds, a)
    if a.compare:
        results = {name: dict({of: tools.spread(times) for of, times in found[name].items()},
                              calls_a_second_by_the_other=tools.ratios(*reversed(found[name].values()))) for name in found}
    else:
        results = {name: tools.spread(times["this build"]) for name, times in found.items()}
    tools.measure("clients", a, [("us_a_call", lambda _: results)], a.json)


main()
