/* Random mixtures of faults over a running pool: safe all the time, done soon after the
 * last one is over. LEDGERLOCK_TEST_SEED repeats a mixture;
 * LEDGERLOCK_TEST_SOAK_MINUTES draws one after the other for so long. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chaos_world.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/swarm.h"

static struct private_pg postgres;
static pid_t stopped;
static unsigned seen; /* how often the present kind of fault has met something */

/* ---- the faults ---- */

static pid_t any_worker(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(chaos.pool.pid, pids);

    return n > 0 ? pids[n / 2] : 0;
}

static void kill_worker(bool on)
{
    pid_t pid = on ? any_worker() : 0;

    if (pid > 0)
        seen += chaos_kill(pid, SIGKILL);
}

static void stop_worker(bool on)
{
    if (on) {
        stopped = any_worker();
        if (stopped > 0)
            seen += chaos_kill(stopped, SIGSTOP);
    } else if (stopped > 0) {
        (void)kill(stopped, SIGCONT);
        stopped = 0;
    }
}

static void kill_redis(bool on)
{
    if (on) {
        fixture_redis_kill(&chaos.redis);
        seen++;
    } else {
        chaos_redis_start(NULL, NULL);
    }
}

static void freeze_redis(bool on)
{
    assert_true(chaos_kill(chaos.redis.pid, on ? SIGSTOP : SIGCONT));
    seen += on;
}

static void flush_redis(bool on)
{
    if (on)
        chaos_redis_ok("FLUSHALL");
    seen += on;
}

static void fill_redis(bool on)
{
    chaos_redis_ok(on ? "CONFIG SET maxmemory 1" : "CONFIG SET maxmemory 0");
    seen += on;
}

static void forget_scripts(bool on)
{
    if (on)
        chaos_redis_ok("SCRIPT FLUSH");
    seen += on;
}

static void kill_postgres(bool on)
{
    if (on)
        private_pg_kill(&postgres);
    else
        private_pg_start(&postgres);
    seen += on;
}

static void end_sessions(bool on)
{
    if (on)
        seen += fixture_query_int8(postgres.url,
                                   "SELECT count(pg_terminate_backend(pid)) FROM"
                                   " pg_stat_activity WHERE application_name LIKE"
                                   " 'ledgerlock worker%'") > 0;
}

static void swallow_postgres(bool on)
{
    proxy_swallow(&chaos.to_postgres, on);
}

static void swallow_redis(bool on)
{
    proxy_swallow(&chaos.to_redis, on);
}

static void refuse_postgres(bool on)
{
    proxy_refuse(&chaos.to_postgres, on);
}

static void refuse_redis(bool on)
{
    proxy_refuse(&chaos.to_redis, on);
}

static void jitter_postgres(bool on)
{
    proxy_jitter(&chaos.to_postgres, 0, on ? 100 : 0);
    proxy_slice(&chaos.to_postgres, on ? 50 : 0, 200);
}

static void jitter_redis(bool on)
{
    proxy_jitter(&chaos.to_redis, 0, on ? 300 : 0);
}

static void cut_before_commit(bool on)
{
    proxy_cut_before(&chaos.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, on ? 3 : 0);
}

static void cut_after_commit(bool on)
{
    proxy_cut_after(&chaos.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, on ? 3 : 0);
}

enum group { WORKER_A, WORKER_B, REDIS, POSTGRES, WAY_TO_REDIS, WAY_TO_POSTGRES, CUT };

#define BY_POSTGRES &chaos.to_postgres
#define BY_REDIS &chaos.to_redis

