/* secrets: passwords that the programs of a test are given and that no log may show.
 * The fixture gives every run the one of PostgreSQL; whatever was written by the runs
 * of a test and by servers of its own is looked into when it closes them. */
#ifndef LEDGERLOCK_SECRETS_H
#define LEDGERLOCK_SECRETS_H

#include <stdbool.h>

/* No log may show these. */
#define SECRET_OF_REDIS "canary-of-redis-5d1f"
#define SECRET_OF_POSTGRES "canary-of-postgres-8c2e"

/* Path of a file with the password, mode 600; there until secrets_close. */
const char *secrets_of_redis(void);
const char *secrets_of_postgres(void);

/* True if one of them is in a file; false when there is none. */
bool secrets_are_in(const char *path);

/* Looks at what a run has written so far. */
void secrets_find(const int fds[2]);

/* Looks at it when the test is over; the descriptors may be closed before. */
void secrets_watch(const int fds[2]);

/* Asserts that nothing that was looked at had one; removes the files. */
void secrets_close(void);

#endif
