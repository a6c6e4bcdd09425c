/* private_pg: a PostgreSQL server that belongs to one test binary and may be killed. */
#ifndef LEDGERLOCK_PRIVATE_PG_H
#define LEDGERLOCK_PRIVATE_PG_H

#include "tests/lib/fixture.h"

enum { PRIVATE_PG_CONNECTIONS = 60 }; /* max_connections */

/* Zero it before private_pg_open; with a port it listens on 127.0.0.1, too. */
struct private_pg {
    int port;
    char dir[80];          /* data, socket, log */
    char url[FIXTURE_URL]; /* of the superuser */
    pid_t pid;             /* 0: not running */
};

/* Makes a cluster with the roles of ledgerlock, starts it, and points
 * LL_TEST_PG to it: from here on every fixture stands on it. As root it runs as
 * another user. */
void private_pg_open(struct private_pg *pg);

/* The same without any role, its data made by these commands in its folder, where a
 * shell runs them as the user of the server: PRIVATE_PG_INIT, or what leads to a copy.
 */
void private_pg_fill(struct private_pg *pg, const char *commands);
#define PRIVATE_PG_INIT                                                                \
    "initdb -D data -U postgres -A trust -E UTF8 --locale C.UTF-8 --no-sync"

/* The one of a whole program: .start and .stop of its group. */
extern struct private_pg private_pg;
void private_pg_begin(void);
void private_pg_end(void);

/* kill -9 of the postmaster: no shutdown, no checkpoint. */
void private_pg_kill(struct private_pg *pg);

/* Its fast shutdown, after which it may be started again. */
void private_pg_stop(struct private_pg *pg);

/* Starts it again on the same data; returns when it answers. */
void private_pg_start(struct private_pg *pg);

/* A standby of a running server, which it follows until it is promoted; it ends as
 * the other does. */
void private_pg_follow(struct private_pg *standby, const struct private_pg *primary);

/* The server speaks TLS from now on, or soon, with the certificate PATH.crt and its
 * key PATH.key. */
void private_pg_certificate(struct private_pg *pg, const char *path);

/* Stops it and removes the folder. */
void private_pg_close(struct private_pg *pg);

/* Debian's pooler in front of the PostgreSQL of the tests, on a socket of its own, with
 * passwords. Zero it before pgbouncer_open. */
struct pgbouncer {
    char dir[80];
    char password_file[64]; /* what LEDGERLOCK_POSTGRES_PASSWORD_FILE must name */
    pid_t pid;
};

/* True if the program is installed. */
bool pgbouncer_is_there(void);

/* Starts it: mode "transaction" or "session", so many sessions of PostgreSQL for each
 * role and database; returns when it answers. */
void pgbouncer_open(struct pgbouncer *b, const char *mode, int sessions);

/* URL of the test's database through it. */
void pgbouncer_url(const struct pgbouncer *b,
                   const struct fixture *f,
                   const char *role,
                   char *url,
                   size_t size);

/* Ends it and removes the folder; accepts one that was never opened. */
void pgbouncer_close(struct pgbouncer *b);

#endif
