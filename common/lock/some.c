/* some: release of some keys of a lock, of which the others stay held. */
#include "common/lock/operation.h"

static int check(const struct rlock *l, const size_t *at, size_t n)
{
    if (l->granted == 0 || l->released || l->releasing || l->uncertain)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is not held");
    if (atomic_load(&l->renewal.renewer) != NULL)
        return rlock_fail(l->client, RLOCK_E_INVAL,
                          "a lock that is renewed is released as a whole");
    for (size_t i = 0; i < n; i++) {
        if (at[i] >= l->n || !l->slots[at[i]].held)
            return rlock_fail(l->client, RLOCK_E_INVAL, "key %zu is not held", at[i]);
    }
    return n > 0 && n <= l->granted
               ? RLOCK_OK
               : rlock_fail(l->client, RLOCK_E_INVAL, "%zu of %zu keys", n, l->granted);
}

int rlock_release_some(struct rlock *l, const size_t *at, size_t n)
{
    struct rlock_event event = {RLOCK_EV_RELEASE, .keys = n, .us = rlock_now_us()};
    struct rlock_giving g = {.l = l, .some = n};

    event.code = rlock_check_owner(l->client);
    if (event.code == RLOCK_OK)
        event.code = rlock_check_op(l);
    if (event.code == RLOCK_OK)
        event.code = check(l, at, n);
    if (event.code != RLOCK_OK)
        return event.code;
    g.limit_ms = rlock_call_end(l->client);
    for (size_t i = 0; i < n; i++)
        l->table[i] = at[i];
    event.code = rlock_drive(l->client, rlock_giving_step, &g);
    for (size_t i = 0; i < n; i++) {
        struct rlock_slot *slot = &l->slots[at[i]];

        l->granted -= slot->held ? 1 : 0;
        slot->held = false;
    }
    return rlock_leave(l->client, event);
}
