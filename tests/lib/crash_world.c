/* crash_world: a trigger that sleeps shows who works a row, by the name of its session.
 */
#include "tests/lib/crash_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static char last_killed[64];

static const char hang[] =
    "CREATE TABLE public.slow (job text, item bigint); GRANT SELECT ON public.slow TO"
    " PUBLIC; CREATE FUNCTION public.hang() RETURNS trigger LANGUAGE plpgsql SECURITY"
    " DEFINER AS $$ BEGIN IF EXISTS (SELECT FROM public.slow WHERE job = TG_ARGV[0] AND"
    " item = (to_jsonb(NEW) ->> TG_ARGV[1])::bigint) THEN PERFORM pg_sleep(60);"
    " END IF; RETURN NULL; END $$;"
    " CREATE TRIGGER hang AFTER INSERT ON ledgerlock.charges FOR EACH ROW EXECUTE"
    " FUNCTION public.hang('billing', 'subscription_id');"
    " CREATE TRIGGER hang AFTER UPDATE ON ledgerlock.orders FOR EACH ROW"
    " WHEN (NEW.state IN ('fulfilled', 'rejected'))"
    " EXECUTE FUNCTION public.hang('orders', 'order_id')";

static void as_superuser(const struct fixture *f, const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(f, "postgres", url, sizeof url);
    fixture_exec(url, sql);
}

int64_t crash_ask(const struct fixture *f, const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(f, "postgres", url, sizeof url);
    return fixture_query_int8(url, sql);
}

void crash_open(struct fixture *f, const char *lease_ms)
{
    fixture_open_migrated(f);
    as_superuser(f, hang);
    fixture_become(f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", lease_ms);
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "50");
    fixture_env("ASAN_OPTIONS", "handle_segv=0"); /* a signal is to end it as such */
    last_killed[0] = '\0';
}

void crash_slow(const struct fixture *f, const char *job, int64_t item)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO public.slow VALUES ('%s', %" PRId64 ")", job, item);
    as_superuser(f, sql);
}

void crash_not_slow(const struct fixture *f, const char *job, int64_t item)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM public.slow WHERE job = '%s' AND item = %" PRId64, job,
                   item);
    as_superuser(f, sql);
}

/* Name of the session that sleeps, which is the worker's; "" when there is none. */
static void read_hanging(const struct fixture *f, char *name, size_t size)
{
    char url[FIXTURE_URL];

    fixture_url_as(f, "postgres", url, sizeof url);
    fixture_query_text(url,
                       "SELECT coalesce(max(application_name), '') FROM"
                       " pg_stat_activity WHERE datname = current_database() AND"
                       " wait_event = 'PgSleep'",
                       name, size);
}

/* The child that calls itself "ledgerlock:w<slot>"; the slot is in the session's name:
 * "ledgerlock worker pool.slot.incarnation". */
static pid_t find_worker(pid_t pool, const char *session)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(pool, pids);
    char path[64], wanted[32], comm[32] = "";
    int slot = -1;

    assert_int_equal(sscanf(session, "ledgerlock worker %*[^.].%d.", &slot), 1);
    (void)snprintf(wanted, sizeof wanted, "ledgerlock:w%d\n", slot);
    for (size_t i = 0; i < n; i++) {
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/%ld/comm", (long)pids[i]);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(comm, sizeof comm, file) != NULL && strcmp(comm, wanted) == 0) {
            (void)fclose(file);
            return pids[i];
        }
        (void)fclose(file);
    }
    return 0;
}

pid_t crash_wait_hanging(const struct fixture *f, pid_t pool)
{
    int64_t deadline = pool_now_ms() + 20000;
    char name[64];
    pid_t pid;

    do {
        if (pool_now_ms() > deadline)
            fail_msg("no worker hangs");
        fixture_pause_ms(2);
        read_hanging(f, name, sizeof name);
    } while (name[0] == '\0' || strcmp(name, last_killed) == 0);
    pid = find_worker(pool, name);
    assert_true(pid > 0);
    (void)snprintf(last_killed, sizeof last_killed, "%s", name);
    return pid;
}

int64_t crash_hanging(const struct fixture *f, pid_t pool, int signal)
{
    pid_t pid = crash_wait_hanging(f, pool);
    int64_t at_ms = pool_now_ms();

    assert_int_equal(kill(pid, signal), 0);
    while (pool_is_alive(pid))
        fixture_pause_ms(1);
    return at_ms;
}
