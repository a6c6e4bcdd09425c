/* `ledgerlock locks` and `ledgerlock-bench locks`, as an operator types them. */
#include <jansson.h>

#include "common/lock/lock.h"
#include "tests/lib/one_database.h"

static struct rlock_client *client;
static struct rlock *lock;

static void open_all(void)
{
    struct rlock_options options = {.size = sizeof options};

    one_open();
    fixture_become(&f, "ledgerlock_worker");
    options.url = f.redis_url;
    options.prefix = f.prefix;
    assert_int_equal(rlock_open(&client, &options, NULL, 0), RLOCK_OK);
    lock = rlock_new(client);
    assert_int_equal(rlock_try(lock, "user:42", 600000), 0);
}

static void close_all(void)
{
    (void)!rlock_release(lock);
    rlock_free(lock);
    rlock_close(client);
    one_close();
}

GROUP(.start = open_all, .stop = close_all);

CASE(held_lock_is_listed_with_holder_token_and_time_left)
{
    says(&f, 0, "user:42", "locks");
    shows("1 held");
    runs(&f, 0, "locks --json");
    assert_string_equal(said_text("locks/0/key"), "user:42");
    assert_true(said_number("locks/0/token") == (double)rlock_token(lock));
    assert_in_range(said_number("locks/0/left_ms"), 1, 600000);
}

CASE(release_without_a_yes_or_of_a_key_nobody_holds_changes_nothing)
{
    int64_t left_ms;

    says(&f, 2, "--yes", "locks release user:42");
    assert_int_equal(rlock_verify(lock, &left_ms), RLOCK_OK);
    says(&f, 2, "nobody holds user:7", "locks release user:7 --yes");
    holds(&f, 0, "SELECT count(*) FROM lock_incidents");
}

/* Guarantee: A lock that an operator takes away is recorded as an incident. */
CASE(release_takes_the_lock_away_and_is_journaled_as_forced)
{
    int64_t left_ms;

    says(&f, 0, "released user:42", "locks release user:42 --yes");
    assert_int_equal(rlock_verify(lock, &left_ms), RLOCK_LOST);
    holds(
        &f, 1,
        "SELECT count(*) FROM lock_incidents WHERE kind = 'forced_unlock' AND resource = 'user:42'");
}

CASE(locks_with_a_wrong_word_is_wrong_use)
{
    runs(&f, 2, "locks free user:42");
    runs(&f, 2, "locks release");
}

/* clang-format off */
static const char *const figures[] = {
    "1 key: ratio", "100 keys: ratio", "1000 keys: ratio", "64 waiters: hand-overs/s", "64 waiters: commands/hand-over",
    "1 key: client CPU us", "1 key: server CPU us", "32 idle waiters: writes/s of one", "renewal of 1000 locks: round trips",
    "renewal of 1000 locks: ms (slowest round)", "connect: round trips",
};

/* clang-format on */

/* Every figure that docs/locks.md reports is there and was measured. */
CASE(bench_locks_reports_every_figure)
{
    const char *target = NULL;
    json_t *doc, *locks = NULL;

    runs(&f, 0, "bench locks --seconds 1 --repetitions 1 --json");
    doc = json_loads(said.out, 0, NULL);
    assert_int_equal(json_unpack(doc, "{s:o, s:{s:s}}", "locks", &locks, "targets",
                                 "connect: round trips", &target),
                     0);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        const json_t *figure = json_object_get(locks, figures[i]);

        assert_true(json_is_number(figure));
        if (strstr(figures[i], "idle") == NULL) /* which may write nothing */
            assert_true(json_number_value(figure) > 0);
    }
    fixture_assert_contains(target, "wanted <= 2.00, found ");
    fixture_assert_contains(target, ": met");
    json_decref(doc);
    runs(&f, 2, "bench");
}
