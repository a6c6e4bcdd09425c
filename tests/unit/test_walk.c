/* walk: who steps back, who is served alone, how large a batch may get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/walk.h"

enum { BUCKET = 7, LEASE_MS = 10000 };

static struct walk w;
static struct walk_line lines[WALK_BUCKETS];

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < WALK_OVERDUE; i++)
        lines[BUCKET].youngest[i] = 0;
    w = (struct walk){.limit = 100, .lines = lines};
    return 0;
}

static int64_t may_after(int64_t now_ms)
{
    int64_t left = INT64_MAX;

    return walk_may(&w, BUCKET, now_ms, &left) ? 0 : left;
}

static void learn(size_t pulled, size_t worked, int64_t first, bool first_worked)
{
    walk_learn(&w, BUCKET,
               &(struct walk_turn){.pulled = pulled,
                                   .worked = worked,
                                   .first = first,
                                   .first_worked = first_worked,
                                   .queued = true},
               1000);
}

static void bucket_never_visited_may_be(void **state)
{
    (void)state;
    assert_int_equal(may_after(0), 0);
    assert_false(walk_is_patient(&w, BUCKET));
}

static void mostly_busy_bucket_is_left_alone_for_a_while(void **state)
{
    (void)state;
    learn(100, 49, 1, true);
    assert_true(may_after(1000) > 0);
    assert_int_equal(may_after(1000 + 300), 0);
    learn(100, 50, 1, true);
    assert_int_equal(may_after(1000), 0);
}

static void worker_begins_at_its_own_place_and_goes_round(void **state)
{
    int64_t buckets[] = {41, 42, 43, 44};
    const int64_t by_the_third[] = {43, 44, 41, 42};
    const int64_t in_order[] = {41, 42, 43, 44};

    (void)state;
    walk_turn_to(buckets, 4, 0);
    assert_memory_equal(buckets, in_order, sizeof buckets);
    walk_turn_to(buckets, 4, WALK_BUCKETS / 2 + 3); /* few left, the same way apart */
    assert_memory_equal(buckets, by_the_third, sizeof buckets);
    walk_turn_to(buckets, 0, 7);
}

/* A batch of many buckets does not tell where it was busy: each is then asked alone. */
static void bucket_with_anything_busy_does_not_go_along(void **state)
{
    struct walk_turn some = {.pulled = 100, .worked = 99}, all = {.worked = 0};

    (void)state;
    assert_true(walk_may_go_along(&w, BUCKET, 1000));
    walk_learn_along(&w, BUCKET, &some, 1000);
    assert_false(walk_may_go_along(&w, BUCKET, 1000));
    walk_learn(&w, BUCKET, &all, 1000);
    assert_true(walk_may_go_along(&w, BUCKET, 1000));
    walk_learn(&w, BUCKET, &some, 1000);
    assert_false(walk_may_go_along(&w, BUCKET, 1000));
}

static void bucket_stepped_back_from_does_not_go_along(void **state)
{
    struct walk_turn refused = {.pulled = 9};

    (void)state;
    walk_learn_along(&w, BUCKET, &refused, 1000);
    assert_true(may_after(1000) > 0);
    w.buckets[BUCKET].is_alone = false;
    assert_false(walk_may_go_along(&w, BUCKET, 1000));
    assert_true(walk_may_go_along(&w, BUCKET, 1000 + 300));
}

static void stepping_back_has_a_limit(void **state)
{
    int64_t longest = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        learn(100, 0, 1, false);
        longest = may_after(1000) > longest ? may_after(1000) : longest;
    }
    assert_true(longest > 30 && longest <= 65);
}

static void
mostly_busy_batch_rests_from_every_bucket_no_longer_than_a_few_turns(void **state)
{
    struct walk_turn fine = {.pulled = 9, .worked = 9, .youngest = 1, .took_ms = 100};
    int64_t longest = 0, left = INT64_MAX;

    (void)state;
    for (int i = 0; i < 200; i++) {
        walk_learn(&w, BUCKET, &fine, 1000);
        assert_true(walk_may(&w, BUCKET + 1, 1000, &left));
    }
    for (int i = 0; i < 200; i++) {
        learn(100, 0, 1, false);
        longest = w.rest_until_ms > longest ? w.rest_until_ms : longest;
    }
    assert_in_range(longest - 1000, 400, 8 * 101 + 1);
    assert_false(walk_may(&w, BUCKET + 1, w.rest_until_ms - 1, &left));
    assert_int_equal(left, 1);
}

static void
mostly_busy_batch_that_did_not_wait_its_turn_is_no_reason_to_rest(void **state)
{
    struct walk_turn busy = {.pulled = 100, .worked = 49, .first = 1, .took_ms = 9};
    int64_t left = INT64_MAX;

    (void)state;
    assert_true(walk_is_mostly_busy(&busy));
    walk_learn(&w, BUCKET, &busy, 1000);
    assert_true(walk_may(&w, BUCKET + 1, 1000, &left));
    busy.queued = true;
    walk_learn(&w, BUCKET, &busy, 1000);
    assert_false(walk_may(&w, BUCKET + 1, 1000, &left));
}

