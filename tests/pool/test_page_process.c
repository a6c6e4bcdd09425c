/* page process: the process that serves the page beside those that work, its death, and
 * signals to all of them. */
#include "tests/lib/page.h"

static void start(void)
{
    page_start("run -w 2");
    page_await(200, "/readyz", "");
}

WORLD(.poll_ms = 100, .lease_ms = 2000, .redis = true, .also = start);

/* Guarantee: The process that serves the page may die: workers go on, and it comes
 * back. */
CASE(page_that_is_killed_comes_back_and_costs_no_work)
{
    pid_t first = pool_page();

    assert_true(first > 0);
    assert_int_equal(kill(first, SIGKILL), 0);
    pool_log_wait(&world.pool, "event=pool.http_died");
    page_await(200, "/livez", "");
    assert_int_not_equal(pool_page(), first);
    pool_logged(0, "event=pool.worker_died");
}

/* Guarantee: A pool that is told to read its settings again shows its page by the new
 * ones. */
CASE(page_has_the_settings_of_a_reload)
{
    pid_t first = pool_page();

    assert_int_equal(kill(world.pool.pid, SIGHUP), 0);
    pool_log_wait(&world.pool, "event=pool.reloaded");
    FIXTURE_AWAIT(!pool_is_alive(first), "the page goes on with its old settings");
    page_await(200, "/livez", "");
    pool_logged(0, "_died");
}

static bool is_ignored(pid_t pid, int sig)
{
    const char *mask = strstr(pool_proc(pid, "status"), "SigIgn:");

    assert_non_null(mask);
    return (strtoull(mask + strlen("SigIgn:"), NULL, 16) >> (sig - 1) & 1) != 0;
}

static const struct {
    const char *name;
    int sig;
} sent[] = {{"int", SIGINT}, {"quit", SIGQUIT}, {"hup", SIGHUP}, {"term", SIGTERM}};

/* The children are sent it first, as can happen. */
/* Guarantee: INT, QUIT, HUP or TERM to all processes of a pool, as by Ctrl-C in a
 * terminal, raises no alarm: it drains and exits 0, or reads its configuration again.
 */
CASE_ROWS(no_alarm_is_raised_when_all_processes_are_sent, sent)
{
    pid_t pids[POOL_CHILDREN];
    size_t n;

    pool_wait_children(world.pool.pid, 4);
    n = pool_children(world.pool.pid, pids);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(is_ignored(pids[i], row->sig), row->sig != SIGTERM);
        assert_int_equal(kill(pids[i], row->sig), 0);
    }
    if (row->sig == SIGTERM) { /* to the children alone: others take their places */
        for (size_t i = 0; i < n; i++)
            FIXTURE_AWAIT(!pool_is_alive(pids[i]), "it goes on");
        pool_wait_children(world.pool.pid, 4);
        page_await(200, "/readyz", "");
    }
    assert_int_equal(kill(world.pool.pid, row->sig), 0);
    if (row->sig == SIGHUP) {
        pool_log_wait(&world.pool, "event=pool.reloaded");
        (void)kill(world.pool.pid, SIGTERM);
    }
    pool_assert_ends(&world.pool, 0);
    pool_logged(0, "_died");
}
