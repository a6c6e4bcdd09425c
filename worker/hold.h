/* hold: what a worker is working, where it is found by the worker that comes after it
 * in its slot, should it die. */
#ifndef LEDGERLOCK_HOLD_H
#define LEDGERLOCK_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lock/lock.h"

struct batch;

/* In shared memory. Written by the worker alone; read by nobody while it lives, since
 * its successor starts when it is dead. So it only has to be whole whatever the
 * instruction that the writer died at: is_set is cleared before anything is changed and
 * set when all of it is there. The nonce is written later, by the lock library as it
 * asks for the keys: half of one is nobody's. */
struct hold {
    atomic_bool is_set;
    int job; /* row of the registry */
    int64_t incarnation;
    size_t n, key_ct;
    char nonce[LL_NONCE_SIZE]; /* "": none asked for yet */
    int64_t items[LL_KEYS_MAX];
    int64_t key_ids[LL_KEYS_MAX];
    unsigned char key_kinds[LL_KEYS_MAX];
};

/* Publishes the items and keys of a batch, before its keys are asked for. */
void hold_set(struct hold *h, int64_t incarnation, int job, const struct batch *b);

/* All of it is done or given up, and the keys are released or left to their lease. */
void hold_clear(struct hold *h);

/* Whether there is anything, and it makes sense: the dead may have written anywhere. */
bool hold_is_set(const struct hold *h);

#endif
