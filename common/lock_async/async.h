/* async: types and functions that the two files of the event-loop form share. Not
 * installed. */
#ifndef LEDGERLOCK_ASYNC_H
#define LEDGERLOCK_ASYNC_H

#include <hiredis/async.h>

#include "common/lock/internal.h"
#include "common/lock_async/lock_async.h"

/* The handshake has one answer with this many elements. */
enum { SHAKE_CT = 3 };

struct ll_async_call {
    enum ll_event_kind kind; /* LL_EV_CONNECT: the handshake */
    enum ll_mode mode;
    uint32_t lease_ms;
    ll_done_fn done;
    void *arg;
    struct ll_lock *l; /* NULL: it has been freed */
    struct ll_async *a;
    struct ll_async_call *next;
    int64_t began_us, deadline_ms;
    int tries;
    bool is_whole;
    struct ll_round r; /* the same description as that of a blocking round */
    struct ll_span span;
    struct ll_take take;
    struct ll_part part;
    struct ll_kept kept;
};

/* One connection. Its adapter's clean-up tells of its end, also when no call is under
 * way: hiredis frees the context then. */
struct ll_async {
    redisAsyncContext *ac; /* NULL: it has been freed */
    bool is_over;          /* no answer comes any more */
    void *adapter;         /* as passed to */
    void (*clean_up)(void *adapter);
    struct ll_async *next, **link; /* of all connections; link NULL: not among them */
    struct ll_client own;          /* nodes[0]: buffer of commands, and answers */
    size_t users; /* the client, plus one for each answer to come (maybe NULL) */
    struct ll_async_call handshake;
    struct ll_async_call *waiting; /* calls that wait for the handshake under way */
};

/* Sends a call, after a handshake if one is due. */
int ll_async_submit(struct ll_async_call *call);
/* One user less; the last one frees the connection's memory. Accepts NULL. */
void ll_async_leave(struct ll_async *a);

#endif
