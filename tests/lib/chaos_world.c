/* chaos_world: puts the pieces together; the checks at the end. */
#include "tests/lib/chaos_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/points.h"
#include "tests/lib/secrets.h"

struct chaos chaos;

bool chaos_is_full(void)
{
    const char *which = getenv("LEDGERLOCK_TEST_CHAOS");

    return which != NULL && strcmp(which, "full") == 0;
}

/* ---- open and close ---- */

void chaos_redis_start(const char *name, const char *value)
{
    char reply[128] = "";

    fixture_redis_start(&chaos.redis, "--requirepass", SECRET_OF_REDIS, name, value,
                        NULL);
    for (int i = 0; strcmp(reply, "PONG") != 0; i++) { /* it may still be loading */
        assert_true(i < 1000);
        fixture_pause_ms(i > 0 ? 10 : 0);
        chaos_redis(reply, sizeof reply, "PING");
    }
}

void chaos_as_shipped(void)
{
    points_as_shipped();
    fixture_env("LEDGERLOCK_TEST_HISTORY", NULL);
    checker_close(&chaos.checker);
    chaos.checker.dir[0] = '\0';
}

int chaos_open_empty(void **state)
{
    (void)state;
    memset(&chaos, 0, sizeof chaos);
    chaos.bound_ms = CHAOS_RECOVERY_MS;
    points_program();
    fixture_open_migrated(&chaos.f);
    checker_open(&chaos.checker);
    fixture_become(&chaos.f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "2000");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "50");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    pool_use_redis_secret();
    chaos_redis_start(NULL, NULL);
    (void)snprintf(chaos.f.redis_url, sizeof chaos.f.redis_url, "%s", chaos.redis.url);
    chaos.through = chaos.f;
    proxy_open_postgres(&chaos.to_postgres, &chaos.through);
    proxy_open_redis(&chaos.to_redis, chaos.f.redis_url);
    (void)snprintf(chaos.through.redis_url, sizeof chaos.through.redis_url, "%s",
                   chaos.to_redis.url);
    return 0;
}

void chaos_fill(void)
{
    pool_work_put(&chaos.f, &chaos.work);
}

int chaos_open(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work =
        (struct pool_work){.users = 200, .periods = 25, .orders = 200, .units = 120};
    chaos_fill();
    return 0;
}

int chaos_close(void **state)
{
    (void)state;
    if (chaos.pool.pid > 0) {
        (void)kill(chaos.pool.pid, SIGKILL);
        (void)waitpid(chaos.pool.pid, NULL, 0);
    }
    if (chaos.pool.err_fd > 0) {
        (void)close(chaos.pool.err_fd);
        (void)close(chaos.pool.out_fd);
    }
    proxy_close(&chaos.to_postgres);
    proxy_close(&chaos.to_redis);
    fixture_redis_close(&chaos.redis);
    fixture_close(&chaos.f);
    checker_close(&chaos.checker);
    pool_redis_password(NULL);
    memset(&chaos, 0, sizeof chaos);
    return 0;
}

static void as_superuser(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&chaos.f, "postgres", url, sizeof url);
    fixture_exec(url, sql);
}

void chaos_slow_down(void)
{
    as_superuser(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_sleep(0.03); RETURN NULL; END $$; CREATE TRIGGER slow AFTER INSERT"
        " ON ledgerlock.charges FOR EACH STATEMENT EXECUTE FUNCTION public.slow()");
}

void chaos_full_speed(void)
{
    as_superuser("DROP TRIGGER slow ON ledgerlock.charges");
}

/* ---- the pool ---- */

void chaos_start(const char *workers)
{
    fixture_spawn(&chaos.through, &chaos.pool, "run", "-w", workers, "--now",
                  pool_work_now(&chaos.work), NULL);
}

void chaos_start_midway(void)
{
    chaos_start("4");
    pool_work_wait(&chaos.f, 100, 10);
}

void chaos_assert_midway(void)
{
    if (pool_work_done(&chaos.f) >= pool_work_all(&chaos.work))
        fail_msg("the fault met no work: all was done");
}

bool chaos_kill(pid_t pid, int signal)
{
    if (kill(pid, signal) != 0)
        return false;
    while (signal == SIGKILL && pool_is_alive(pid))
        fixture_pause_ms(1);
    if (signal == SIGKILL || signal == SIGSTOP)
        checker_killed(&chaos.checker, pid);
    return true;
}

void chaos_recovers(int seconds)
{
    int64_t since = pool_now_ms(), done = pool_work_done(&chaos.f);
    int64_t all = pool_work_all(&chaos.work);

    checker_healed(&chaos.checker);
    while (done < all && pool_work_done(&chaos.f) == done) {
        if (pool_now_ms() - since > chaos.bound_ms)
            fail_msg("nothing was done within %d ms of the end of the fault",
                     chaos.bound_ms);
        fixture_pause_ms(5);
    }
    print_message("at work again after %" PRId64 " ms\n", pool_now_ms() - since);
    pool_work_wait(&chaos.f, all, seconds);
}

void chaos_assert_stands_still(int ms)
{
    int64_t done;

    fixture_pause_ms(ms);
    done = pool_work_done(&chaos.f);
    fixture_pause_ms(ms);
    assert_int_equal(pool_work_done(&chaos.f), done);
}

void chaos_end(void)
{
    (void)kill(chaos.pool.pid, SIGTERM);
    pool_assert_ends(&chaos.pool, 0, 12);
    chaos_check();
}

/* ---- the check ---- */

/* Every lock ends by itself: within its lease and a second there is none. */
static void assert_no_lock_stays(void)
{
    int64_t deadline = pool_now_ms() + CHAOS_LEASE_MS + 1000;

    while (pool_lock_keys(&chaos.f) > 0) {
        if (pool_now_ms() > deadline)
            fail_msg("%" PRId64 " lock keys outlive their lease",
                     pool_lock_keys(&chaos.f));
        fixture_pause_ms(20);
    }
}

void chaos_check(void)
{
    if (chaos.redis.pid > 0)
        assert_no_lock_stays();
    assert_int_equal(pool_incidents(&chaos.f, "commit_unknown", ""),
                     pool_incidents(&chaos.f, "commit_unknown", "settled: "));
    assert_int_equal(pool_incidents(&chaos.f, "parked", ""), 0);
    pool_work_assert_exact(&chaos.f, &chaos.work);
    chaos_check_rows(pool_work_now(&chaos.work));
}

void chaos_check_rows(const char *now)
{
    char bound[32];

    (void)snprintf(bound, sizeof bound, "--bound-ms %d", chaos.bound_ms);
    checker_assert_holds(&chaos.checker, &chaos.f, now, bound);
    print_message("%s", chaos.checker.out);
}

/* ---- asking ---- */

int64_t chaos_ask(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&chaos.f, "postgres", url, sizeof url);
    return fixture_query_int8(url, sql);
}

void chaos_redis(char *reply, size_t size, const char *command)
{
    pool_redis(chaos.redis.url, reply, size, command);
}

void chaos_redis_ok(const char *command)
{
    char reply[128];

    chaos_redis(reply, sizeof reply, command);
    assert_string_equal(reply, "OK");
}
