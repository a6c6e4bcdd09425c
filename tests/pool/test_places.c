/* places: with postgres.places off, every statement finds its rows by key alone. */
#include "common/pg/pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/steps.h"

static const struct pool_work work = {
    .users = 40, .periods = 30, .orders = 60, .units = 50};

WORLD(.work = &work, .batch = 10);

static void leave_places_out(void)
{
    fixture_env("LEDGERLOCK_POSTGRES_PLACES", "off");
    fixture_become(&world.f, "ledgerlock_owner");
    says(&world.f, 0, "applied function apply_charges", "migrate");
    fixture_become(&world.f, "ledgerlock_worker");
}

/* Guarantee: With postgres.places off no statement reads or writes a row by ctid or
 * xmin, and the totals are those of a pool that does. */
CASE(pool_without_places_has_the_same_totals)
{
    leave_places_out();
    world_is(0, "SELECT count(*) FROM pg_proc WHERE pronamespace ="
                " 'ledgerlock'::regnamespace AND regexp_replace(prosrc, '--[^\n]*', '',"
                " 'g') ~ '\\m(ctid|xmin)\\M'");
    world_run_pool("3", pool_work_now(&work));
    pool_work_assert_exact(&world.f, &work);
}

CASE(pool_with_places_is_refused_where_they_are_left_out)
{
    leave_places_out();
    fixture_env("LEDGERLOCK_POSTGRES_PLACES", NULL);
    says(&world.f, 6, "run `ledgerlock migrate`", "run --once");
    world_is(0, "SELECT count(*) FROM charges");
}

/* A decline and a later try, a rejection, and what is parked. */
CASE(declined_rejected_and_parked_rows_are_found_by_key)
{
    leave_places_out();
    world_user(1001, 50);
    world_subscription(1001, 1001, 100, "2024-01-31Z");
    world_user(1002, 50);
    world_subscription(1002, 1002, 10, "2024-01-31Z");
    world_do(
        "SELECT make_months('2024-01-31Z', '2024-02-05Z'); INSERT INTO charges"
        " SELECT 1002, 0, 1002, '2024-01-31Z', '2024-02-29Z', 10, 'captured', 1, 0,"
        " '', '2024-01-31Z'");
    world_run_and_park("2024-02-01T00:00:00Z");
    world_is(1, "SELECT count(*) FROM charges WHERE subscription_id = 1001 AND state ="
                " 'declined' AND tries = 1");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'parked'");
    world_deposit(1001, 2, 100);
    world_run("2024-02-04T00:00:00Z");
    world_is(1, "SELECT count(*) FROM charges WHERE subscription_id = 1001 AND state ="
                " 'captured' AND tries = 2");
}

static struct pg_tid pulled(bool by_key)
{
    static const int64_t one[] = {1};
    struct pg_options options = {.url = world.f.url,
                                 .name = "test",
                                 .schema = "ledgerlock",
                                 .answer_ms = 60000,
                                 .by_key = by_key};
    struct pg_param params[] = {pg_int8_array(one, 1), pg_null()};
    struct pg_result *res = NULL;
    struct pg_array places;
    struct pg_tid place;
    struct pg *pg;
    struct err e = {0};

    if (pg_open(&pg, &options, &e) != 0 ||
        pg_exec(pg, SQL_BILLING_PULL_ITEMS, params, 2, &res, &e) != 0)
        fail_msg("%s", e.msg);
    places = pg_get_tids(res, 0, 3);
    assert_int_equal(places.n, 1);
    place = pg_tid_at(&places, 0);
    pg_result_free(res);
    pg_close(pg);
    return place;
}

CASE(pull_names_no_place_where_they_are_left_out)
{
    assert_int_not_equal(pulled(false).offset, 0);
    assert_int_equal(pulled(true).offset, 0);
    assert_int_equal(pulled(true).block, 0);
}