static void
bucket_in_which_nothing_was_free_is_waited_for_first_for_a_while(void **state)
{
    struct walk_turn refused = {.pulled = 100, .first = 1}, fine = {.queued = true};
    int turns = 0;

    (void)state;
    fine.pulled = fine.worked = 100;
    walk_learn(&w, BUCKET, &refused, 1000);
    assert_false(walk_is_shared(&w, BUCKET + 1));
    for (; walk_is_shared(&w, BUCKET) && turns < 100; turns++)
        walk_learn(&w, BUCKET, &fine, 1000);
    assert_in_range(turns, 4, 20);
    w.lines = NULL;
    walk_learn(&w, BUCKET, &refused, 1000);
    assert_false(walk_is_shared(&w, BUCKET));
}

/* A batch that went as far as this row. */
static void serve(int64_t youngest)
{
    walk_learn(&w, BUCKET,
               &(struct walk_turn){.pulled = 1, .worked = 1, .youngest = youngest},
               1000);
}

static void rows_below_what_n_batches_reached_were_overtaken_n_times(void **state)
{
    (void)state;
    serve(50);
    serve(20);
    serve(40);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), WALK_LATE), 0);
    serve(30);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), WALK_LATE), 20);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), 1), 50);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), WALK_OVERDUE), 0);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET + 1), 1), 0);
}

static void batches_that_went_less_far_are_forgotten(void **state)
{
    (void)state;
    for (int64_t i = 1; i <= 100; i++)
        serve(i * 7 % 101);
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), WALK_OVERDUE),
                     101 - WALK_OVERDUE);
    w.lines = NULL;
    assert_int_equal(walk_overtaken(walk_line(&w, BUCKET), 1), 0);
}

static void row_overtaken_four_times_is_served_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_false(walk_is_patient(&w, BUCKET));
        learn(100, 60, 42, false);
    }
    assert_true(walk_is_patient(&w, BUCKET));
    learn(1, 1, 42, true);
    assert_false(walk_is_patient(&w, BUCKET));
}

/* It may be with somebody who never gives it back. */
static void row_served_alone_in_vain_lets_the_others_have_their_turns(void **state)
{
    struct walk_turn alone = {.pulled = 1, .first = 1, .patient = true};

    (void)state;
    for (int i = 0; i < 4; i++)
        learn(100, 99, 1, false);
    assert_true(walk_is_patient(&w, BUCKET));
    walk_learn(&w, BUCKET, &alone, 1000);
    for (int i = 0; i < 3; i++) {
        assert_false(walk_is_patient(&w, BUCKET));
        learn(100, 99, 1, false);
    }
    assert_false(walk_is_patient(&w, BUCKET));
    learn(100, 99, 1, false);
    assert_true(walk_is_patient(&w, BUCKET));
}

static void another_first_row_begins_anew(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        learn(100, 60, i + 1, false);
    assert_false(walk_is_patient(&w, BUCKET));
}

static void slow_turn_makes_the_next_batch_smaller_and_a_fast_one_larger(void **state)
{
    struct walk_turn slow = {.pulled = 100, .worked = 100, .took_ms = 2000};
    struct walk_turn fast = {.pulled = 50, .worked = 50, .took_ms = 10};

    (void)state;
    walk_fit(&w, &slow, 500, LEASE_MS);
    assert_int_equal(w.limit, 50);
    walk_fit(&w, &fast, 500, LEASE_MS);
    assert_int_equal(w.limit, 63);
    walk_fit(&w, &fast, 500, LEASE_MS); /* not a full one: tells nothing */
    assert_int_equal(w.limit, 63);
}

static void batch_stays_between_one_and_the_configured(void **state)
{
    struct walk_turn slow = {.pulled = 100, .worked = 100, .took_ms = 1000000};
    struct walk_turn fast = {.pulled = 500, .worked = 500, .took_ms = 1};

    (void)state;
    walk_fit(&w, &slow, 500, LEASE_MS);
    assert_int_equal(w.limit, 1);
    for (int i = 0; i < 50; i++)
        walk_fit(&w, &fast, 500, LEASE_MS);
    assert_int_equal(w.limit, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bucket_never_visited_may_be, clean),
        cmocka_unit_test_setup(mostly_busy_bucket_is_left_alone_for_a_while, clean),
        cmocka_unit_test_setup(stepping_back_has_a_limit, clean),
        cmocka_unit_test_setup(
            mostly_busy_batch_rests_from_every_bucket_no_longer_than_a_few_turns,
            clean),
        cmocka_unit_test_setup(
            mostly_busy_batch_that_did_not_wait_its_turn_is_no_reason_to_rest, clean),
        cmocka_unit_test_setup(
            bucket_in_which_nothing_was_free_is_waited_for_first_for_a_while, clean),
        cmocka_unit_test_setup(rows_below_what_n_batches_reached_were_overtaken_n_times,
                               clean),
        cmocka_unit_test_setup(worker_begins_at_its_own_place_and_goes_round, clean),
        cmocka_unit_test_setup(bucket_with_anything_busy_does_not_go_along, clean),
        cmocka_unit_test_setup(bucket_stepped_back_from_does_not_go_along, clean),
        cmocka_unit_test_setup(batches_that_went_less_far_are_forgotten, clean),
        cmocka_unit_test_setup(row_overtaken_four_times_is_served_alone, clean),
        cmocka_unit_test_setup(
            row_served_alone_in_vain_lets_the_others_have_their_turns, clean),
        cmocka_unit_test_setup(another_first_row_begins_anew, clean),
        cmocka_unit_test_setup(
            slow_turn_makes_the_next_batch_smaller_and_a_fast_one_larger, clean),
        cmocka_unit_test_setup(batch_stays_between_one_and_the_configured, clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
