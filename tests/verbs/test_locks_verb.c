/* `ledgerlock locks`, as an operator types it. */
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
