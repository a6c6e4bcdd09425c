/* busy: what was met in a round, what is left out after an error and for how long, and
 * what is said of it, at made-up times. */
#include "tests/lib/test.h"
#include "worker/batch/busy.h"

static struct busy b;

static void forget_all(void)
{
    busy_close(&b);
}

GROUP(.open = forget_all, .close = forget_all);

static void note(int kind, int64_t id, enum busy_cause cause, int64_t now_ms)
{
    (void)busy_note(&b, kind, id, cause, now_ms);
}

CASE(key_is_met_until_the_round_is_over)
{
    assert_false(busy_is_met(&b, RESOURCE_USER, 42, 100000));
    busy_begin(&b);
    note(RESOURCE_USER, 42, BUSY_LOCKED, 100000);
    assert_true(busy_is_met(&b, RESOURCE_USER, 42, 100000));
    assert_true(busy_is_met(&b, RESOURCE_USER, 42, 999000));
    assert_false(busy_is_met(&b, RESOURCE_USER, 43, 100000));
    assert_false(busy_is_met(&b, RESOURCE_SKU, 42, 100000));
    busy_begin(&b);
    assert_false(busy_is_met(&b, RESOURCE_USER, 42, 100000));
}

/* Before the first round: rows that a dead worker left. */
CASE(key_that_is_noted_before_the_first_round_is_known)
{
    note(RESOURCE_SKU, 7, BUSY_LOCKED, 100000);
    assert_true(busy_is_met(&b, RESOURCE_SKU, 7, 100000));
}

/* Ids that nobody would choose, far apart and close together. */
static int64_t draw(int64_t i)
{
    return i % 2 == 0 ? i * i * i : i;
}

CASE(every_key_of_a_hundred_thousand_is_known_and_no_other)
{
    enum { MANY = 100000 };

    for (int round = 0; round < 2; round++) {
        int64_t now_ms = 500000 * round;

        busy_begin(&b);
        for (int64_t i = 1; i <= MANY; i++)
            note((int)(i % 3 == 0), draw(i), BUSY_LOCKED, now_ms);
        for (int64_t i = 1; i <= MANY; i++) {
            assert_true(busy_is_met(&b, i % 3 == 0, draw(i), now_ms));
            assert_false(busy_is_met(&b, i % 3 != 0, draw(i), now_ms));
            assert_false(busy_is_met(&b, i % 3 == 0, -draw(i), now_ms));
        }
    }
}

/* Guarantee: A key that was met in a round is left out to its end, however long the
 * round is and however many keys it meets. */
CASE(key_of_a_long_round_with_many_keys_is_met_to_its_end)
{
    enum { MANY = 10000 };

    busy_begin(&b);
    note(RESOURCE_USER, 42, BUSY_LOCKED, 100000);
    for (int64_t i = 1; i <= MANY; i++)
        note(RESOURCE_SKU, i, BUSY_LOCKED, 200000);
    assert_true(busy_is_met(&b, RESOURCE_USER, 42, 200000));
}

CASE(memory_is_that_of_the_keys_of_a_few_seconds)
{
    for (int64_t round = 1; round <= 1000; round++) {
        busy_begin(&b);
        for (int64_t i = 1; i <= 100; i++)
            note(RESOURCE_USER, round * 1000 + i, BUSY_LOCKED, round * 1000);
    }
    assert_in_range(b.room, 1, 32768);
}

CASE(error_is_left_out_for_a_while_that_doubles_up_to_thirty_seconds)
{
    int64_t now_ms = 100000, most_ms = 300;

    for (int i = 0; i < 12; i++) {
        busy_begin(&b);
        note(RESOURCE_USER, 42, BUSY_ERROR, now_ms);
        busy_begin(&b);
        assert_true(busy_is_met(&b, RESOURCE_USER, 42, now_ms + most_ms / 2 - 1));
        assert_false(busy_is_met(&b, RESOURCE_USER, 42, now_ms + most_ms + 1));
        now_ms += most_ms;
        most_ms = most_ms < 15000 ? most_ms * 2 : 30000;
    }
}

CASE(error_that_was_long_ago_is_forgotten)
{
    for (int i = 0; i < 8; i++)
        note(RESOURCE_USER, 42, BUSY_ERROR, 100000);
    busy_begin(&b);
    assert_true(busy_is_met(&b, RESOURCE_USER, 42, 114000));
    note(RESOURCE_USER, 42, BUSY_ERROR, 200000);
    busy_begin(&b);
    assert_false(busy_is_met(&b, RESOURCE_USER, 42, 200301));
}

CASE(key_is_news_once_in_twenty_seconds_and_with_another_cause)
{
    assert_true(busy_note(&b, RESOURCE_USER, 42, BUSY_LOCKED, 100000));
    assert_true(busy_note(&b, RESOURCE_USER, 42, BUSY_NO_TTL, 100100));
    for (int64_t now_ms = 101000; now_ms < 200000; now_ms += 1000) {
        busy_begin(&b);
        assert_false(busy_note(&b, RESOURCE_USER, 42, BUSY_NO_TTL, now_ms));
    }
    busy_begin(&b);
    assert_true(busy_note(&b, RESOURCE_USER, 42, BUSY_NO_TTL, 230000));
}

CASE(text_names_up_to_five_that_were_met_in_each_round_or_have_an_error)
{
    static const char *const parts[] = {
        "user:42 (its lock is held in Redis)",
        "sku:4 (its row is locked by another session)",
        "user:7 (an error, see the log)",
        "user:43 (its lock has no time to live: ledgerlock locks release)",
    };
    char text[500];

    assert_string_equal(busy_text(&b, 100000, text, sizeof text), "");
    note(RESOURCE_USER, 8, BUSY_ERROR, 90000);
    note(RESOURCE_USER, 7, BUSY_ERROR, 100000);
    for (int64_t round = 0; round < 4; round++) {
        busy_begin(&b);
        note(RESOURCE_USER, 42, BUSY_LOCKED, 100000 + round);
        note(RESOURCE_SKU, 4, BUSY_ROW_LOCKED, 100000 + round);
        note(RESOURCE_USER, 43, BUSY_NO_TTL, 100000 + round);
        if (round % 3 == 0) /* another worker had it, now and then */
            note(RESOURCE_USER, 9, BUSY_LOCKED, 100000 + round);
    }
    busy_begin(&b); /* and is under way */
    (void)busy_text(&b, 100000, text, sizeof text);
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(text, parts[i]));
    assert_null(strstr(text, "user:8 "));
    assert_null(strstr(text, "user:9 "));
    assert_null(strstr(text, "more"));
    assert_non_null(strstr(busy_text(&b, 100003, text, sizeof text), "user:9 "));
    for (int64_t id = 100; id < 120; id++)
        note(RESOURCE_USER, id, BUSY_LOCKED, 100000);
    (void)busy_text(&b, 100000, text, sizeof text);
    assert_non_null(strstr(text, " and 19 more"));
    assert_true(strlen(busy_text(&b, 100000, text, 20)) < 20);
}
