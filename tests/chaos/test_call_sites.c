/* Every call site of malloc, libpq, hiredis and the system calls beneath that a small
 * run comes by fails once: the run ends by itself or goes on, nothing crashes, and with
 * the next run everything is there once. The quick set takes some of the sites. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/call_shim.h"
#include "tests/lib/chaos_world.h"

enum { CALM_RUNS = 3, STEP = 9, TRIES = 3 };

static struct call_table *table;
static char table_file[96];
static bool is_calm[CALL_SITES]; /* every run without a fault comes by */

static const char now[] = "2024-01-01T12:00:00Z";

static int open_watched(void **state)
{
    char url[FIXTURE_URL];
    int fd;

    (void)chaos_open_empty(state);
    chaos_as_shipped(); /* a history that cannot be written ends its worker */
    fixture_url_as(&chaos.f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, "INSERT INTO ledgerlock.stock (sku, initial_qty, on_hand,"
                      " unit_price_minor, currency) VALUES ('hot', 5000, 5000, 5,"
                      " 'USD')");
    fixture_file(table_file, sizeof table_file, "", 0600);
    fd = open(table_file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *table), 0);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(table != MAP_FAILED);
    (void)close(fd);
    atomic_store(&table->fail, -1);
    fixture_env(CALL_SHIM_FILE, table_file);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1000"); /* for the run after the fault */
    return 0;
}

static int close_watched(void **state)
{
    (void)munmap(table, sizeof *table);
    (void)unlink(table_file);
    return chaos_close(state);
}

/* One period and one order of a user of its own. */
static void put(int user)
{
    char sql[1024], url[FIXTURE_URL];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = ledgerlock; INSERT INTO users (user_id, currency) VALUES"
        " (%d, 'USD'); SELECT deposit(%d, 1, 100000); INSERT INTO subscriptions"
        " (user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) VALUES"
        " (%d, 'p', 100, 'USD', '2024-01-01Z', 'month', '2024-01-01Z'); SELECT"
        " place_order(%d, 'k', '[{\"sku\": \"hot\", \"qty\": 1}]', '2024-01-01Z')",
        user, user, user, user);
    fixture_url_as(&chaos.f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, sql);
}

static void assert_done_once(int user)
{
    char sql[256];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT (SELECT 10 * count(*) FROM ledgerlock.transfers WHERE user_id"
        " = %d AND kind = 'charge') + (SELECT count(*) FROM"
        " ledgerlock.orders WHERE user_id = %d AND state = 'fulfilled')",
        user, user);
    assert_int_equal(chaos_ask(sql), 11);
}

static int run(struct fixture_output *o)
{
    return fixture_run(&chaos.f, o, "run", "--once", "-w", "1", "--now", now, NULL);
}

/* The exit codes of the program: it ended by itself, and nothing in it crashed. hiredis
 * before 1.0 calls abort when it gets no memory: then the rows alone must be right. */
static void assert_no_crash(const struct fixture_output *o, const struct call_site *s)
{
    static const int codes[] = {0, 2, 3, 4, 5, 6, 70};
    bool may_abort = strncmp(s->module, "libhiredis", 10) == 0;
    bool is_known = may_abort && o->code == 128 + SIGABRT;
    const char *died = strstr(o->err, " signal=");

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        is_known = is_known || o->code == codes[i];
    if (may_abort && died != NULL && strtol(died + 8, NULL, 10) == SIGABRT)
        died = NULL;
    if (!is_known || died != NULL || strstr(o->err, "canary-") != NULL)
        fail_msg("%s called from %s+0x%" PRIx64 " failed: exit %d: %s", s->callee,
                 s->module, s->offset, o->code, o->err);
}

/* Runs without a fault, and which sites all of them come by; returns how many. */
static unsigned see_calm_runs(int *user)
{
    static struct fixture_output o;
    unsigned n = 0;

    memset(is_calm, 1, sizeof is_calm);
    for (int i = 0; i < CALM_RUNS; i++) {
        put(++*user);
        assert_int_equal(run(&o), 0);
        for (unsigned site = 0; site < CALL_SITES; site++) {
            is_calm[site] = is_calm[site] && table->sites[site].calls > 0;
            table->sites[site].calls = 0;
        }
    }
    for (unsigned site = 0; site < CALL_SITES; site++)
        n += is_calm[site];
    return n;
}

/* false: this run did not come by the site. */
static bool fail_at(unsigned site, int user)
{
    static struct fixture_output o;
    unsigned before = atomic_load(&table->failed);

    put(user);
    atomic_store(&table->fail, (int)site);
    (void)run(&o);
    atomic_store(&table->fail, -1);
    assert_no_crash(&o, &table->sites[site]);
    if (run(&o) != 0)
        fail_msg("the run after the fault: exit %d: %s", o.code, o.err);
    assert_done_once(user);
    return atomic_load(&table->failed) > before;
}

/* Sites that only a fault leads to may not be come by again; the others must. */
static bool fail_once_at(unsigned site, int *user)
{
    for (int i = 0; i < (is_calm[site] ? TRIES : 1); i++) {
        if (fail_at(site, ++*user))
            return true;
    }
    if (is_calm[site])
        fail_msg("%s called from %s+0x%" PRIx64 " was not met again",
                 table->sites[site].callee, table->sites[site].module,
                 table->sites[site].offset);
    return false;
}

static void call_sites_fail_once_each(void **state)
{
    unsigned calm, failed = 0, site = 0;
    static struct fixture_output o;
    int user = 0;

    (void)state;
    fixture_preload_calls();
    calm = see_calm_runs(&user);
    assert_true(calm > 60); /* it does see the calls */
    for (; site < atomic_load(&table->n); site += chaos_is_full() ? 1 : STEP)
        failed += fail_once_at(site, &user);
    assert_true(atomic_load(&table->n) < CALL_SITES); /* there was room for all */
    print_message("%u of %u sites have failed, %u of them in every calm run\n", failed,
                  atomic_load(&table->n), calm);
    fixture_become(&chaos.f, "ledgerlock_owner");
    assert_int_equal(
        fixture_run(&chaos.f, &o, "audit", "--now", now, "--lag", "0s", NULL), 0);
    chaos_check_rows(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(call_sites_fail_once_each, open_watched,
                                        close_watched),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
