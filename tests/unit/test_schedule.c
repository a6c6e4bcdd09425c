/* schedule: phases, pauses, the shard and the size of the next batch, at made-up times.
 */
#include "tests/lib/test.h"
#include "worker/pool/schedule.h"

GROUP(.open = NULL);

static struct schedule begin_job(int64_t shards, int64_t index, int64_t workers)
{
    static const struct config config = {.lease_ms = 10000};
    static struct job_type job;
    struct schedule s = {.config = &config,
                         .job = &job,
                         .poll_ms = 250,
                         .batch = 500,
                         .index = index,
                         .workers = workers};

    job.shards = shards;
    schedule_start(&s);
    return s;
}

static struct schedule begin(int64_t index, int64_t workers)
{
    return begin_job(1024, index, workers);
}

/* Learns from a batch that took a millisecond. */
static int64_t learn(struct schedule *s, struct batch_outcome out, int64_t now_ms)
{
    return schedule_learn(s, &out, 1, now_ms);
}

static const struct batch_outcome empty = {.pulled = 0};
static const struct batch_outcome part = {
    .pulled = 20, .worked = 20, .last = {.shard = 9}};

CASE(workers_of_a_job_begin_at_shards_far_from_each_other)
{
    static const int64_t shards[] = {0, 341, 682};

    for (int64_t i = 0; i < 3; i++) {
        const struct schedule s = begin(i, 3);

        assert_int_equal(s.next.from.shard, shards[i]);
        assert_true(s.next.from.at == BATCH_HEAD);
        assert_int_equal(s.next.limit, 500);
    }
}

/* Any instant is at most poll_ms from the next pull of one of them. */
CASE(idle_job_is_pulled_every_poll_ms_whatever_the_number_of_workers)
{
    for (int64_t workers = 1; workers <= 5; workers++) {
        for (int64_t now_ms = 100000; now_ms < 103000; now_ms += 7) {
            int64_t next_ms = INT64_MAX;

            for (int64_t i = 0; i < workers; i++) {
                struct schedule s = begin(i, workers);
                int64_t ms = learn(&s, empty, now_ms);

                assert_true(ms > 0 && ms <= 250 * workers);
                assert_int_equal((now_ms + ms) % (250 * workers), 250 * i);
                next_ms = ms < next_ms ? ms : next_ms;
            }
            assert_true(next_ms <= 250);
        }
    }
}

CASE(paused_job_is_asked_for_twice_a_second_by_each_worker_whatever_poll_ms_is)
{
    for (int64_t workers = 1; workers <= 256; workers *= 2) {
        for (int64_t now_ms = 100000; now_ms < 101000; now_ms += 7) {
            struct schedule s = begin(workers - 1, workers);
            int64_t ms;

            s.poll_ms = 60000;
            ms = learn(&s, (struct batch_outcome){.is_paused = true}, now_ms);
            assert_true(ms > 0 && ms <= 500);
        }
    }
}

CASE(part_full_batch_is_followed_by_a_pause_up_to_the_phase_of_20_ms)
{
    for (int64_t now_ms = 100000; now_ms < 100200; now_ms++) {
        struct schedule s = begin(1, 3);
        int64_t ms = learn(&s, part, now_ms);

        assert_true(ms > 0 && ms <= 60);
        assert_int_equal((now_ms + ms) % 60, 20);
    }
}

CASE(there_is_no_pause_while_there_is_more)
{
    struct schedule s = begin(0, 3);
    struct batch_outcome full = part, again = part;

    full.is_full = true;
    again.due_again = true;
    assert_int_equal(learn(&s, full, 100000), 0);
    assert_int_equal(learn(&s, again, 100000), 0);
    s.once = true; /* nothing trickles in */
    assert_int_equal(learn(&s, part, 100000), 0);
}

static bool is_at_head(const struct schedule *s)
{
    return s->next.from.at == BATCH_HEAD;
}

CASE(full_pull_is_followed_by_one_behind_its_last_row_and_others_by_the_next_shard)
{
    struct schedule s = begin(0, 1);
    struct batch_outcome last = part;

    last.is_full = true;
    last.last = (struct batch_place){.shard = 9, .at = 77, .id = 7};
    (void)learn(&s, last, 100000);
    assert_int_equal(s.next.from.shard, 9);
    assert_int_equal(s.next.from.at, 77);
    assert_int_equal(s.next.from.id, 7);
    (void)learn(&s, part, 100000);
    assert_int_equal(s.next.from.shard, 10);
    assert_true(is_at_head(&s));
    last.is_full = false;
    last.last.shard = 1023;
    (void)learn(&s, last, 100000);
    assert_int_equal(s.next.from.shard, 0);
}

