/* lock_async: the locks of ledgerlock/lock.h over a redisAsyncContext, for a program
 * with an event loop. Acquire, extend and release end with a callback. */
#ifndef LEDGERLOCK_LOCK_ASYNC_H
#define LEDGERLOCK_LOCK_ASYNC_H

#include <ledgerlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct redisAsyncContext;

/* Called from the loop, once for every call that returned RLOCK_OK, and never inside
 * that call; not called for a lock that was abandoned or freed meanwhile; its
 * keys end with their lease. The codes are those of the blocking call of that name. If
 * the connection ends first: RLOCK_E_UNCERTAIN, or RLOCK_E_UNAVAILABLE if nothing had
 * been sent. The callback may call the library, free the lock, close the client, and
 * start the next step. May be NULL. */
typedef void (*rlock_done_fn)(struct rlock_lock *l, int code, void *arg);

/* Makes the locks of c use ac, a context that is connected or connecting, attached to a
 * loop by one of hiredis' adapters, with the credentials, database and TLS already set;
 * it stays the caller's and must not be subscribed. One server, without `replicas`:
 * else RLOCK_E_INVAL. Call redisAsyncSetTimeout (hiredis 1.0) to bound the wait for an
 * answer. When the connection has ended (redisAsyncSetDisconnectCallback), attach the
 * next one, or NULL: none; until then every call is RLOCK_E_UNAVAILABLE. Calls under
 * way on the former connection still end with their callback. The blocking calls of c
 * use their own connection. */
RLOCK_MUST_CHECK int rlock_async_attach(struct rlock_client *c,
                                        struct redisAsyncContext *ac);

/* RLOCK_OK: done will be called. With any other code it will not: RLOCK_E_INVAL (a call
 * of this lock is under way; it is held already, or not held; wrong arguments),
 * RLOCK_LOST (extend: it was lost before), RLOCK_E_UNAVAILABLE (not attached, or the
 * connection has ended), RLOCK_E_NOMEM. Once a second a call takes one round trip more,
 * to check the server. There is no renewer here: call rlock_async_extend from a timer
 * of the loop. */
RLOCK_MUST_CHECK int rlock_async_acquire(struct rlock_lock *l,
                                         const struct rlock_key *keys,
                                         size_t n,
                                         enum rlock_mode mode,
                                         uint32_t lease_ms,
                                         rlock_done_fn done,
                                         void *arg);
RLOCK_MUST_CHECK int rlock_async_extend(struct rlock_lock *l,
                                        uint32_t lease_ms,
                                        rlock_done_fn done,
                                        void *arg);
RLOCK_MUST_CHECK int
rlock_async_release(struct rlock_lock *l, rlock_done_fn done, void *arg);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
