/* lock_waiters: threads that wait for one lock, each with a client of its own, and what
 * the server counted meanwhile. */
#ifndef LEDGERLOCK_LOCK_WAITERS_H
#define LEDGERLOCK_LOCK_WAITERS_H

#include "tests/lib/lock_world.h"

#include <pthread.h>

/* The task of one waiter on the key "one", and its result. */
struct waiter {
    pthread_t thread;
    unsigned rounds;  /* acquires wanted */
    unsigned wait_ms; /* for each */
    unsigned hold_us;
    unsigned reply_ms; /* 0: the default */
    unsigned granted;
    int code; /* of the last acquire or release */
    int64_t slowest_ms;
};

/* Starts n of a kind; waits for them. The caller frees the array. */
struct waiter *waiters_start(size_t n, struct waiter one);
void waiters_join(struct waiter *w, size_t n);

/* The waiter waited in vain: RLOCK_TIMEOUT, or the answer to its last attempt came too
 * late. */
bool waiters_in_vain(const struct waiter *w);

/* How often there were two holders at once since the last start. */
int waiters_overlaps(void);

int64_t waiters_now_us(void);

/* Calls of a command as the server counts them, those out of scripts too; all that
 * clients sent to wait, take and free; all that ran; how
 * many clients listen at this moment. */
long long waiters_calls(struct lock_world *w, const char *command);
long long waiters_sent(struct lock_world *w);
long long waiters_run(struct lock_world *w);
long long waiters_blocked(struct lock_world *w);

/* Every key but the last token has an end. */
void waiters_assert_ends(struct lock_world *w);

#endif