/* Held rows of one shard may fill every pull: each comes to the next shards. */
CASE(round_is_over_when_it_comes_to_the_first_shard_of_the_worker_again)
{
    static const int64_t shards[] = {341, 341, 700, 1023, 5, 340, 341, 350};
    struct schedule s = begin(1, 3);
    struct batch_outcome held = {.pulled = 500, .is_full = true, .last = {.at = 7}};

    assert_true(s.next.begins);
    for (size_t i = 0; i < sizeof shards / sizeof shards[0]; i++) {
        held.last.shard = shards[i];
        assert_int_equal(learn(&s, held, 100000) > 0, shards[i] == 341 && i > 1);
        assert_int_equal(s.next.begins, shards[i] == 341 && i > 1);
        assert_int_equal(s.next.from.shard, shards[i]);
    }
    (void)learn(&s, part, 100000);
    assert_true(s.next.begins);
}

CASE(pull_behind_a_row_that_finds_nothing_is_followed_by_a_whole_one_at_once)
{
    struct schedule s = begin(0, 1);
    struct batch_outcome full = part, none = {.is_behind = true};

    full.is_full = true;
    full.last.at = none.last.at = 77;
    (void)learn(&s, full, 100000);
    assert_int_equal(learn(&s, none, 100000), 0);
    assert_true(is_at_head(&s));
}

CASE(without_shards_every_pull_begins_at_the_oldest_row)
{
    struct schedule s = begin_job(0, 0, 1);
    struct batch_outcome half = part;

    half.is_full = true;
    half.worked = half.pulled / 2;
    assert_true(is_at_head(&s));
    (void)learn(&s, part, 100000);
    assert_true(is_at_head(&s));
    (void)learn(&s, half, 100000);
    assert_true(is_at_head(&s));
    schedule_fail(&s, &part, true, 1, 100000);
    assert_true(is_at_head(&s));
}

/* However many keys are busy. */
CASE(pulls_go_on_behind_what_was_mostly_busy_for_five_times_as_long)
{
    struct schedule s = begin_job(0, 0, 1);
    struct batch_outcome held = {.pulled = 500, .worked = 249, .is_full = true};
    struct batch_outcome good = {.pulled = 500, .worked = 250, .is_full = true};

    for (int i = 1; i <= 10; i++) {
        held.last.at = i;
        assert_int_equal(schedule_learn(&s, &held, 20, 100000), 0);
        assert_int_equal(s.next.from.at, i);
    }
    good.last.at = 11;
    assert_int_equal(learn(&s, good, 100000), 0);
    assert_int_equal(s.next.from.at, 11);
    good.last.at = 12;
    (void)learn(&s, good, 100000 + 5 * 10 * 20 - 1);
    assert_int_equal(s.next.from.at, 12);
    assert_int_equal(learn(&s, good, 100000 + 5 * 10 * 20), 0);
    assert_true(is_at_head(&s));
}

CASE(
    round_that_met_much_busy_is_followed_by_a_pause_as_long_up_to_a_quarter_of_a_second)
{
    struct schedule s = begin_job(0, 0, 1);
    struct batch_outcome held = {.pulled = 500, .is_full = true, .last = {.at = 7}};
    const struct batch_outcome none = {.is_behind = true};

    s.once = true; /* no pause else */
    for (int i = 0; i < 4; i++)
        assert_int_equal(schedule_learn(&s, &held, 20, 100000), 0);
    assert_in_range(learn(&s, none, 100000), 80, 250);
    assert_true(is_at_head(&s));
    for (int i = 0; i < 40; i++)
        assert_int_equal(schedule_learn(&s, &held, 20, 100000), 0);
    assert_int_equal(learn(&s, part, 100000), 250);
    assert_int_equal(learn(&s, part, 100000), 0);
}

CASE(rounds_in_vain_come_ever_more_rarely_and_at_most_every_poll_ms)
{
    struct schedule s = begin(0, 1);
    const struct batch_outcome busy = {.pulled = 20};
    int64_t ms = learn(&s, busy, 100000);

    assert_in_range(ms, 2, 4);
    for (int i = 0; i < 20; i++) {
        ms = learn(&s, busy, 100000);
        assert_in_range(ms, 2, 250);
    }
    assert_true(ms >= 125);
    (void)learn(&s, part, 100000);
    assert_true(learn(&s, busy, 100000) <= 4);
}

/* Also when each of its pulls took less than a millisecond. */
CASE(round_in_vain_of_several_pulls_is_followed_by_a_pause)
{
    const struct batch_outcome held = {
        .pulled = 500, .is_full = true, .last = {.at = 7}};
    const struct batch_outcome none = {.is_behind = true};
    struct schedule s = begin_job(0, 0, 1);

    assert_int_equal(schedule_learn(&s, &held, 0, 100000), 0);
    assert_in_range(schedule_learn(&s, &none, 0, 100000), 2, 4);
}

