/* async: types and functions that the two files of the event-loop form share. Not
 * installed. */
#ifndef LEDGERLOCK_ASYNC_H
#define LEDGERLOCK_ASYNC_H

#include <hiredis/async.h>

#include "common/lock/internal.h"
#include "common/lock_async/lock_async.h"

/* The handshake has one answer with this many elements. */
enum { SHAKE_CT = 3 };

struct rlock_async_call {
    enum rlock_event_kind kind; /* RLOCK_EV_CONNECT: the handshake */
    enum rlock_mode mode;
    uint32_t lease_ms;
    rlock_done_fn done;
    void *arg;
    struct rlock_lock *l; /* NULL: it has been freed */
    struct rlock_async *a;
    struct rlock_async_call *next;
    int64_t began_us, deadline_ms;
    int64_t id;
    int tries;
    bool is_whole;
    struct rlock_round r; /* the same description as that of a blocking round */
    struct rlock_span span;
    struct rlock_take take;
    struct rlock_part part;
    struct rlock_kept kept;
};

/* A connection of a loop. Its adapter's clean-up tells of its end, also when no call is
 * under way: hiredis frees the context then. */
struct rlock_async {
    redisAsyncContext *ac; /* NULL: it has been freed */
    bool is_over;          /* no answer comes any more */
    void *adapter;         /* as passed to */
    void (*clean_up)(void *adapter);
    struct rlock_async *next,
        **link;              /* of all connections; link NULL: not among them */
    struct rlock_client own; /* nodes[0]: buffer of commands, and answers */
    size_t users; /* the client, plus one for each answer to come (maybe NULL) */
    struct rlock_async_call handshake;
    struct rlock_async_call *waiting; /* calls that wait for the handshake under way */
};

/* Sends a call, after a handshake if one is due. */
int rlock_async_submit(struct rlock_async_call *call);
/* One user less; the last one frees the connection's memory. Accepts NULL. */
void rlock_async_leave(struct rlock_async *a);

#endif
