/* blame: a row is parked for what our own constraints say of it, and for nothing else.
 * An error of anybody else's making parks nothing, is said once, holds up no row that
 * it does not concern, and ends the pool when nothing can be committed any more. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

enum { MORE = 120 }; /* rows of user 7 on top of his one: more than a batch */

/* Orders in any order: all workers of both jobs meet the error. */
static void open_shop(void)
{
    shop_open();
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
}

GROUP(.open = open_shop, .end = world_end, .close = shop_close);

/* Triggers that do this when a row is worked: `users` is a condition on user_id. */
static void plant_triggers(const char *users, const char *body)
{
    world_do("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF NEW.user_id %s THEN %s; END IF; RETURN NULL; END $$;"
             " CREATE TRIGGER refuse AFTER INSERT ON charges FOR EACH ROW EXECUTE"
             " FUNCTION refuse();"
             " CREATE TRIGGER refuse AFTER UPDATE ON orders FOR EACH ROW EXECUTE"
             " FUNCTION refuse()",
             users, body);
}

/* Somebody's constraint triggers that raise at COMMIT, over user 7. */
#define RAISE_AT_COMMIT(state)                                                                  \
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF"                  \
    " NEW.user_id = 7 THEN " RAISE(                                                             \
        state) "; END IF; RETURN NULL; END $$;"                                                 \
               " CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON charges DEFERRABLE INITIALLY" \
               " DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();"                              \
               " CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON orders DEFERRABLE INITIALLY"  \
               " DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"

#define NO_MONTH "a month has no partition"
#define RAISE(state) "RAISE EXCEPTION 'somebody''s trigger' USING ERRCODE = '" state "'"

/* Plants a trigger with this body, does these statements, or both. */
static void plant(const char *users, const char *body, const char *statements)
{
    if (body != NULL)
        plant_triggers(users, body);
    if (statements != NULL)
        world_do("%s", statements);
}

/* ---- nothing can be committed ---- */

static const struct {
    const char *name;
    const char *body;       /* of a trigger on every row, */
    const char *statements; /* as the owner */
    const char *says;       /* in the log */
} faults[] = {
    {"a_trigger_that_raises", RAISE("P0001"), NULL, "somebody"},
    {"xx000", RAISE("XX000"), NULL, "somebody"},
    {"an_unreachable_server_of_somebodys", RAISE("08001"), NULL, "somebody"},
    {"a_full_disk", RAISE("53100"), NULL, "somebody"},
    {"a_missing_partition_which_is_a_23514_without_a_name", RAISE("23514"), NULL,
     NO_MONTH},
    {"a_check_of_another_schema", "INSERT INTO others.notes VALUES (NEW.user_id)",
     "CREATE SCHEMA others; CREATE TABLE others.notes (n bigint CONSTRAINT of_others"
     " CHECK (n < 0)); GRANT USAGE ON SCHEMA others TO PUBLIC; GRANT INSERT ON"
     " others.notes TO PUBLIC",
     "of_others"},
    {"a_state_that_nobody_has_mapped_by_statement_triggers", NULL,
     "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
     " EXCEPTION 'somebody''s trigger' USING ERRCODE = 'ZZ001'; END $$;"
     " CREATE TRIGGER refuse BEFORE INSERT ON charges EXECUTE FUNCTION refuse();"
     " CREATE TRIGGER refuse BEFORE UPDATE ON orders EXECUTE FUNCTION refuse()",
     "somebody"},
    {"a_check_of_somebodys", NULL,
     "ALTER TABLE charges ADD CONSTRAINT somebodys CHECK (tries = 0);"
     " ALTER TABLE orders ADD CONSTRAINT somebodys CHECK (state = 'pending')",
     "somebodys"},
};

static void assert_has_ended(const char *says)
{
    assert_int_equal(said.code, 9);
    assert_int_equal(shop_log_count("event=pool.fault "), 1);
    assert_int_equal(shop_log_count("event=pool.giving_up"), 1);
    fixture_assert_contains(said.err, says);
    assert_int_equal(shop_log_count(NO_MONTH) > 0, strcmp(says, NO_MONTH) == 0);
    promise_int_equal(world_parked(), 0);
    world_is(0, "SELECT count(*) FROM charges");
}

/* Guarantee: An error that is no row's own parks nothing, is said once, and ends the
 * pool with exit code 9 when it lets nothing be committed for pool.give_up_ms. */
CASE_ROWS(pool_ends_over_every_row_with, faults, .every = 3)
{
    plant("> 0", row->body, row->statements);
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "1000");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000"); /* --once ends after three */
    (void)shop_run_with("4");
    fixture_assert_contains(said.out, "0 parked, stopped before all was done");
    promise_true(strstr(said.out, "nothing left") == NULL);
    assert_has_ended(row->says);
}

/* Tried again; when they have no end they are a fault. */
static const struct {
    const char *name, *body, *says;
} collisions[] = {
    {"serialization_failures", RAISE("40001"), "PL/pgSQL function refuse() line"},
    {"deadlocks", RAISE("40P01"), "PL/pgSQL function refuse() line"},
    {"a_trigger_that_sleeps", "PERFORM pg_sleep(30)", "pg_sleep(30)"},
};