CASE(batch_takes_a_tenth_of_the_lease_at_most)
{
    struct schedule s = begin(0, 1);

    (void)schedule_learn(&s, &part, 1001, 100000);
    assert_int_equal(s.next.limit, 250);
    (void)schedule_learn(&s, &part, 1000, 100000); /* neither slow nor quick */
    assert_int_equal(s.next.limit, 250);
    (void)schedule_learn(&s, &empty, 1, 100000); /* says nothing of speed */
    assert_int_equal(s.next.limit, 250);
    (void)schedule_learn(&s, &part, 249, 100000);
    assert_int_equal(s.next.limit, 500);
    (void)schedule_learn(&s, &part, 249, 100000);
    assert_int_equal(s.next.limit, 500);
    (void)schedule_learn(&s, &part, 1001, 100000);
    (void)learn(&s, (struct batch_outcome){.pulled = 20}, 100000); /* all were busy */
    assert_int_equal(s.next.limit, 500);
    for (int i = 0; i < 20; i++)
        (void)schedule_learn(&s, &part, 5000, 100000);
    assert_int_equal(s.next.limit, 1);
}

CASE(rows_that_were_refused_are_passed_by_for_five_times_as_long)
{
    const struct batch_outcome refused = {
        .pulled = 500, .is_full = true, .is_refused = true, .last = {.at = 7}};
    struct batch_outcome good = {.pulled = 500, .worked = 500, .is_full = true};
    struct schedule s = begin_job(0, 2, 4);

    schedule_fail(&s, &good, false, 20, 100000); /* a server was away */
    assert_true(is_at_head(&s) && s.next.begins);
    schedule_fail(&s, &refused, false, 20, 100000);
    assert_int_equal(s.next.from.at, 7);
    assert_true(!s.next.begins && s.next.skip == 0);
    good.last.at = 8;
    (void)learn(&s, good, 100000 + 5 * 20 - 1);
    assert_int_equal(s.next.from.at, 8);
    (void)learn(&s, good, 100000 + 5 * 20);
    assert_true(is_at_head(&s));
    schedule_fail(&s, &refused, false, 3600000, 100000); /* no longer than 30 s */
    (void)learn(&s, good, 130000);
    assert_true(is_at_head(&s));
}

CASE(batch_that_broke_goes_on_to_other_shards)
{
    struct schedule s = begin(0, 1);

    schedule_fail(&s, &part, false, 1, 100000);
    assert_int_equal(s.next.from.shard, 10);
    schedule_fail(&s, &part, true, 1, 100000); /* a timeout or a conflict */
    assert_int_equal(s.next.limit, 250);
    schedule_fail(&s, &empty, true, 1, 100000); /* a server was away */
    assert_true(s.next.limit == 250 && s.next.from.shard == 10);
    for (int i = 0; i < 20; i++)
        schedule_fail(&s, &part, true, 1, 100000);
    assert_int_equal(s.next.limit, 1);
}

CASE(workers_in_any_order_begin_behind_each_other_and_at_the_oldest_in_the_end)
{
    const struct batch_outcome full = {.pulled = 500, .worked = 500, .is_full = true};
    struct schedule s = begin_job(0, 2, 4);

    assert_int_equal(s.next.skip, 1000);
    assert_int_equal(learn(&s, full, 100000), 0);
    assert_int_equal(s.next.skip, 1000);
    /* nothing is so far behind: at once again, from the oldest row */
    assert_int_equal(learn(&s, (struct batch_outcome){.is_behind = true}, 100000), 0);
    assert_int_equal(s.next.skip, 0);
    (void)learn(&s, part, 100000);
    assert_int_equal(s.next.skip, 0);
    (void)learn(&s, full, 100000);
    assert_int_equal(s.next.skip, 1000);
}

/* Guarantee: A worker beside others that serve orders in any order pulls the oldest
 * ones now and then, however many are due. */
CASE(worker_that_serves_in_any_order_begins_at_the_oldest_row_now_and_then)
{
    const struct batch_outcome full = {.pulled = 500, .worked = 500, .is_full = true};
    struct schedule s = begin_job(0, 2, 4);
    int heads = 0;

    for (int i = 0; i < 64; i++) {
        heads += s.next.skip == 0;
        (void)learn(&s, full, 100000);
    }
    assert_in_range(heads, 2, 8);
    (void)learn(&s, full, 100000);
    assert_int_equal(s.next.skip, 1000);
    (void)learn(&s, part, 100000);
    assert_int_equal(s.next.skip, 0);
}

CASE(worker_that_stands_by_asks_again_four_times_a_second)
{
    struct schedule s = begin_job(0, 0, 1);

    assert_int_equal(learn(&s, (struct batch_outcome){.is_standby = true}, 100003),
                     250);
}