static const struct {
    const char *name;
    enum group group;
    void (*turn)(bool on);
    struct proxy *by; /* whose count tells how often it met something; NULL: `seen` */
    enum proxy_count count;
} faults[] = {
    {"kill_worker", WORKER_A, kill_worker, NULL, PROXY_COUNTS},
    {"stop_worker", WORKER_B, stop_worker, NULL, PROXY_COUNTS},
    {"kill_redis", REDIS, kill_redis, NULL, PROXY_COUNTS},
    {"freeze_redis", REDIS, freeze_redis, NULL, PROXY_COUNTS},
    {"flush_redis", REDIS, flush_redis, NULL, PROXY_COUNTS},
    {"fill_redis", REDIS, fill_redis, NULL, PROXY_COUNTS},
    {"forget_scripts", REDIS, forget_scripts, NULL, PROXY_COUNTS},
    {"kill_postgres", POSTGRES, kill_postgres, NULL, PROXY_COUNTS},
    {"end_sessions", POSTGRES, end_sessions, NULL, PROXY_COUNTS},
    {"swallow_postgres", WAY_TO_POSTGRES, swallow_postgres, BY_POSTGRES,
     PROXY_SWALLOWED},
    {"refuse_postgres", WAY_TO_POSTGRES, refuse_postgres, BY_POSTGRES, PROXY_REFUSED},
    {"jitter_postgres", WAY_TO_POSTGRES, jitter_postgres, BY_POSTGRES, PROXY_DELAYED},
    {"swallow_redis", WAY_TO_REDIS, swallow_redis, BY_REDIS, PROXY_SWALLOWED},
    {"refuse_redis", WAY_TO_REDIS, refuse_redis, BY_REDIS, PROXY_REFUSED},
    {"jitter_redis", WAY_TO_REDIS, jitter_redis, BY_REDIS, PROXY_DELAYED},
    {"cut_before_commit", CUT, cut_before_commit, BY_POSTGRES, PROXY_CUTS_BEFORE},
    {"cut_after_commit", CUT, cut_after_commit, BY_POSTGRES, PROXY_CUTS_AFTER},
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* ---- a round ---- */

static void draw(struct swarm *s, uint64_t seed, int64_t total_ms)
{
    int group[FAULTS];

    for (size_t i = 0; i < FAULTS; i++)
        group[i] = (int)faults[i].group;
    swarm_draw(s, seed, group, FAULTS, total_ms);
}

static void tell(const struct swarm *s, uint64_t seed)
{
    print_message("seed %" PRIu64 ": %zu events (schedule %016" PRIx64 ") of", seed,
                  s->event_ct, swarm_hash(s));
    for (size_t i = 0; i < s->mixed_ct; i++)
        print_message(" %s", faults[s->mixed[i]].name);
    print_message("\n");
}

/* Counts of a round, by kind. */
static struct {
    unsigned begun, met;
} of[FAULTS];

static void turn(const struct swarm_event *e)
{
    seen = 0;
    faults[e->fault].turn(e->ends == 0);
    of[e->fault].begun += e->ends == 0;
    of[e->fault].met += seen;
}

static void throw_faults(const struct swarm *s)
{
    int64_t since = pool_now_ms();

    memset(of, 0, sizeof of);
    for (size_t i = 0; i < s->event_ct; i++) {
        int64_t wait_ms = s->events[i].at_ms - (pool_now_ms() - since);

        if (wait_ms > 0)
            fixture_pause_ms((long)wait_ms);
        turn(&s->events[i]);
    }
    proxy_pass(&chaos.to_postgres);
    proxy_pass(&chaos.to_redis);
}

/* How often it has met something since the world was opened. */
static unsigned met_so_far(size_t fault)
{
    return faults[fault].by != NULL ? proxy_count(faults[fault].by, faults[fault].count)
                                    : seen;
}

/* One may find nobody there, as another has been before it; half of them must not. */
static void assert_met(void)
{
    unsigned begun = 0, met = 0;

    print_message("met, of begun:");
    for (size_t i = 0; i < FAULTS; i++) {
        if (of[i].begun == 0)
            continue;
        if (faults[i].by != NULL)
            of[i].met = met_so_far(i);
        begun++;
        met += of[i].met > 0;
        print_message(" %s %u/%u", faults[i].name, of[i].met, of[i].begun);
    }
    print_message("\n");
    assert_true(begun > 0 && 2 * met >= begun);
}

static void one_round(uint64_t seed, int64_t total_ms)
{
    struct swarm s;

    draw(&s, seed, total_ms);
    tell(&s, seed);
    chaos_slow_down();
    chaos_start_midway();
    throw_faults(&s);
    chaos_assert_midway();
    assert_met();
    chaos_full_speed();
    chaos_recovers(60);
    chaos_end();
}

static int open_round(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work =
        (struct pool_work){.users = 250, .periods = 60, .orders = 200, .units = 120};
    chaos_fill();
    return 0;
}

/* ---- tests ---- */

static uint64_t given(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

static void swarm_of_one_seed_is_always_the_same(void **state)
{
    static struct swarm a, b;

    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        draw(&a, seed, 20000);
        draw(&b, seed, 20000);
        assert_memory_equal(&a, &b, sizeof a);
        assert_in_range(a.mixed_ct, 3, SWARM_MIXED);
        assert_true(a.event_ct > 0 && a.event_ct % 2 == 0);
        draw(&b, seed + 1, 20000);
        assert_true(swarm_hash(&a) != swarm_hash(&b));
    }
}

/* One that never meets anything would leave its mixtures calm. */
static void swarm_of_one_kind_meets_something_whichever_it_is(void **state)
{
    (void)state;
    chaos_slow_down();
    chaos_start_midway();
    for (size_t i = 0; i < FAULTS; i++) {
        int64_t deadline = pool_now_ms() + 5000;
        unsigned before = faults[i].by != NULL ? met_so_far(i) : 0;

        seen = 0;
        faults[i].turn(true);
        while (met_so_far(i) == before) {
            if (pool_now_ms() > deadline)
                fail_msg("%s has met nothing", faults[i].name);
            fixture_pause_ms(5);
        }
        faults[i].turn(false);
        pool_work_wait(&chaos.f, pool_work_done(&chaos.f) + 20, 20);
    }
    chaos_assert_midway();
    chaos_full_speed();
    chaos_recovers(60);
    chaos_end();
}

static void swarm_is_survived(void **state)
{
    (void)state;
    one_round(given("LEDGERLOCK_TEST_SEED", 77), 8000);
}

static void swarm_with_another_mixture_is_survived(void **state)
{
    (void)state;
    one_round(swarm_seed(given("LEDGERLOCK_TEST_SEED", 77), 1), 15000);
}

static void swarm_with_a_third_mixture_is_survived(void **state)
{
    (void)state;
    one_round(swarm_seed(given("LEDGERLOCK_TEST_SEED", 77), 2), 15000);
}

/* One mixture after the other, each on a world of its own. */
static void swarm_soak(void **state)
{
    uint64_t seed = given("LEDGERLOCK_TEST_SEED", 77), i = 0;
    int64_t until =
        pool_now_ms() + (int64_t)given("LEDGERLOCK_TEST_SOAK_MINUTES", 0) * 60000;

    for (; i == 0 || pool_now_ms() < until; i++) {
        if (i > 0) {
            (void)chaos_close(state);
            (void)open_round(state);
        }
        one_round(swarm_seed(seed, i), 15000);
    }
    print_message("%" PRIu64 " mixtures, every total exact\n", i);
}

static int open_servers(void **state)
{
    (void)state;
    private_pg_open(&postgres);
    return 0;
}

static int close_servers(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    return 0;
}

static int close_round(void **state)
{
    stop_worker(false); /* one that stands still would outlive its pool */
    if (chaos.redis.pid > 0)
        (void)kill(chaos.redis.pid, SIGCONT);
    private_pg_start(&postgres);
    return chaos_close(state);
}

#define SWARM_TEST(name) cmocka_unit_test_setup_teardown(name, open_round, close_round)

int main(void)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(swarm_of_one_seed_is_always_the_same),
        SWARM_TEST(swarm_of_one_kind_meets_something_whichever_it_is),
        SWARM_TEST(swarm_is_survived),
    };
    const struct CMUnitTest full[] = {
        cmocka_unit_test(swarm_of_one_seed_is_always_the_same),
        SWARM_TEST(swarm_is_survived),
        SWARM_TEST(swarm_of_one_kind_meets_something_whichever_it_is),
        SWARM_TEST(swarm_with_another_mixture_is_survived),
        SWARM_TEST(swarm_with_a_third_mixture_is_survived),
    };
    const struct CMUnitTest soak[] = {SWARM_TEST(swarm_soak)};

    fixture_need_servers();
    if (given("LEDGERLOCK_TEST_SOAK_MINUTES", 0) > 0)
        return cmocka_run_group_tests(soak, open_servers, close_servers);
    if (chaos_is_full())
        return cmocka_run_group_tests(full, open_servers, close_servers);
    return cmocka_run_group_tests(quick, open_servers, close_servers);
}
