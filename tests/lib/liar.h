/* liar: a server that speaks Redis to our scripts and lies: it grants every lock to
 * everybody, with random tokens, some of them twice, and says that all is well. */
#ifndef LEDGERLOCK_LIAR_H
#define LEDGERLOCK_LIAR_H

#include "tests/lib/fixture.h"

struct liar_shared;

/* Zero it before the first open. */
struct liar {
    pid_t pid; /* 0: not running */
    char dir[64];
    char url[FIXTURE_URL];
    struct liar_shared *shared;
};

/* Returns when clients can connect, who are told this version. It ends with the test.
 */
void liar_open(struct liar *l, const char *version);
void liar_close(struct liar *l);

/* Tenures granted so far; and how many of them had a key that another connection held
 * at that moment, granted and not given back. */
unsigned liar_grants(const struct liar *l);
unsigned liar_shared_grants(const struct liar *l);

#endif
