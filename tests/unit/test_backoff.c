/* backoff: what is left out of the pulls, for how long, and what is said of it, at
 * made-up times. */
#include "tests/lib/test.h"
#include "worker/batch/backoff.h"

static struct backoff b;
static int64_t ids[BACKOFF_MAX];

static void forget_all(void)
{
    memset(&b, 0, sizeof b);
}

GROUP(.open = forget_all);

static bool is_left_out(int kind, int64_t id, int64_t now_ms)
{
    size_t n = backoff_list(&b, kind, now_ms, ids);

    for (size_t i = 0; i < n; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

CASE(key_is_left_out_at_once_for_a_while_that_doubles_up_to_a_second)
{
    int64_t now_ms = 100000, most_ms = 10;

    for (int i = 0; i < 12; i++) {
        assert_int_equal(backoff_note(&b, RESOURCE_USER, 42, BACKOFF_LOCKED, now_ms),
                         i == 0);
        assert_true(is_left_out(RESOURCE_USER, 42, now_ms + most_ms / 2 - 1));
        assert_false(is_left_out(RESOURCE_USER, 42, now_ms + most_ms));
        now_ms += most_ms;
        most_ms = most_ms < 500 ? most_ms * 2 : 1000;
    }
    assert_false(is_left_out(RESOURCE_USER, 43, now_ms));
    assert_false(is_left_out(RESOURCE_SKU, 42, now_ms));
}

CASE(key_whose_lease_ends_is_left_out_no_longer)
{
    for (int i = 0; i < 10; i++)
        (void)backoff_note(&b, RESOURCE_USER, 42, BACKOFF_LOCKED, 100000);
    backoff_end_by(&b, RESOURCE_USER, 42, 200000);
    assert_true(is_left_out(RESOURCE_USER, 42, 100499));
    backoff_end_by(&b, RESOURCE_USER, 42, 100300);
    assert_true(is_left_out(RESOURCE_USER, 42, 100299));
    assert_false(is_left_out(RESOURCE_USER, 42, 100300));
    backoff_end_by(&b, RESOURCE_USER, 43, 100300);
    assert_false(is_left_out(RESOURCE_USER, 43, 100299));
}

/* How many of a thousand others are taken for one that was met. */
static int false_hits(bool was[1000])
{
    int n = 0;

    for (int64_t id = 0; id < 1000; id++) {
        was[id] = backoff_is_met(&b, RESOURCE_USER, 1000000 + id);
        n += was[id];
    }
    return n;
}

/* Beyond what is remembered, too. */
CASE(keys_that_were_met_are_known_until_a_pull_begins_anew)
{
    bool first[1000], second[1000];
    int both = 0;

    for (int round = 0; round < 2; round++) {
        backoff_mark(&b, 500000 * round);
        for (int64_t id = 1; id <= 3 * BACKOFF_MAX; id++)
            (void)backoff_note(&b, RESOURCE_USER, id, BACKOFF_LOCKED, 500000 * round);
        for (int64_t id = 1; id <= 3 * BACKOFF_MAX; id++)
            assert_true(backoff_is_met(&b, RESOURCE_USER, id));
        assert_in_range(false_hits(round == 0 ? first : second), 0, 200);
    }
    for (int i = 0; i < 1000; i++)
        both += first[i] && second[i];
    assert_in_range(both, 0, 20);
    (void)backoff_note(&b, RESOURCE_SKU, 7, BACKOFF_LOCKED, 2000000);
    backoff_mark(&b, 2000001);
    assert_true(backoff_is_met(&b, RESOURCE_SKU, 7)); /* it still is left out */
    for (int64_t id = 1; id <= 10; id++)
        assert_false(backoff_is_met(&b, RESOURCE_USER, id));
}

CASE(error_is_left_out_for_longer)
{
    (void)backoff_note(&b, RESOURCE_USER, 42, BACKOFF_ERROR, 100000);
    assert_true(is_left_out(RESOURCE_USER, 42, 100149));
    assert_false(is_left_out(RESOURCE_USER, 42, 100300));
}

CASE(new_cause_is_news)
{
    assert_true(backoff_note(&b, RESOURCE_USER, 42, BACKOFF_LOCKED, 100000));
    assert_false(backoff_note(&b, RESOURCE_USER, 42, BACKOFF_LOCKED, 100100));
    assert_true(backoff_note(&b, RESOURCE_USER, 42, BACKOFF_NO_TTL, 100200));
}

CASE(wait_is_until_the_first_pause_that_ends)
{
    assert_int_equal(backoff_wait_ms(&b, 100000), 0);
    for (int i = 0; i < 8; i++)
        (void)backoff_note(&b, RESOURCE_USER, 1, BACKOFF_LOCKED, 100000);
    (void)backoff_note(&b, RESOURCE_USER, 7, BACKOFF_LOCKED, 100000);
    assert_in_range(backoff_wait_ms(&b, 100000), 5, 10);
    assert_in_range(backoff_wait_ms(&b, 100010), 401, 1000);
    assert_int_equal(backoff_wait_ms(&b, 101000), 0);
    assert_int_equal(b.n, 2);
    assert_int_equal(backoff_wait_ms(&b, 111001), 0); /* ten seconds later */
    assert_int_equal(b.n, 0);
}

CASE(what_ends_first_makes_room_when_the_list_is_full)
{
    (void)backoff_note(&b, RESOURCE_USER, 1, BACKOFF_LOCKED, 90000);
    for (int64_t id = 2; id <= BACKOFF_MAX; id++)
        (void)backoff_note(&b, RESOURCE_USER, id, BACKOFF_LOCKED, 100000);
    assert_int_equal(b.n, BACKOFF_MAX);
    assert_true(backoff_note(&b, RESOURCE_USER, 5000, BACKOFF_LOCKED, 100000));
    assert_int_equal(b.n, BACKOFF_MAX);
    assert_true(is_left_out(RESOURCE_USER, 5000, 100001));
    assert_true(is_left_out(RESOURCE_USER, 2, 100001));
    assert_true(backoff_note(&b, RESOURCE_USER, 1, BACKOFF_LOCKED, 100000));
}

CASE(text_names_the_first_five_that_could_not_be_had_of_late)
{
    char text[500];

    assert_string_equal(backoff_text(&b, 100000, text, sizeof text), "");
    (void)backoff_note(&b, RESOURCE_USER, 9, BACKOFF_LOCKED, 90000);
    (void)backoff_note(&b, RESOURCE_USER, 42, BACKOFF_LOCKED, 100000);
    (void)backoff_note(&b, RESOURCE_SKU, 4, BACKOFF_ROW_LOCKED, 100000);
    (void)backoff_note(&b, RESOURCE_USER, 7, BACKOFF_ERROR, 100000);
    (void)backoff_note(&b, RESOURCE_USER, 43, BACKOFF_NO_TTL, 100000);
    assert_string_equal(
        backoff_text(&b, 100000, text, sizeof text),
        "user:42 (its lock is held in Redis), sku:4 (its row is locked by another "
        "session), user:7 (an error, see the log), user:43 (its lock has no time to "
        "live: ledgerlock locks release)");
    for (int64_t id = 100; id < 120; id++)
        (void)backoff_note(&b, RESOURCE_USER, id, BACKOFF_LOCKED, 100000);
    (void)backoff_text(&b, 100000, text, sizeof text);
    assert_non_null(strstr(text, "user:100 (its lock is held in Redis) and 19 more"));
    assert_true(strlen(backoff_text(&b, 100000, text, 20)) < 20);
}
