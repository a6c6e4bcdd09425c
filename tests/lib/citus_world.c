/* citus_world: the catalogue of the cluster tells where a cell is. */
#include "tests/lib/citus_world.h"

#include "tests/lib/world.h"

struct fixture cluster;
struct fixture_child citus_pool[CITUS_POOLS];

static char stopped[280]; /* a node, HOST:PORT */

static const char *coordinator(void)
{
    return getenv("LL_TEST_CITUS_URL");
}

static void drop_cells(void)
{
    fixture_exec(
        coordinator(),
        "DO $$ DECLARE s text; BEGIN FOR s IN SELECT nspname FROM pg_namespace "
        "WHERE nspname ~ '^" CITUS_SCHEMA
        "_[0-9]+$' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', s); END LOOP; "
        "END $$");
}

void citus_open(void)
{
    if (coordinator() == NULL) {
        (void)puts("skipped: no Citus: set LL_TEST_CITUS_URL to a coordinator with two "
                   "nodes");
        exit(77);
    }
    fixture_open(&cluster);
    (void)snprintf(cluster.url, sizeof cluster.url, "%s", coordinator());
    fixture_env("LEDGERLOCK_CELLS_CITUS", coordinator());
    fixture_env("LEDGERLOCK_POSTGRES_SCHEMA", CITUS_SCHEMA);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    drop_cells();
}

void citus_kill_pool(int i)
{
    if (citus_pool[i].pid != 0) {
        (void)kill(citus_pool[i].pid, SIGKILL);
        (void)fixture_wait(&citus_pool[i], 60, NULL);
        citus_pool[i].pid = 0;
    }
}

void citus_end_pool(int i)
{
    pool_end(&citus_pool[i]);
}

void citus_close(void)
{
    citus_clients_kill();
    for (int i = 0; i < CITUS_POOLS; i++)
        citus_kill_pool(i);
    if (stopped[0] != '\0')
        citus_start_node(stopped);
    if (coordinator() != NULL)
        drop_cells();
}

/* ---- cells ---- */

void citus_add(int cell)
{
    runs(&cluster, 0, "cells add %d", cell);
    runs(
        &cluster, 0,
        "seed --cells %d --seed %d --users 60 --subscriptions 150 --skus 12 --orders 80",
        cell, cell);
}

/* A month takes a cluster a second or more. */
void citus_add_fresh(int cell)
{
    runs(&cluster, 0, "cells add %d", cell);
    runs(&cluster, 0,
         "seed --cells %d --seed %d --users 60 --subscriptions 0 --skus 12 --orders 80",
         cell, cell);
    fixture_exec(citus_home(cell),
                 "SELECT subscribe(user_id, 'daily', 100, currency, 'day', 1, now() - "
                 "interval '23 hours', 0, 'daily') FROM users");
}

/* Of the tables of Citus alone: its views ask all nodes, also one that is away. */
const char *citus_node(int cell, bool is_home)
{
    static char name[2][280];
    char sql[900];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE shouldhaveshards "
        "AND noderole = 'primary' AND (groupid = (SELECT groupid FROM pg_dist_placement "
        "JOIN pg_dist_shard USING (shardid) WHERE logicalrelid = '" CITUS_SCHEMA
        "_%d.users'::regclass)) = %s LIMIT 1",
        cell, is_home ? "true" : "false");
    fixture_query_text(coordinator(), sql, name[is_home], sizeof name[0]);
    return name[is_home];
}

const char *citus_home_as(int cell, const char *role)
{
    static char url[1024];
    char host[280];

    (void)snprintf(host, sizeof host, "%s", citus_node(cell, true));
    *strrchr(host, ':') = '\0';
    (void)snprintf(url, sizeof url,
                   "%s%shost=%s&port=%s&options=-csearch_path%%3D" CITUS_SCHEMA
                   "_%d%s%s",
                   coordinator(), strchr(coordinator(), '?') != NULL ? "&" : "?", host,
                   strrchr(citus_node(cell, true), ':') + 1, cell,
                   role != NULL ? "&user=" : "", role != NULL ? role : "");
    return url;
}

const char *citus_home(int cell)
{
    return citus_home_as(cell, NULL);
}

int64_t citus_ask(int cell, const char *sql)
{
    return fixture_query_int8(citus_home(cell), sql);
}

void citus_await_worked(int cell)
{
    static const char left[] =
        "SELECT (SELECT count(*) FROM orders WHERE state = 'pending') + (SELECT count(*) "
        "FROM subscriptions WHERE next_due_at <= now() AND state IN ('active', "
        "'past_due'))";

    FIXTURE_AWAIT(citus_ask(cell, left) == 0, "cell %d has %" PRId64 " rows due", cell,
                  citus_ask(cell, left));
}

void citus_check(int cell)
{
    char options[64];

    (void)snprintf(world.owner, sizeof world.owner, "%s", citus_home(cell));
    (void)snprintf(options, sizeof options, "--schema " CITUS_SCHEMA "_%d", cell);
    checker_assert_holds("now", options);
}

/* ---- a node ---- */

const char *citus_cannot_stop(void)
{
    return getenv("LL_TEST_CITUS_CTL") != NULL
               ? NULL
               : "no LL_TEST_CITUS_CTL: pg_ctl of the node that listens at $PORT";
}

static void control(const char *node, const char *verb)
{
    char command[1024];

    (void)snprintf(command, sizeof command, "PORT=%s; %s %s >/dev/null 2>&1",
                   strrchr(node, ':') + 1, getenv("LL_TEST_CITUS_CTL"), verb);
    assert_int_equal(system(command), 0);
}

void citus_stop_node(const char *node)
{
    (void)snprintf(stopped, sizeof stopped, "%s", node);
    control(node, "-m immediate stop");
}

void citus_start_node(const char *node)
{
    control(node, "start");
    stopped[0] = '\0';
}
