/* lock_waiters: threads that wait for one lock, each with a client of its own, and what
 * the server counted meanwhile. */
#ifndef LEDGERLOCK_LOCK_WAITERS_H
#define LEDGERLOCK_LOCK_WAITERS_H

#include "tests/lib/lock_world.h"

#include <pthread.h>

/* What one waiter is to do with the key "one", and what came of it. */
struct waiter {
    pthread_t thread;
    unsigned turns;   /* tenures wanted */
    unsigned wait_ms; /* for each */
    unsigned hold_us;
    unsigned granted;
    int code; /* of the last acquire or release */
    int64_t slowest_ms;
};

/* Starts n of a kind; waits for them. The caller frees the array. */
struct waiter *waiters_start(size_t n, struct waiter one);
void waiters_join(struct waiter *w, size_t n);

/* How often there were two holders at once since the last start. */
int waiters_overlaps(void);

int64_t waiters_now_us(void);

/* Calls of a command as the server counts them, those out of scripts too; all that
 * clients sent to wait, take and free; all that ran. */
long long waiters_calls(struct lock_world *w, const char *command);
long long waiters_sent(struct lock_world *w);
long long waiters_run(struct lock_world *w);

/* Every key but the record has an end. */
void waiters_assert_ends(struct lock_world *w);

#endif
