/* reply: the client of one input, between what opens it and what calls it. */
#ifndef LEDGERLOCK_TESTS_FUZZ_REPLY_H
#define LEDGERLOCK_TESTS_FUZZ_REPLY_H

#include "common/lock/internal.h"
#include "labs/fuzz/fuzz.h"

enum { MANY_KEYS = RLOCK_KEYS_MAX, NOT_TOLD = 1000 };

/* The client and the lock of one input. */
struct run {
    struct rlock_client *client;
    struct rlock *lock;
    struct rlock_renewer *renewer; /* NULL: none */
    bool has_thread;
    bool is_loop; /* acquire, wait, extend and release are begun in a loop */
    int told;     /* code of the last that was begun; NOT_TOLD: it is under way */
    char nonce[RLOCK_NONCE_SIZE];
    struct rlock_key *keys;
    size_t key_ct;        /* of a call; at most MANY_KEYS where the input wants it */
    int ready_fd;         /* always readable */
    int64_t call_ms;      /* limit of a call, */
    int64_t limit_ms;     /* and of this one */
    unsigned chosen;      /* bits behind the number of the call */
    enum rlock_mode mode; /* of an acquire */
    bool is_held;         /* before the call: it may add a hold, or change nothing */
};

static inline unsigned pick(unsigned n)
{
    return lane_pick(CALLS_LANE, n);
}

/* Makes the call that the input says, and checks what must hold after it. Returns bit k
 * if it was late by more than the machine can be blamed for. */
unsigned reply_call(struct run *r, unsigned k);

#endif
