/* lock_held: who holds which lock of ledgerlock/lock.h, and releases for holders that
 * cannot: for operators, and for the messages of a program. */
#ifndef LEDGERLOCK_LOCK_HELD_H
#define LEDGERLOCK_LOCK_HELD_H

#include <ledgerlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A held lock. In rlock_list its texts are valid during the callback only. token 0: a
 * value that is not ours (another client's lock). left_ms -1: no TTL. */
struct rlock_held {
    const char *name; /* without the prefix; followed by a zero byte */
    size_t len;
    const char *holder; /* nonce, or what another client wrote, as printable text */
    const char *value;  /* the bytes that the key holds; NULL: it holds no string */
    size_t value_len;
    int64_t token;
    int64_t left_ms;
    const char *text; /* of rlock_set_text; "": none */
};

/* Asks the server who holds a key, named by a C string, and for how long. RLOCK_OK:
 * somebody does, and *held tells; its texts are valid until the next rlock_look of the
 * client, or its end. RLOCK_GONE: nobody does. Else a fault. In a quorum a holder has
 * the key on a majority of the nodes. The answer may be out of date when it comes: to
 * have the key, acquire it. The call waits, also in a program with an event loop. */
RLOCK_MUST_CHECK int
rlock_look(struct rlock_client *c, const char *name, struct rlock_held *held);

typedef void (*rlock_held_fn)(const struct rlock_held *held, void *arg);

/* Deletes those of the keys that carry this nonce, so that the locks of a dead process
 * end now and not with their lease. Call it only if that process is certainly dead.
 * *freed: number of keys deleted. RLOCK_OK or a fault, after which the call may be
 * repeated; RLOCK_E_INVAL: not a nonce. A command that the dead process had sent may
 * still arrive; the keys that it takes end with their lease. */
RLOCK_MUST_CHECK int rlock_release_dead(struct rlock_client *c,
                                        const char *nonce,
                                        const struct rlock_key *keys,
                                        size_t n,
                                        size_t *freed);

/* Calls fn for every key under the prefix except the library's own, in no order. The
 * call scans in small steps, each within the limits above; a key may be reported twice
 * while the server's table grows. fn must not call the library with this client. A
 * quorum is listed node by node: a key is reported once for each node that has it. */
RLOCK_MUST_CHECK int rlock_list(struct rlock_client *c, rlock_held_fn fn, void *arg);

/* Deletes a key of the holder that rlock_list told of, by its value (in a quorum, on
 * every node that answers): a lock that somebody else took since stays. RLOCK_OK: it
 * was held so, or an earlier try, whose answer was lost, may have deleted it;
 * RLOCK_GONE: nobody holds it; RLOCK_NOT_OWNER: somebody else does. Only the fence of
 * the resource keeps the old holder out then; journal the call. */
RLOCK_MUST_CHECK int rlock_force_release(struct rlock_client *c,
                                         const struct rlock_key *key,
                                         const char *value,
                                         size_t value_len);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
