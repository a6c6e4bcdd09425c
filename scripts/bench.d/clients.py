"""`scripts/bench --clients`: the time of a call of a client function, over one session that does nothing else. Each call
is a transaction of its own, with a COMMIT that reached the disk."""
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


def arguments():
    parser = tools.parser_of("clients", __doc__)
    parser.add_argument("--users", type=int, default=20000, help="default 20000")
    parser.add_argument("--calls", type=int, default=2000, help="of each function in a round (default 2000)")
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    return tools.parse(parser)


def load(a):
    tools.progress(f"{a.users} users and {SKUS} SKUs")
    tools.bench("billing", "--load-only", "--rows", a.users)
    tools.psql(f"""INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
                   SELECT 'S' || n, 1000000, 1000000, 100, 'USD' FROM generate_series(1, {SKUS}) AS n;
                   CREATE SEQUENCE IF NOT EXISTS ledgerlock_bench.calls""", "ledgerlock_owner")
    tools.psql("VACUUM ANALYZE")


def microseconds(a, name):
    script = SCRIPTS[name].format(users=a.users, skus=SKUS)
    calls, seconds = tools.pgbench(script, 1, "-t", a.calls, session=tools.PLAIN)
    return seconds / calls * 1e6


def main():
    a = arguments()
    load(a)
    found = {name: tools.spread([microseconds(a, name) for _ in range(a.rounds)]) for name in SCRIPTS}
    made = tools.psql("SELECT (SELECT count(*) FROM ledgerlock.orders) || ' ' ||"
                      " (SELECT count(*) FROM ledgerlock.deposits WHERE idempotency_key LIKE 'call-%')")
    if made != f"{a.calls * a.rounds} {a.calls * a.rounds}":
        tools.fail(f"the calls left {made} orders and deposits")
    tools.finish("clients", a, {"us_a_call": found}, a.json)


main()
