"""The time of a call of a client function, over one session that does nothing else. Each call is a transaction of its own, with a
COMMIT that reached the disk."""
import tools

SKUS = 1000
USERS = 20000
SCRIPTS = {
    "place_order": "\\set user random(1, {users})\n\\set sku random(1, {skus} - 1)\n"
                   "SELECT place_order(:user, 'call-' || nextval('ledgerlock_bench.calls'), jsonb_build_array("
                   "jsonb_build_object('sku', 'S' || :sku, 'qty', 1),"
                   " jsonb_build_object('sku', 'S' || :sku + 1, 'qty', 2)));\n",
    "deposit": "\\set user random(1, {users})\n"
               "SELECT deposit(:user, 'USD', 100, 'call-' || nextval('ledgerlock_bench.calls'));\n",
}
EFFECTS = {"place_order": "SELECT count(*) FROM ledgerlock.orders",
           "deposit": "SELECT (sum(balance_minor) / 100)::bigint FROM ledgerlock.users"}


def takes_key(build):
    """True if a deposit has a key."""
    return tools.psql("SELECT bool_or(pg_get_function_arguments(oid) LIKE '%p_idempotency_key%') FROM pg_proc WHERE proname = 'deposit'",
                      database=build.database) == "t"


def load(build):
    build.bench("billing", "--load-only", "--rows", USERS)
    tools.psql(f"""INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
                   SELECT 'S' || n, 1000000, 1000000, 100, 'USD' FROM generate_series(1, {SKUS}) AS n;
                   CREATE SEQUENCE IF NOT EXISTS ledgerlock_bench.calls""", "ledgerlock_migrate", build.database)
    tools.psql("VACUUM ANALYZE", database=build.database)


def rate(build, name, calls):
    """Calls a second of a function; each has left its row."""
    before = int(tools.psql(EFFECTS[name], database=build.database))
    made, seconds = tools.pgbench(SCRIPTS[name].format(users=USERS, skus=SKUS), 1, "-t", calls, session=tools.PLAIN,
                                  database=build.database)
    left = int(tools.psql(EFFECTS[name], database=build.database)) - before
    if left != calls:
        tools.fail(f"{calls} calls of {name} have left {left}")
    return made / seconds
