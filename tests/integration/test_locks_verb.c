/* `ledgerlock locks` and `ledgerlock bench locks`, as an operator types them. */
#include <jansson.h>
#include <string.h>

#include "common/lock/lock.h"
#include "tests/lib/fixture.h"

static struct fixture f;
static struct fixture_output o;
static struct ll_client *client;
static struct ll_lock *lock;

static int open_all(void **state)
{
    struct ll_options options = {.size = sizeof options};
    int64_t current;

    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    options.url = f.redis_url;
    options.prefix = f.prefix;
    assert_int_equal(ll_open(&client, &options, NULL, 0), LL_OK);
    assert_int_equal(ll_install_epoch(client, 1, &current), LL_OK);
    lock = ll_new(client);
    return ll_try(lock, "user:42", 60000);
}

static int close_all(void **state)
{
    (void)state;
    (void)ll_release(lock);
    ll_free(lock);
    ll_close(client);
    fixture_close(&f);
    return 0;
}

static void held_lock_is_listed_with_holder_token_and_time_left(void **state)
{
    json_t *doc, *row;

    (void)state;
    assert_int_equal(fixture_run(&f, &o, "locks", NULL), 0);
    fixture_assert_contains(o.out, "user:42");
    fixture_assert_contains(o.out, "1 held");
    assert_int_equal(fixture_run(&f, &o, "locks", "--json", NULL), 0);
    doc = json_loads(o.out, 0, NULL);
    row = json_array_get(json_object_get(doc, "locks"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "key")), "user:42");
    assert_int_equal(json_integer_value(json_object_get(row, "token")), ll_token(lock));
    assert_in_range(json_integer_value(json_object_get(row, "left_ms")), 1, 60000);
    json_decref(doc);
}

static void release_without_a_yes_changes_nothing(void **state)
{
    int64_t left_ms;

    (void)state;
    assert_int_equal(fixture_run(&f, &o, "locks", "release", "user:42", NULL), 2);
    fixture_assert_contains(o.err, "--yes");
    assert_int_equal(ll_verify(lock, &left_ms), LL_OK);
}

static void release_of_a_key_nobody_holds_says_so_and_journals_nothing(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "locks", "release", "user:7", "--yes", NULL),
                     2);
    fixture_assert_contains(o.err, "nobody holds user:7");
    assert_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.lock_incidents"), 0);
}

static void release_takes_the_lock_away_and_is_journaled_as_forced(void **state)
{
    int64_t left_ms;

    (void)state;
    assert_int_equal(fixture_run(&f, &o, "locks", "release", "user:42", "--yes", NULL),
                     0);
    fixture_assert_contains(o.out, "released user:42");
    assert_int_equal(ll_verify(lock, &left_ms), LL_LOST);
    assert_int_equal(
        fixture_query_int8(f.url,
                           "SELECT count(*) FROM ledgerlock.lock_incidents "
                           "WHERE kind = 'forced_unlock' AND resource = 'user:42'"),
        1);
}

static void locks_with_a_wrong_word_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "locks", "free", "user:42", NULL), 2);
    assert_int_equal(fixture_run(&f, &o, "locks", "release", NULL), 2);
}

/* Every figure that docs/locks.md reports is there and was measured. */
static void bench_locks_reports_every_figure(void **state)
{
    static const char *const figures[] = {"1 key: ratio",
                                          "100 keys: ratio",
                                          "1000 keys: ratio",
                                          "64 waiters: hand-overs/s",
                                          "64 waiters: commands/hand-over",
                                          "renewal of 1000 locks: round trips",
                                          "renewal of 1000 locks: ms (slowest round)"};
    json_t *doc;

    (void)state;
    assert_int_equal(fixture_run(&f, &o, "bench", "locks", "--seconds", "1",
                                 "--repetitions", "1", "--json", NULL),
                     0);
    doc = json_loads(o.out, 0, NULL);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        assert_true(json_number_value(json_object_get(json_object_get(doc, "locks"),
                                                      figures[i])) > 0);
    json_decref(doc);
    assert_int_equal(fixture_run(&f, &o, "bench", NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_lock_is_listed_with_holder_token_and_time_left),
        cmocka_unit_test(release_without_a_yes_changes_nothing),
        cmocka_unit_test(release_of_a_key_nobody_holds_says_so_and_journals_nothing),
        cmocka_unit_test(release_takes_the_lock_away_and_is_journaled_as_forced),
        cmocka_unit_test(locks_with_a_wrong_word_is_wrong_use),
        cmocka_unit_test(bench_locks_reports_every_figure),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_all, close_all);
}
