/* private_pg: a PostgreSQL server that belongs to one test binary and may be killed. */
#ifndef LEDGERLOCK_PRIVATE_PG_H
#define LEDGERLOCK_PRIVATE_PG_H

#include "tests/lib/fixture.h"

/* Zero it before private_pg_open. */
struct private_pg {
    char dir[80];          /* data, socket, log */
    char url[FIXTURE_URL]; /* of the superuser */
    pid_t pid;             /* 0: not running */
};

/* Makes a cluster with the roles of ledgerlock, starts it, and points
 * LEDGERLOCK_TEST_PG to it: from here on every fixture stands on it. As root it runs as
 * another user. */
void private_pg_open(struct private_pg *pg);

/* kill -9 of the postmaster: no shutdown, no checkpoint. */
void private_pg_kill(struct private_pg *pg);

/* Starts it again on the same data; returns when it answers. */
void private_pg_start(struct private_pg *pg);

/* A standby of a running server, which it follows until it is promoted; it ends as
 * the other does. */
void private_pg_follow(struct private_pg *standby, const struct private_pg *primary);

/* Stops it and removes the folder. */
void private_pg_close(struct private_pg *pg);

/* For other servers that refuse to run as root: a short folder of their own, a program
 * in it (from PostgreSQL's folder or PATH) with its output in the file "log", and the
 * end of the folder. */
void private_pg_folder(char *dir, size_t size, const char *name);
pid_t private_pg_spawn(const char *dir, const char *const *words);
void private_pg_remove(const char *dir);

#endif
