/* strips: what a pull of subscriptions takes first, how close together it lies, and
 * what the look before it tells. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "sql_gen.h"
#include "tests/lib/world.h"

static const char noon[] = "2026-06-01 12:00:00+00";

/* A statement of the product with $1, and $2 and $3 if it has them. */
static PGresult *ask(enum sql_id id, size_t n, const char *const *values)
{
    PGconn *conn = PQconnectdb(world.f.url);
    PGresult *res = PQexecParams(conn, (const char *)sql_texts[id].text, (int)n, NULL,
                                 values, NULL, NULL, 0);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql_texts[id].stem, PQerrorMessage(conn));
    PQfinish(conn);
    return res;
}

/* The subscriptions that a pull takes at noon, in their order; behind a space, how many
 * of the buckets it is through with. */
static const char *pulled_from(const char *buckets, const char *limit)
{
    static char text[500 * 8];
    PGresult *res =
        ask(SQL_BILLING_PULL_DUE, 3, (const char *const[]){buckets, noon, limit});
    const char *items = PQgetvalue(res, 0, 0); /* {1,2}, or null */

    items += items[0] == '{';
    (void)snprintf(text, sizeof text, "%.*s %s", (int)strcspn(items, "}"), items,
                   PQgetvalue(res, 0, 5));
    PQclear(res);
    return text;
}

/* The same from bucket 0, and the subscriptions alone. */
static char *pulled(const char *limit)
{
    static char text[500 * 8];

    (void)snprintf(text, sizeof text, "%s", pulled_from("{0}", limit));
    *strchr(text, ' ') = '\0';
    return text;
}

/* One subscription of a user, with the number of the user. */
static void due_at(int64_t user_id, const char *time)
{
    world_user(user_id, 100000);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, "
             "currency, anchor_at, unit, next_due_at) SELECT %" PRId64 ", %" PRId64
             ", 'p', 10, 'USD', at, 'month', at FROM CAST('2026-06-01 "
             "%s+00' AS timestamptz) AS at",
             user_id, user_id, time);
}

/* Users 1 and 2 share a strip; user 2048 is of another strip of the same bucket, user
 * 32 of another bucket. */
static void fill_two_strips(void)
{
    due_at(1, "09:00");
    due_at(2, "11:00");
    due_at(3, "12:01");
    due_at(2048, "10:00");
    due_at(32, "08:00");
}

static void strip_whose_oldest_waits_longest_comes_first(void **state)
{
    (void)state;
    fill_two_strips();
    assert_string_equal(pulled("2"), "1,2");
    assert_string_equal(pulled("10"), "1,2,2048");
    world_do("UPDATE subscriptions SET next_due_at = '2026-06-01 08:30+00' "
             "WHERE user_id = 2048");
    assert_string_equal(pulled("10"), "2048,1,2");
}

static void every_strip_is_served_whatever_comes_due_behind(void **state)
{
    (void)state;
    fill_two_strips();
    world_do("UPDATE subscriptions SET next_due_at = next_due_at - interval '1 year'");
    for (int i = 0; i < 4; i++) { /* a month each; one row a pull */
        const char *head = pulled("1");

        world_do("UPDATE subscriptions SET next_due_at = next_due_at + interval '1 "
                 "month' WHERE subscription_id = %s",
                 head);
    }
    assert_int_equal(world_ask("SELECT count(*) FROM subscriptions WHERE user_id IN "
                               "(1, 2, 3, 2048) AND next_due_at < '2025-07-01'"),
                     0);
}

static void pull_that_is_not_full_goes_on_with_the_next_bucket(void **state)
{
    (void)state;
    fill_two_strips();
    assert_string_equal(pulled_from("{0,1}", "10"), "1,2,2048,32 2");
    assert_string_equal(pulled_from("{1,0}", "10"), "32,1,2,2048 2");
    assert_string_equal(pulled_from("{7,0,1}", "2"), "1,2 1");
    assert_string_equal(pulled_from("{0,1}", "3"), "1,2,2048 0");
    assert_string_equal(pulled_from("{0,1}", "4"), "1,2,2048,32 1");
    assert_string_equal(pulled_from("{7,8}", "4"), " 2");
}

/* One of each bucket: one transaction, not 64. */
static void few_rows_of_many_buckets_are_one_batch(void **state)
{
    (void)state;
    for (int64_t bucket = 0; bucket < 64; bucket++)
        due_at(bucket * 32 + 1, "09:00");
    world_run(noon);
    world_expect("64 1",
                 "SELECT count(*) || ' ' || count(DISTINCT fence) FROM charges");
}

/* Without strips, 500 of the 3,125 of a bucket would lie on nearly all its 112 pages.
 */
static void batch_of_a_large_table_lies_on_few_pages(void **state)
{
    int64_t pages;

    (void)state;
    world_do(
        "INSERT INTO users (user_id, currency) SELECT g, 'USD' FROM "
        "generate_series(1, 200000) AS g; INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, "
        "currency, anchor_at, unit, next_due_at) SELECT g, g, 'p', 10, 'USD', at, "
        "'month', at FROM generate_series(1, 200000) AS g, LATERAL (SELECT "
        "timestamptz '2026-05-01Z' + (hashint8(g) & 1048575) * interval '1 s') AS "
        "t (at)");
    pages = world_ask("SELECT count(DISTINCT (ctid::text::point)[0]) FROM "
                      "subscriptions WHERE subscription_id IN (%s)",
                      pulled("500"));
    print_message("500 rows on %" PRId64 " pages\n", pages);
    assert_in_range(pages, 500 / 60, 45);
}

/* What the look at noon tells of the minute after it: bucket:milliseconds of each. */
static const char *looked(void)
{
    static char text[64 * 16];
    PGresult *res =
        ask(SQL_BILLING_DUE_BUCKETS, 2, (const char *const[]){noon, "60000"});
    size_t n = 0;

    for (int i = 0; i < PQntuples(res); i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s:%s",
                              PQgetvalue(res, i, 0), PQgetvalue(res, i, 1));
    PQclear(res);
    return text;
}

static void look_tells_each_bucket_with_anything_due_within_a_minute(void **state)
{
    (void)state;
    due_at(1, "12:01:30");
    due_at(2048, "12:00:01.500");
    due_at(32, "11:59");
    due_at(64, "12:01:01");
    assert_string_equal(looked(), " 0:1500 1:0");
}

static void look_tells_the_first_of_all_strips_of_a_bucket(void **state)
{
    (void)state;
    due_at(1, "12:00:30");
    due_at(2048, "11:00");
    due_at(32, "12:00:30");
    due_at(2048 + 32, "12:00:10");
    due_at(64, "12:00:10");
    due_at(2048 + 64, "12:00:30");
    assert_string_equal(looked(), " 0:0 1:10000 2:10000");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(strip_whose_oldest_waits_longest_comes_first),
        TEST(every_strip_is_served_whatever_comes_due_behind),
        TEST(pull_that_is_not_full_goes_on_with_the_next_bucket),
        TEST(few_rows_of_many_buckets_are_one_batch),
        TEST(batch_of_a_large_table_lies_on_few_pages),
        TEST(look_tells_each_bucket_with_anything_due_within_a_minute),
        TEST(look_tells_the_first_of_all_strips_of_a_bucket),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