/* Not with --once, which may leave the rows before. */
/* Guarantee: Collisions and timeouts that let nothing be committed end the pool like
 * any other error, which names the statement that met them. */
CASE_ROWS(pool_ends_over_nothing_but, collisions, .every = 2)
{
    plant_triggers("> 0", row->body);
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "1000");
    (void)fixture_run(&world.f, &said, "run", "-w", "4", "--now", SHOP_NOW, NULL);
    assert_has_ended("event=pool.fault ");
    fixture_assert_contains(said.err, row->says);
}

/* ---- a few rows cannot be committed ---- */

static const struct {
    const char *name;
    const char *body;       /* of a trigger on the rows of user 7, or */
    const char *statements; /* as the owner */
} refusals[] = {
    {"a_trigger_that_raises", RAISE("P0001"), NULL},
    {"a_missing_partition", RAISE("23514"), NULL},
    {"a_conflict_without_an_end", RAISE("40001"), NULL},
    {"a_trigger_that_sleeps", "PERFORM pg_sleep(30)", NULL},
    {"an_unreachable_server_of_somebodys", RAISE("08001"), NULL},
    {"an_overflow_in_somebodys_table", "UPDATE tally SET n = n + 1",
     "CREATE TABLE tally AS SELECT 2147483647 AS n; GRANT ALL ON tally TO PUBLIC"},
    {"a_right_that_is_missing_at_commit", NULL, RAISE_AT_COMMIT("42501")},
    {"an_ended_session_at_commit", NULL, RAISE_AT_COMMIT("57P05")},
    {"a_trigger_that_wants_an_absent_table", "PERFORM 1 FROM nowhere.nothing", NULL},
    {"a_check_of_somebodys", NULL,
     "ALTER TABLE charges ADD CONSTRAINT somebodys CHECK (user_id <> 7);"
     " ALTER TABLE orders ADD CONSTRAINT somebodys CHECK (user_id <> 7 OR state ="
     " 'pending') NOT VALID"},
};

/* Guarantee: An error over one user's rows parks nothing and holds up nobody else. */
CASE_ROWS(others_flow_while_one_user_meets, refusals, .every = 3)
{
    shop_subscribe(SHOP_TROUBLE, MORE, 1);
    shop_order(SHOP_TROUBLE, SHOP_SKU, MORE);
    plant("= 7", row->body, row->statements);
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "600000");
    (void)shop_run_met();
    shop_assert_others_done();
    assert_int_equal(said.code, 7);
    fixture_assert_contains(
        said.out, "billing: 199 charged, 0 declined, 0 planned, 0 cancelled, 0 parked,"
                  " left: user:7 (");
    fixture_assert_contains(
        said.out,
        "orders: 199 fulfilled, 0 rejected, 0 planned, 0 parked, left: user:7 (");
    promise_int_equal(world_parked(), 0);
}

/* Guarantee: An error over one row among others is said by the worker that meets it. */
CASE(error_over_one_row_among_others_is_said)
{
    plant_triggers("= 20", RAISE("P0001"));
    (void)shop_run_met();
    assert_int_equal(said.code, 7);
    assert_in_range(shop_log_count("event=worker.left_out"), 1, 8); /* one a worker */
    fixture_assert_contains(said.err, "somebody's trigger");
    world_is(SHOP_USERS - 1, "SELECT count(*) FROM charges");
    promise_int_equal(world_parked(), 0);
}

/* Guarantee: Orders flow behind those of any number of users that meet an error. */
CASE(orders_flow_behind_those_of_1500_users_that_meet_an_error)
{
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "placed");
    fixture_env("LEDGERLOCK_POOL_BATCH", "1000");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "10000"); /* 1500 are tried one by one */
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "600000");
    world_do(INTO_USERS
             "SELECT u, 'USD' FROM generate_series(1001, 2500) AS u; " INTO_ORDERS
             "SELECT user_id, user_id, '1', '', 0, 'USD', " SHOP_FIRST
             " FROM users WHERE user_id > 1000; " INTO_LINES "SELECT order_id, %d,"
             " 0, 1 FROM orders WHERE order_id > 1000; ANALYZE",
             SHOP_SKU);
    plant_triggers("> 1000", RAISE("P0001"));
    pool_start("run --jobs orders --now " SHOP_NOW);
    world_wait(
        "SELECT count(*) = 200 FROM ledgerlock.orders WHERE state = 'fulfilled'");
    pool_stop();
    promise_int_equal(world_parked(), 0);
}

/* ---- over time ---- */

/* One worker meets the error, and another does the rows when it is over. */
/* Guarantee: A pool that met an error works on when it is over. */
CASE(fault_that_is_over_is_forgotten)
{
    plant_triggers("> 0", RAISE("P0001"));
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "60000");
    pool_start("run -w 4 --now %s", SHOP_NOW);
    pool_log_wait(&world.pool, "event=pool.fault ");
    fixture_pause_ms(500);
    world_do("DROP FUNCTION refuse CASCADE");
    pool_log_wait(&world.pool, "event=pool.fault_over");
    pool_work_wait(2 * (int64_t)SHOP_USERS);
    pool_stop();
    pool_logged(1, "event=pool.fault ");
    world_is(SHOP_USERS, "SELECT count(*) FROM charges");
    promise_int_equal(world_parked(), 0);
}
