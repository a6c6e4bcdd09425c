/* Renewal: locks that live on, and batches of them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lib/renew_world.h"

enum { LEASE_MS = 600 };

static void renewed_lock_outlives_its_lease_with_the_same_token(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    int64_t token;

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    token = ll_token(w->la);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    for (int i = 0; i < 8; i++) {
        fixture_pause_ms(LEASE_MS / 4);
        assert_true(ll_valid(w->la, 0));
        assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1, LEASE_MS);
    }
    assert_int_equal(ll_token(w->la), token);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_in_range(figures_of(r).renewals, 4, 12);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    ll_renewer_close(r);
}

static void renewal_never_shortens_and_gives_an_end_back(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    renew_two(w, r, LEASE_MS);
    lock_raw_do(w, "PERSIST lock:user:1");
    lock_raw_do(w, "PEXPIRE lock:user:2 60000");
    for (int i = 0; figures_of(r).renewals < 4; i++) {
        assert_true(i < 500);
        fixture_pause_ms(10);
    }
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1, LEASE_MS);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:2"), 50000, 60000);
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    ll_renewer_close(r);
}

static void lock_that_cannot_be_renewed_is_refused(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_E_INVAL);
    assert_int_equal(ll_release_some(w->la, (size_t[]){0}, 1), LL_E_INVAL);
    ll_renew_stop(r, w->la);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_E_INVAL);
    assert_int_equal(ll_try(w->lb, "user:2", 20), LL_OK);
    fixture_pause_ms(40);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_LOST);
    ll_renewer_close(r);
}

static void closed_renewer_leaves_its_locks_to_their_lease(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    renew_two(w, r, LEASE_MS);
    ll_renewer_close(r);
    assert_int_equal(ll_release(w->lb), LL_OK);
    fixture_pause_ms(LEASE_MS + 50);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(told.times, 0);
}

static double cpu_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void renewer_with_nothing_due_sleeps(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    double before;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    before = cpu_ms();
    fixture_pause_ms(300);
    assert_true(cpu_ms() - before < 5);
    assert_int_equal(figures_of(r).rounds, 0);
    ll_renewer_close(r);
}

/* ---- batches ---- */

/* First key of the last EVALSHA that the server saw. */
static void last_renewed(struct lock_world *w, char *name, size_t size)
{
    redisReply *log = redisCommand(w->raw, "SLOWLOG GET 20");
    bool found = false;

    for (size_t i = 0; !found && i < log->elements; i++) {
        const redisReply *words = log->element[i]->element[3];

        found = strcmp(words->element[0]->str, "EVALSHA") == 0;
        if (found)
            (void)snprintf(name, size, "%s", words->element[3]->str);
    }
    freeReplyObject(log);
    assert_true(found);
}

static void locks_of_several_leases_go_together_the_most_urgent_first(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    char name[64];

    ll_set_tolerance(w->lb, 5000);
    lock_raw_do(w, "CONFIG SET slowlog-log-slower-than 0");
    assert_int_equal(ll_try(w->lb, "late", 700), LL_OK);
    assert_int_equal(ll_try(w->la, "early", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    lock_raw_do(w, "SLOWLOG RESET");
    fixture_pause_ms(LEASE_MS / 3 + 50);
    last_renewed(w, name, sizeof name);
    assert_string_equal(name, "lock:early");
    assert_int_equal(figures_of(r).rounds, 1);
    assert_int_equal(figures_of(r).round_trips, 1);
    assert_int_equal(figures_of(r).renewals, 2);
    assert_in_range(lock_raw_integer(w, "PTTL lock:early"), LEASE_MS / 2, LEASE_MS);
    assert_in_range(lock_raw_integer(w, "PTTL lock:late"), 5400, 5700);
    lock_raw_do(w, "CONFIG SET slowlog-log-slower-than 10000");
    ll_renewer_close(r);
}

static void batch_beyond_one_script_call_is_renewed_in_one_round_trip(void **state)
{
    enum { KEYS = 2 * LL_KEYS_MAX + 300 };

    static struct ll_key keys[KEYS];
    static char names[KEYS][16];
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    for (size_t i = 0; i < KEYS; i++) {
        keys[i].name = names[i];
        keys[i].len = (size_t)snprintf(names[i], sizeof names[i], "k:%zu", i);
    }
    assert_int_equal(ll_try(w->lb, "k:1500", 60000), LL_OK); /* not ours: left alone */
    assert_int_equal(ll_acquire(w->la, keys, KEYS, LL_ANY, 900), LL_PARTIAL);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(2000);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), KEYS + 1);
    assert_true(lock_raw_integer(w, "PTTL lock:k:1500") <= 58500);
    assert_true(figures_of(r).rounds >= 4);
    assert_int_equal(figures_of(r).round_trips, figures_of(r).rounds);
    lock_raw_do(w, "DEL lock:k:2299"); /* the very last key */
    assert_int_equal(read_losses(r, 900), 1);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_LOST);
    ll_renewer_close(r);
}

/* EVALSHAs that the server has run since CONFIG RESETSTAT. */
static unsigned scripts_run(struct lock_world *w)
{
    redisReply *info = redisCommand(w->raw, "INFO commandstats");
    const char *at = strstr(info->str, "cmdstat_evalsha:calls=");
    unsigned n = 0;

    if (at != NULL)
        (void)sscanf(at, "cmdstat_evalsha:calls=%u", &n);
    freeReplyObject(info);
    return n;
}

static void renew_500_locks(void **state)
{
    enum { LOCKS = 500, LEASE = 900 };

    static struct ll_lock *locks[LOCKS];
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    struct ll_renew_figures f;

    hold_many(w->a, r, locks, LOCKS, LEASE);
    lock_raw_do(w, "CONFIG RESETSTAT");
    /* at least four stalls, and until one did hit a renewal */
    for (int i = 0; i < 4 || (i < 40 && figures_of(r).slowest_us <= 20000); i++) {
        fixture_pause_ms(350);
        assert_int_equal(kill(lock_server.pid, SIGSTOP), 0);
        fixture_pause_ms(200);
        assert_int_equal(kill(lock_server.pid, SIGCONT), 0);
    }
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), LOCKS + 1);
    for (size_t i = 0; i < LOCKS; i++)
        assert_true(ll_valid(locks[i], 0));
    f = figures_of(r);
    assert_true(f.renewals >= 3 * LOCKS);
    assert_true(f.round_trips <= 2 * f.rounds);
    assert_true(scripts_run(w) <= 2 * f.rounds);
    assert_true(f.slowest_us > 20000);
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    free_many(locks, LOCKS);
    ll_renewer_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(renewed_lock_outlives_its_lease_with_the_same_token),
        LOCK_TEST(renewal_never_shortens_and_gives_an_end_back),
        LOCK_TEST(lock_that_cannot_be_renewed_is_refused),
        LOCK_TEST(closed_renewer_leaves_its_locks_to_their_lease),
        LOCK_TEST(renewer_with_nothing_due_sleeps),
        LOCK_TEST(locks_of_several_leases_go_together_the_most_urgent_first),
        LOCK_TEST(batch_beyond_one_script_call_is_renewed_in_one_round_trip),
        LOCK_TEST(renew_500_locks),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
