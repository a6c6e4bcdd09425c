/* pgbouncer: Debian's pooler in front of the PostgreSQL of the tests, on a socket of
 * its own, with passwords. */
#ifndef LEDGERLOCK_PGBOUNCER_H
#define LEDGERLOCK_PGBOUNCER_H

#include "tests/lib/fixture.h"

/* Zero it before pgbouncer_open. */
struct pgbouncer {
    char dir[80];
    char password_file[64]; /* what LEDGERLOCK_POSTGRES_PASSWORD_FILE must name */
    pid_t pid;
};

/* Whether the program is installed. */
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
