/* queue: who waits for whom, who goes next, and how long at most. The workers are
 * processes, as in a pool; nothing else runs. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/lib/fixture.h"
#include "worker/bell.h"
#include "worker/queue.h"

enum { PEERS = 3, JOB = 1, OTHER_JOB = 0, LEASE_MS = 10000, ALIVE_S = 60 };

static struct slot *slots;
static struct config config;
static struct worker workers[PEERS];

static int open_pool(void **state)
{
    (void)state;
    slots = mmap(NULL, PEERS * sizeof *slots, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(slots != MAP_FAILED && bell_open(slots, PEERS));
    config.lease_ms = LEASE_MS;
    for (int i = 0; i < PEERS; i++)
        workers[i] = (struct worker){
            .config = &config, .index = i, .peers = PEERS, .slot = &slots[i]};
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    bell_close(slots, PEERS);
    return munmap(slots, PEERS * sizeof *slots);
}

/* A process in which the worker waits for its turn and ends with it. */
static pid_t start_waiting(int index)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)alarm(ALIVE_S);
        _exit(queue_enter(&workers[index], JOB, true) ? 0 : 1);
    }
    while (slots[index].place.waits_us == 0)
        fixture_pause_ms(1);
    return pid;
}

static void assert_got_its_turn(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void assert_still_waits(pid_t pid, int index)
{
    fixture_pause_ms(50);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_true(slots[index].place.waits_us != 0);
}

static void nobody_waits_for_a_worker_that_is_about_no_batch(void **state)
{
    (void)state;
    assert_false(queue_enter(&workers[0], JOB, true));
    assert_false(queue_enter(&workers[0], JOB, true)); /* nor for itself */
    queue_leave(&workers[0]);
    assert_false(queue_enter(&workers[1], JOB, true));
}

static void nobody_waits_for_a_batch_of_another_job_or_unasked(void **state)
{
    (void)state;
    (void)queue_enter(&workers[0], OTHER_JOB, false);
    (void)queue_enter(&workers[1], JOB, false);
    assert_false(queue_enter(&workers[2], JOB, false));
    queue_leave(&workers[1]);
    queue_leave(&workers[2]);
    assert_false(queue_enter(&workers[1], JOB, true));
}

static void one_that_leaves_wakes_the_one_that_waits(void **state)
{
    int64_t since_ms = clk_ms();
    pid_t waiting;

    (void)state;
    (void)queue_enter(&workers[0], JOB, true);
    waiting = start_waiting(1);
    assert_still_waits(waiting, 1);
    queue_leave(&workers[0]);
    assert_got_its_turn(waiting);
    assert_true(clk_ms() - since_ms < 1000); /* not by its limit */
}

static void turn_is_handed_to_the_longest_waiting_and_to_nobody_else(void **state)
{
    pid_t first, second;

    (void)state;
    (void)queue_enter(&workers[0], JOB, true);
    first = start_waiting(2);
    second = start_waiting(1);
    queue_leave(&workers[0]);
    assert_got_its_turn(first);
    assert_true(slots[2].place.since_ms != 0);
    assert_still_waits(second, 1);
    queue_leave(&workers[2]);
    assert_got_its_turn(second);
}

static void
no_third_comes_between_the_one_that_leaves_and_the_one_that_wakes(void **state)
{
    (void)state;
    (void)queue_enter(&workers[0], JOB, true);
    slots[1].place.job = JOB;
    slots[1].place.buckets = UINT64_MAX;
    slots[1].place.waits_us = clk_us(); /* and sleeps soundly */
    queue_leave(&workers[0]);
    assert_true(queue_enter(&workers[2], JOB, true));
}

static void turn_is_not_handed_on_while_another_is_about_a_batch(void **state)
{
    pid_t waiting;

    (void)state;
    (void)queue_enter(&workers[0], JOB, false);
    (void)queue_enter(&workers[1], JOB, false);
    waiting = start_waiting(2);
    queue_leave(&workers[0]);
    assert_still_waits(waiting, 2);
    queue_leave(&workers[1]);
    assert_got_its_turn(waiting);
}

static void one_that_stands_still_is_waited_for_once_and_not_for_long(void **state)
{
    int64_t since_ms = clk_ms();

    (void)state;
    config.lease_ms = 1000;
    (void)queue_enter(&workers[0], JOB, true);
    assert_true(queue_enter(&workers[1], JOB, true));
    assert_true(clk_ms() - since_ms >= config.lease_ms / 10);
    queue_leave(&workers[1]);
    assert_false(queue_enter(&workers[1], JOB, true));
}

static void one_that_died_waiting_or_working_is_forgotten_by_its_successor(void **state)
{
    (void)state;
    slots[0].place.since_ms = slots[1].place.waits_us = 1;
    queue_leave(&workers[1]);
    assert_int_equal(slots[1].place.waits_us, 0);
    queue_leave(&workers[0]);
    assert_int_equal(slots[0].place.since_ms, 0);
    assert_int_equal(slots[1].place.since_ms, 0); /* it waits no more */
}

static void bucket_of_another_is_known_and_no_other(void **state)
{
    static const int64_t buckets[] = {63, 7, 0};

    (void)state;
    queue_go_to(&workers[0], JOB, buckets, 2);
    assert_true(queue_is_at(&workers[1], JOB, 63));
    assert_true(queue_is_at(&workers[1], JOB, 7));
    assert_false(queue_is_at(&workers[1], JOB, 0));
    assert_false(queue_is_at(&workers[1], OTHER_JOB, 7));
    assert_false(queue_is_at(&workers[0], JOB, 7)); /* its own */
    queue_go_to(&workers[0], JOB, buckets, 1);
    assert_true(queue_is_at(&workers[1], JOB, 63));
    assert_false(queue_is_at(&workers[1], JOB, 7));
    queue_leave(&workers[0]);
    assert_false(queue_is_at(&workers[1], JOB, 63));
}

static void bucket_of_one_that_stands_still_is_free_before_long(void **state)
{
    static const int64_t bucket = 5;

    (void)state;
    config.lease_ms = 1000;
    queue_go_to(&workers[0], JOB, &bucket, 1);
    assert_true(queue_is_at(&workers[1], JOB, bucket));
    fixture_pause_ms(config.lease_ms / 10 + 1);
    queue_go_to(&workers[0], JOB, &bucket, 1); /* the same batch */
    assert_false(queue_is_at(&workers[1], JOB, bucket));
}

#define POOL(test) cmocka_unit_test_setup_teardown(test, open_pool, close_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL(nobody_waits_for_a_worker_that_is_about_no_batch),
        POOL(nobody_waits_for_a_batch_of_another_job_or_unasked),
        POOL(one_that_leaves_wakes_the_one_that_waits),
        POOL(turn_is_handed_to_the_longest_waiting_and_to_nobody_else),
        POOL(no_third_comes_between_the_one_that_leaves_and_the_one_that_wakes),
        POOL(turn_is_not_handed_on_while_another_is_about_a_batch),
        POOL(one_that_stands_still_is_waited_for_once_and_not_for_long),
        POOL(one_that_died_waiting_or_working_is_forgotten_by_its_successor),
        POOL(bucket_of_another_is_known_and_no_other),
        POOL(bucket_of_one_that_stands_still_is_free_before_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
