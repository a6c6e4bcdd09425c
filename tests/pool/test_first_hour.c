/* first hour: the examples of a shop run against a pool at work, and what they say is
 * what the tables have. */
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

static char said_by[4096];

static void begin(void)
{
    private_pg.port = fixture_free_port();
    private_pg_begin();
}

/* A server of its own: a transaction that is open in another database holds up the
 * feed. */
static const struct world_plan world_plan = {.poll_ms = 100};
GROUP(.plan = &world_plan, GROUP_OF_WORLD, .start = begin, .stop = private_pg_end);

/* Runs a command of the shell, in `dir`, with the sources as $S and the database as
 * $URL; false: it ended with 77. */
static bool shell(const char *dir, const char *command)
{
    char line[1536];
    FILE *pipe;
    int status;

    (void)snprintf(
        line, sizeof line,
        "cd %s && S=%s URL=postgresql://ledgerlock_test_client@127.0.0.1:%d/%s && %s 2>&1",
        dir, getenv("LL_TEST_SOURCE"), private_pg.port, world.f.database, command);
    pipe = popen(line, "r");
    assert_non_null(pipe);
    said_by[fread(said_by, 1, sizeof said_by - 1, pipe)] = '\0';
    status = pclose(pipe);
    print_message("%s", said_by);
    if (WEXITSTATUS(status) == 77)
        return false;
    assert_int_equal(status, 0);
    return true;
}

static const struct {
    const char *name, *command;
} examples[] = {
    {"python",
     "{ /usr/bin/python3 -c 'import psycopg2' || exit 77; timeout 120 /usr/bin/python3 -B"
     " $S/examples/shop.py $URL; }"},
    /* An import of node looks for node_modules beside the file, so the file is copied.
     */
    {"node",
     "for d in /usr/share/nodejs /usr/lib/node_modules /usr/local/lib/node_modules; do"
     " [ ! -d $d/pg ] || export NODE_PATH=$d; done;"
     " { [ -n \"$NODE_PATH\" ] && ln -s $NODE_PATH node_modules && cp $S/examples/shop.mjs . ||"
     " { echo 'node has no module pg: install node-pg'; exit 77; }; } &&"
     " timeout 120 node shop.mjs $URL"},
};

/* Guarantee: The shop of the examples in Python and in Node is served by a pool: it
 * makes a SKU, a user, a deposit, a subscription and an order, is told what was
 * decided, and refunds. */
CASE_ROWS(shop_of_the_examples_is_served_in, examples)
{
    char dir[80];
    bool ran;

    fixture_folder(dir, sizeof dir, "shop");
    pool_start("run -w 1");
    ran = shell(dir, row->command);
    fixture_remove(dir, "log");
    if (!ran)
        skip();
    fixture_assert_contains(said_by, "charge.captured 900 EUR");
    fixture_assert_contains(said_by, "order.fulfilled 900 EUR");
    fixture_assert_contains(said_by, "refused LL003");
    fixture_assert_contains(said_by, "refunded 450");
    fixture_assert_contains(said_by, "balance 3650");
    world_expect("3650 8",
                 "SELECT concat_ws(' ', (SELECT sum(balance_minor) FROM users),"
                 " (SELECT sum(on_hand) FROM stock))");
    pool_stop();
    world_audit(NULL, NULL);
}
