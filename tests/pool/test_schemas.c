/* schemas: two shops in two schemas of one database, and one Redis. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

#define NOW "2024-01-15T00:00:00Z"

WORLD(.batch = 10, .poll_ms = 20);

/* The same ids in both: 200 users, of whom each owes 14 periods and buys once; of the
 * 150 units of the one SKU, the first half of the orders asks for one each. */
static void fill(const char *schema, int price)
{
    char sql[1400];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = %s; " INTO_USERS "SELECT n, 'USD' FROM generate_series(1,"
        " 200) AS n; SELECT deposit(n, 'USD', 100000, '1') FROM generate_series(1,"
        " 200) AS n; " INTO_SUBSCRIPTIONS "SELECT n, n, 'p', %d, 'USD', at, 'day',"
        " at FROM generate_series(1, 200) AS n, (VALUES ('2024-01-01Z'::timestamptz))"
        " AS t (at); " INTO_STOCK "VALUES (1, 'S', 150, 150, %d, 'USD'); SELECT"
        " place_order(n, 'k', '[{\"sku\": \"S\", \"qty\": 1}]', '2024-01-01Z') FROM"
        " generate_series(1, 200) AS n",
        schema, price, price);
    fixture_exec(world.owner, sql);
}

/* The statements and the program act on the other schema from now on. */
static void use_schema(const char *schema, const char *prefix)
{
    fixture_env("LEDGERLOCK_POSTGRES_SCHEMA", schema);
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", prefix);
}

static void open_second(void)
{
    use_schema("second", "second:");
    fixture_become(&world.f, "ledgerlock_owner");
    world_says(0, "applied migration 001_schema", "migrate --verbose");
    fixture_become(&world.f, "ledgerlock_worker");
}

static void expect(const char *schema, int price)
{
    world_is(200 * 15, "SELECT count(*) FROM %s.charges WHERE amount_minor = %d",
             schema, price);
    world_is(200 * 15 * price,
             "SELECT sum(amount_minor) FROM %s.ledger WHERE kind ="
             " 'charge'",
             schema);
    world_is(150, "SELECT count(*) FROM %s.orders WHERE state = 'fulfilled'", schema);
    world_is(0, "SELECT on_hand FROM %s.stock", schema);
    world_is(200 * (100000 - 15 * price) - 150 * price,
             "SELECT sum(balance_minor) FROM %s.users", schema);
    world_runs(0, "audit --now " NOW);
}

/* Guarantee: Two pools in two schemas of one database, with one Redis, have each its
 * own totals. */
CASE(two_pools_in_two_schemas_have_the_totals_of_each, .close = shop_close)
{
    fill("ledgerlock", 7);
    open_second();
    fill("second", 11);
    /* None of them ends before both have begun. */
    shop_hold("SELECT FROM ledgerlock.users, second.users AS u WHERE users.user_id = 7"
              " AND u.user_id = 7 FOR NO KEY UPDATE");
    starts(&world.f, &world.others, "run -w 2 --now %s --once", NOW);
    use_schema(NULL, NULL);
    pool_start("run -w 2 --now %s --once", NOW);
    world_wait("SELECT EXISTS (SELECT FROM ledgerlock.batches) AND EXISTS (SELECT FROM"
               " second.batches)");
    shop_let_go();
    pool_assert_ends(&world.pool, 0);
    pool_assert_ends(&world.others, 0);
    assert_int_equal(
        world_ask("SELECT (SELECT min(recorded_at) FROM ledgerlock.batches) < (SELECT"
                  " max(recorded_at) FROM second.batches) AND (SELECT min(recorded_at)"
                  " FROM second.batches) < (SELECT max(recorded_at) FROM"
                  " ledgerlock.batches)"),
        1);
    expect("ledgerlock", 7);
    use_schema("second", "second:");
    expect("second", 11);
}

/* A constraint is the schema's own by its name and by its schema. */
CASE(row_of_another_schema_is_parked_by_its_own_constraint)
{
    open_second();
    fill("second", 11);
    world_do(
        "SELECT second.make_months('2024-01-01Z', '2024-01-02Z'); INSERT INTO second.charges (subscription_id, period_no, user_id,"
        " period_start, period_end, amount_minor, state, tries, fence, worker,"
        " charged_at) SELECT 3, 0, 3, '2024-01-01Z', '2024-01-02Z', 11, 'captured',"
        " 1, 0, '', '2024-01-01Z'");
    world_runs(8, "run --once --now " NOW);
    world_is(1, "SELECT count(*) FROM second.subscriptions WHERE state = 'parked' AND"
                " subscription_id = 3");
    world_runs(0, "parked");
    fixture_assert_contains(said.out, "one_charge_per_period");
}

CASE(changes_by_hand_are_found_in_the_schema_that_is_set)
{
    open_second();
    world_do("ALTER TABLE second.users DROP CONSTRAINT balance_never_negative");
    world_says(6, "balance_never_negative", "run --once");
    world_runs(1, "audit");
    fixture_assert_contains(said.out, "schema_as_built");
    use_schema(NULL, NULL);
    world_runs(0, "audit");
}

CASE(schema_that_is_not_there_is_named)
{
    use_schema("third", NULL);
    world_says(6, "the database has no schema third; run `ledgerlock migrate`",
               "run --once");
}

static const struct {
    const char *name;
    const char *schema;
} wrong_names[] = {
    {"a_capital", "Shop"},        {"a_blank", "my shop"},
    {"a_quotation_mark", "a\"b"}, {"a_digit_first", "1shop"},
    {"of_postgres", "pg_shop"},   {"public", "public"},
};

CASE_ROWS(schema_is_refused_by_its_name, wrong_names)
{
    use_schema(row->schema, NULL);
    world_says(3, "postgres.schema must be of small letters", "status");
}
