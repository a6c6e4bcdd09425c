/* citus_clients: processes that call, and the memory in which they count. */
#include "tests/lib/citus_world.h"

#include <libpq-fe.h>

#include "tests/lib/crowd.h"

enum { EACH = 2, CLIENTS = CITUS_CELLS * EACH, PAUSE_MS = 50 };

static struct clients {
    int n;
    char anchor[64]; /* of what they subscribe to: one period is due */
    volatile bool is_over;

    struct client {
        volatile int64_t
            calls; /* that were acknowledged: an order, a deposit, a subscription */
        volatile int64_t asked_ms, stood_ms;
    } of[CLIENTS];
} * clients;

static pid_t pids[CLIENTS]; /* not shared: in a child its own is 0 */

static int cell_of(int i)
{
    return i / EACH + 1;
}

/* ---- in the process of a client ---- */

/* The node that has the cell by now; NULL: nobody tells. */
static PGconn *connect_home(int cell)
{
    PGconn *coordinator = PQconnectdb(cluster.url), *home = NULL;
    char sql[400], url[1024];
    PGresult *res;

    (void)snprintf(
        sql, sizeof sql,
        "SELECT nodename, nodeport FROM pg_dist_shard JOIN pg_dist_placement "
        "USING (shardid) JOIN pg_dist_node USING (groupid) WHERE "
        "logicalrelid = '" CITUS_SCHEMA "_%d.users'::regclass",
        cell);
    res = PQexec(coordinator, sql);
    if (PQntuples(res) == 1) {
        (void)snprintf(url, sizeof url,
                       "%s%shost=%s&port=%s&options=-csearch_path%%3D" CITUS_SCHEMA
                       "_%d",
                       cluster.url, strchr(cluster.url, '?') != NULL ? "&" : "?",
                       PQgetvalue(res, 0, 0), PQgetvalue(res, 0, 1), cell);
        home = PQconnectdb(url);
    }
    PQclear(res);
    PQfinish(coordinator);
    return home;
}

static bool
is_answered(PGconn *home, const char *sql, const char *const values[], int n)
{
    PGresult *res = PQexecParams(home, sql, n, NULL, values, NULL, NULL, 0);
    bool is_it = PQresultStatus(res) == PGRES_TUPLES_OK;

    PQclear(res);
    return is_it;
}

/* An order, a deposit and a subscription, under keys that no other call has. */
static bool call(PGconn *home, int i, int64_t no)
{
    char user[24], key[64];
    const char *const values[] = {user, key, clients->anchor};

    (void)snprintf(user, sizeof user, "%" PRId64,
                   ((int64_t)cell_of(i) << 40) + 1 + i % EACH);
    (void)snprintf(key, sizeof key, "client %d %" PRId64, i, no);
    return is_answered(home,
                       "SELECT place_order($1, $2, "
                       "'[{\"sku\": \"SKU-00012\", \"qty\": 1}]')",
                       values, 2) &&
           is_answered(home,
                       "SELECT deposit($1, (SELECT currency FROM balance($1)), 1, $2)",
                       values, 2) &&
           is_answered(
               home,
               "SELECT subscribe($1, $2, 1, (SELECT currency FROM balance($1)), "
               "'day', 1, $3, 0, $2)",
               values, 3);
}

static int work(int i, void *arg)
{
    struct client *c = &clients->of[i];
    PGconn *home = NULL;

    (void)arg;
    while (!clients->is_over || home == NULL) {
        if (c->asked_ms == 0)
            c->asked_ms = fixture_now_ms();
        if (home == NULL)
            home = connect_home(cell_of(i));
        if (home != NULL && call(home, i, c->calls)) {
            int64_t took_ms = fixture_now_ms() - c->asked_ms;

            c->stood_ms = took_ms > c->stood_ms ? took_ms : c->stood_ms;
            c->asked_ms = 0;
            c->calls++;
        } else {
            PQfinish(home);
            home = NULL;
        }
        fixture_pause_ms(PAUSE_MS);
    }
    PQfinish(home);
    return 0;
}

/* ---- for the test ---- */

void citus_clients_start(int n)
{
    assert_in_range(n, 1, CITUS_CELLS);
    clients = crowd_memory(sizeof *clients);
    clients->n = n * EACH;
    fixture_query_text(cluster.url, "SELECT now() - interval '20 hours'",
                       clients->anchor, sizeof clients->anchor);
    crowd_start(pids, clients->n, work, NULL);
}

void citus_clients_go_on(int cell, int64_t times)
{
    for (int i = (cell - 1) * EACH; i < cell * EACH; i++) {
        int64_t to = clients->of[i].calls + times;

        FIXTURE_AWAIT(clients->of[i].calls >= to, "a client of cell %d has no answer",
                      cell);
    }
}

void citus_clients_end(void)
{
    static const char *const tables[] = {"orders", "wallet_entries", "events"};
    char sql[200];

    clients->is_over = true;
    crowd_join(pids, clients->n);
    for (int i = 0; i < clients->n; i++) {
        for (int t = 0; t < 3; t++) {
            (void)snprintf(
                sql, sizeof sql,
                "SELECT count(*) FROM %s WHERE idempotency_key ~ '^client %d [0-9]+$'",
                tables[t], i);
            promise_int_equal(citus_ask(cell_of(i), sql), clients->of[i].calls);
        }
    }
    clients = NULL;
}

void citus_clients_kill(void)
{
    if (clients == NULL)
        return;
    for (int i = 0; i < clients->n; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)fixture_reap(pids[i], 60);
    }
    clients = NULL;
}

int64_t citus_clients_stood_ms(int cell)
{
    int64_t most = 0;

    for (int i = (cell - 1) * EACH; i < cell * EACH; i++) {
        if (clients->of[i].stood_ms > most)
            most = clients->of[i].stood_ms;
        clients->of[i].stood_ms = 0;
    }
    return most;
}
