/* lock_loop: the locks of ledgerlock/lock.h in a program with an event loop. Nothing
 * here waits: a call is begun, the loop watches a descriptor of the client, and a
 * callback tells how the call ended. Waits, wake-ups, renewals and new connections are
 * the same as those of the blocking calls, for every kind of server.
 *
 *     int fd = rlock_loop_fd(c);
 *     rlock_loop_step(c);
 *
 * The loop (poll, epoll, libevent, libuv, GLib) watches fd for reading,
 * level-triggered, and calls the step whenever it is readable. */
#ifndef LEDGERLOCK_LOCK_LOOP_H
#define LEDGERLOCK_LOCK_LOOP_H

#include <ledgerlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The descriptor, the same until rlock_close; -1: out of memory or descriptors, or a
 * child of fork. Readable when a step has something to do, also when a time is over.
 * The library closes it. */
RLOCK_MUST_CHECK int rlock_loop_fd(struct rlock_client *c);

/* Goes on with all calls as far as that is possible now, renews the locks of the
 * renewers without a thread, and calls done and on_lost. RLOCK_OK; RLOCK_E_FORKED;
 * RLOCK_E_INVAL: called from such a callback. To resolve the host name of a server may
 * take the system some time. */
RLOCK_MUST_CHECK int rlock_loop_step(struct rlock_client *c);

/* Called by rlock_loop_step, once for every call that was begun with RLOCK_OK; not for
 * a lock that was abandoned meanwhile (its keys end with their lease) or freed (they
 * are released behind it), nor for a client that was closed. The codes are those of the
 * blocking call of that name. The callback may call the library, free the lock, close
 * the client, and begin the next call. May be NULL. */
typedef void (*rlock_done_fn)(struct rlock *l, int code, void *arg);

/* RLOCK_OK: done will be called. With any other code it will not: RLOCK_E_INVAL (a call
 * of this lock is under way; it is held already, or not held; wrong arguments),
 * RLOCK_E_NOMEM, RLOCK_E_FORKED. keys are borrowed during the call. wait_ms 0: a single
 * try, which tells RLOCK_BUSY. Calls of one client share its connection: they are sent
 * one after another, without waiting. A wait for a busy key makes a second
 * connection, for wake-ups. With `replicas`, an acquire holds up the calls that come
 * after it until the replicas have answered. */
RLOCK_MUST_CHECK int rlock_begin_acquire(struct rlock *l,
                                         const struct rlock_key *keys,
                                         size_t n,
                                         enum rlock_mode mode,
                                         uint32_t lease_ms,
                                         uint32_t wait_ms,
                                         rlock_done_fn done,
                                         void *arg);
RLOCK_MUST_CHECK int
rlock_begin_extend(struct rlock *l, uint32_t lease_ms, rlock_done_fn done, void *arg);
RLOCK_MUST_CHECK int
rlock_begin_release(struct rlock *l, rlock_done_fn done, void *arg);

/* Ends an acquire at the next step, also one whose answer has not come: done gets
 * RLOCK_CANCELLED, or the code that is there already. Keys that it may have
 * taken are released behind it, without waiting. */
void rlock_cancel(struct rlock *l);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
