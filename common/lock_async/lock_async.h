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

/* Called from the loop, once for every call that returned LL_OK, and never inside that
 * call. It is not called for a lock that was abandoned or freed meanwhile; its keys end
 * with their lease. The codes are those of the blocking call of that name. If the
 * connection ends first: LL_E_UNCERTAIN, or LL_E_UNAVAILABLE if nothing had been sent.
 * It may call the library, free the lock, close the client, and start the next step.
 * May be NULL. */
typedef void (*ll_done_fn)(struct ll_lock *l, int code, void *arg);

/* Makes the locks of c use ac, a context that is connected or connecting, attached to a
 * loop by one of hiredis' adapters, with the credentials, database and TLS already set;
 * it stays the caller's and must not be subscribed. One server, without `replicas`:
 * else LL_E_INVAL. Call redisAsyncSetTimeout (hiredis 1.0) to bound the wait for an
 * answer. When the connection has ended (redisAsyncSetDisconnectCallback), attach the
 * next one, or NULL: none; until then every call is LL_E_UNAVAILABLE. Calls under way
 * on the former connection still end with their callback. The blocking calls of c use
 * their own connection. */
LL_MUST_CHECK int ll_async_attach(struct ll_client *c, struct redisAsyncContext *ac);

/* LL_OK: done will be called. With any other code it will not: LL_E_INVAL (a call of
 * this lock is under way; it is held already, or not held; wrong arguments), LL_LOST
 * (extend: it was lost before), LL_E_UNAVAILABLE (not attached, or the connection has
 * ended), LL_E_NOMEM. Once a second a call takes one round trip more, to check the
 * server. There is no renewer here: call ll_async_extend from a timer of the loop. */
LL_MUST_CHECK int ll_async_acquire(struct ll_lock *l,
                                   const struct ll_key *keys,
                                   size_t n,
                                   enum ll_mode mode,
                                   uint32_t lease_ms,
                                   ll_done_fn done,
                                   void *arg);
LL_MUST_CHECK int
ll_async_extend(struct ll_lock *l, uint32_t lease_ms, ll_done_fn done, void *arg);
LL_MUST_CHECK int ll_async_release(struct ll_lock *l, ll_done_fn done, void *arg);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
