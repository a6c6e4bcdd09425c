/* lock: leases on names, held in Redis, with fencing tokens. Stands by itself: needs
 * hiredis and nothing else of this project.
 *
 * A lock value is a plain string key with a time to live, "<nonce>|<token>", so every
 * client that follows SET key value NX PX ms excludes ours and is excluded by it.
 *
 * What it promises: while Redis keeps its data and no holder is paused beyond its
 * lease, one holder at a time. What it cannot promise is exclusion through pauses,
 * failovers and lost data; for that every tenure has a fencing token that only ever
 * grows, and the resource must refuse a token lower than one it has seen.
 *
 * Codes: 0 is success, > 0 an expected negative answer, < 0 a fault. No fault ever
 * looks like LL_OK or LL_BUSY. The library prints nothing and installs no signal
 * handler. Every wait ends by a deadline on CLOCK_BOOTTIME.
 *
 * Threads: a client and its locks belong to one thread at a time. Fork: in a child
 * every call on an inherited client answers LL_E_FORKED and touches neither socket nor
 * server; ll_close and ll_free are allowed and free memory only. */
#ifndef LEDGERLOCK_LOCK_H
#define LEDGERLOCK_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, sentence) */
/* clang-format off */
#define LL_CODES(X)                                                                      \
    X(LL_OK,             0, "ok")                                                        \
    X(LL_BUSY,           1, "somebody else holds it")                                    \
    X(LL_PARTIAL,        2, "some keys granted, the others are busy")                    \
    X(LL_GONE,           3, "the lease had run out before the release")                  \
    X(LL_NOT_OWNER,      4, "somebody else holds it now; nothing was released")          \
    X(LL_E_UNCERTAIN,   -1, "no answer came: the keys may be held until the lease ends") \
    X(LL_E_UNAVAILABLE, -2, "Redis is unreachable or not ready; nothing is held")        \
    X(LL_E_EPOCH,       -3, "Redis lost or changed its token record: install an epoch")  \
    X(LL_E_READONLY,    -4, "Redis is a replica and takes no writes")                    \
    X(LL_E_AUTH,        -5, "Redis refused the password or the user's rights")           \
    X(LL_E_EVICTING,    -6, "Redis may evict keys: set maxmemory-policy noeviction")     \
    X(LL_E_OOM,         -7, "Redis is out of memory and refuses writes")                 \
    X(LL_E_PROTO,       -8, "Redis gave an answer that makes no sense here")             \
    X(LL_E_INVAL,       -9, "wrong argument")                                            \
    X(LL_E_NOMEM,      -10, "out of memory")                                             \
    X(LL_E_FORKED,     -11, "the client belongs to the parent process")

/* clang-format on */

enum ll_code {

#define LL_ENUM(name, value, sentence) name = value,
    LL_CODES(LL_ENUM)
#undef LL_ENUM
};

enum { LL_KEY_MAX = 200, LL_KEYS_MAX = 1000, LL_PREFIX_MAX = 64 };

/* Highest epoch: epoch * 2^40 + n stays below 2^53, exact in Lua's numbers. */
#define LL_EPOCH_MAX 8191

struct ll_client;
struct ll_lock;

/* Set size to sizeof(struct ll_options); zero elsewhere means the default. Text is
 * copied. */
struct ll_options {
    size_t size;
    const char
        *url; /* redis://[user[:password]@]host[:port][/db] or unix:///path[?db=n] */
    const char *password; /* beats the one in the URL; NULL: none */
    const char *prefix;   /* before every key; default "lock:" */
    uint32_t connect_ms;  /* whole connect and handshake; default 2000 */
    uint32_t reply_ms;    /* one command; default 1000 */
};

/* One name to lock; borrowed during the call. 1 to LL_KEY_MAX bytes, must not start
 * with
 * '!' (the prefix + "!fence" is the token record). */
struct ll_key {
    const char *name;
    size_t len;
};

/* any: take the free ones and leave the busy ones; all: every one or none. */
enum ll_mode { LL_ANY, LL_ALL };

/* The sentence of a code. */
const char *ll_strerror(int code);

/* ---- client ---- */

/* Parses the options; opens no connection. LL_E_INVAL, LL_E_NOMEM leave *out NULL; the
 * reason of LL_E_INVAL is put into why (may be NULL). */
int ll_open(struct ll_client **out,
            const struct ll_options *options,
            char *why,
            size_t why_size);

/* Closes and frees; accepts NULL. Locks of the client must be freed before. */
void ll_close(struct ll_client *c);

/* Connects if there is no connection, checks that the server is a primary and does not
 * evict. Every other call does this by itself; this one is for a check at start. */
int ll_connect(struct ll_client *c);

/* Drops the connection; the next call makes a new one. */
void ll_disconnect(struct ll_client *c);

/* What went wrong last, in words; valid until the next call on the client. */
const char *ll_error(const struct ll_client *c);

/* Installs an epoch that the caller has made durable elsewhere (a committed row): the
 * record is replaced only if its epoch is lower. *current is the epoch in the record
 * afterwards. LL_E_EPOCH: the record is foreign and not lower; make a higher epoch. */
int ll_install_epoch(struct ll_client *c, int64_t epoch, int64_t *current);

/* Whether the record is there and made by the server we are connected to: LL_OK or
 * LL_E_EPOCH with the record's epoch (0: none) in *current. */
int ll_check_epoch(struct ll_client *c, int64_t *current);

/* ---- locks ---- */

/* An empty lock, reusable for any number of tenures; NULL when out of memory. */
struct ll_lock *ll_new(struct ll_client *c);

/* Frees the memory; accepts NULL. A tenure that is still held is left to its lease:
 * release first. */
void ll_free(struct ll_lock *l);

/* One tenure over n keys (1 to LL_KEYS_MAX, no name twice), in one script call, with
 * one fresh nonce and one fencing token. LL_OK: all granted. LL_PARTIAL (LL_ANY): some
 * are. LL_BUSY: none is. ll_key_code tells of each. After LL_E_UNCERTAIN the same lock
 * may be released (best effort) or left to the lease. A lost answer is asked for again
 * with the same nonce before the call gives up. */
int ll_acquire(struct ll_lock *l,
               const struct ll_key *keys,
               size_t n,
               enum ll_mode mode,
               uint32_t lease_ms);

/* One attempt on one key. LL_OK, LL_BUSY or a fault. */
int ll_try(struct ll_lock *l, const char *name, uint32_t lease_ms);

/* Deletes the granted keys that still carry our nonce, in one script call. LL_OK: all
 * were ours until now; LL_GONE: at least one had run out; LL_NOT_OWNER: at least one is
 * somebody else's. ll_key_code tells of each. Any number of times, same answer. */
int ll_release(struct ll_lock *l);

/* After acquire: LL_OK or LL_BUSY. After release: LL_OK, LL_GONE, LL_NOT_OWNER for the
 * granted ones, LL_BUSY for those that never were. */
int ll_key_code(const struct ll_lock *l, size_t i);

/* Milliseconds that the present holder of a busy key had left; -1: it has no end. */
int64_t ll_key_busy_ms(const struct ll_lock *l, size_t i);

/* Number of keys granted. */
size_t ll_granted(const struct ll_lock *l);

/* The fencing token of this tenure; 0 when nothing is granted. */
int64_t ll_token(const struct ll_lock *l);

/* Local question, no I/O: granted, not released, and the lease ends later than
 * margin_ms from now, counted from before the acquire was sent and less 1 % + 2 ms for
 * clock drift. */
bool ll_valid(const struct ll_lock *l, uint32_t margin_ms);

#ifdef __cplusplus
}
#endif

#endif
