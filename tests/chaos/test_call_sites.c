/* Every call site of malloc, libpq, hiredis and the system calls beneath that a small
 * run comes by fails once: the run ends by itself or goes on, nothing crashes, and with
 * the next run everything is there once. The quick set takes some of the sites. */
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/lib/fault.h"
#include "tests/lib/steps.h"
#include "tests/testkit/call_shim.h"

enum { CALM_RUNS = 3, STEP = 9, TRIES = 3 };

static const struct world_plan world_plan = {FAULT_PLAN};

static struct call_table *table;
static char table_file[96];
static bool is_calm[CALL_SITES]; /* every run without a fault comes by */

static const char now[] = "2024-01-01T12:00:00Z";

static void open_watched(void)
{
    int fd;

    world_open();
    fault_as_shipped(); /* a history that cannot be written ends its worker */
    world_sku(1, "hot", 5000, 5);
    fixture_file(table_file, sizeof table_file, "", 0600);
    fd = open(table_file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *table), 0);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(table != MAP_FAILED);
    (void)close(fd);
    atomic_store(&table->fail, -1);
    fixture_env(CALL_SHIM_FILE, table_file);
}

static void close_watched(void)
{
    (void)munmap(table, sizeof *table);
    (void)unlink(table_file);
    world_close();
}

GROUP(.plan = &world_plan, .open = open_watched, .close = close_watched);

/* One period and one order of a user of its own. */
static void put(int user)
{
    world_user(user, 100000);
    world_subscription(user, user, 100, "2024-01-01Z");
    (void)world_order(user, "k", "[{\"sku\": \"hot\", \"qty\": 1}]");
}

static void assert_done_once(int user)
{
    world_is(
        11,
        "SELECT (SELECT 10 * count(*) FROM charges WHERE user_id = %d AND state ="
        " 'captured') + (SELECT count(*) FROM orders WHERE user_id = %d AND state ="
        " 'fulfilled')",
        user, user);
}

static int run(void)
{
    return fixture_run(&world.f, &said, "run", "--once", "-w", "1", "--now", now, NULL);
}

/* The exit codes of the program: it ended by itself, and nothing in it crashed. hiredis
 * before 1.0 calls abort when it gets no memory: then the rows alone must be right. */
static void assert_no_crash(const struct call_site *s)
{
    static const int codes[] = {0, 2, 3, 4, 5, 6, 7, 70};
    bool may_abort = strncmp(s->module, "libhiredis", 10) == 0;
    bool is_known = may_abort && said.code == 128 + SIGABRT;
    const char *died = strstr(said.err, " signal=");

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        is_known = is_known || said.code == codes[i];
    if (may_abort && died != NULL && strtol(died + 8, NULL, 10) == SIGABRT)
        died = NULL;
    if (!is_known || died != NULL || strstr(said.err, "canary-") != NULL)
        fail_msg("%s called from %s+0x%" PRIx64 " failed: exit %d: %s", s->callee,
                 s->module, s->offset, said.code, said.err);
}

/* Runs without a fault, and which sites all of them come by; returns how many. */
static unsigned see_calm_runs(int *user)
{
    unsigned n = 0;

    memset(is_calm, 1, sizeof is_calm);
    for (int i = 0; i < CALM_RUNS; i++) {
        put(++*user);
        assert_int_equal(run(), 0);
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
    unsigned before = atomic_load(&table->failed);

    put(user);
    atomic_store(&table->fail, (int)site);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1000"); /* its keys end soon */
    (void)run();
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "10000");
    atomic_store(&table->fail, -1);
    assert_no_crash(&table->sites[site]);
    if (run() != 0)
        fail_msg("the run after the fault: exit %d: %s", said.code, said.err);
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

/* Guarantee: Any call of malloc, libpq, hiredis or the system that a run makes may
 * fail once: the run ends by itself, and the next one has everything done once. */
CASE(call_sites_fail_once_each)
{
    unsigned calm, failed = 0, site = 0;
    int user = 0;

    fixture_preload_calls();
    calm = see_calm_runs(&user);
    assert_true(calm > 60); /* it does see the calls */
    for (; site < atomic_load(&table->n); site += fault_is_full() ? 1 : STEP)
        failed += fail_once_at(site, &user);
    assert_true(atomic_load(&table->n) < CALL_SITES); /* there was room for all */
    print_message("%u of %u sites have failed, %u of them in every calm run\n", failed,
                  atomic_load(&table->n), calm);
    world_audit(now, NULL);
    fault_check_rows(now);
}
