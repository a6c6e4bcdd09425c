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
 * looks like LL_OK or LL_BUSY. The library prints nothing, installs no signal handler,
 * keeps no global state, and never dies of SIGPIPE. Every wait ends by a deadline on
 * CLOCK_BOOTTIME (resolving a host name is the system's own wait).
 *
 * Threads: a client and its locks belong to one thread at a time; the renewer is the
 * one exception and says so. Fork: in a child every call on an inherited client answers
 * LL_E_FORKED and touches neither socket nor server; ll_close and ll_free are allowed
 * and free memory only. */
#ifndef LEDGERLOCK_LOCK_H
#define LEDGERLOCK_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what follows is all that the library shows */
#endif

/* X(name, value, sentence) */
/* clang-format off */
#define LL_CODES(X)                                                                      \
    X(LL_OK,               0, "ok")                                                      \
    X(LL_BUSY,             1, "somebody else holds it")                                  \
    X(LL_PARTIAL,          2, "some keys granted, the others are busy")                  \
    X(LL_GONE,             3, "the lease had run out before the release")                \
    X(LL_NOT_OWNER,        4, "somebody else holds it now; nothing was released")        \
    X(LL_TIMEOUT,          5, "waited as long as asked, it was busy all the time")       \
    X(LL_LOST,             6, "the lock is not ours any more")                           \
    X(LL_E_UNCERTAIN,     -1, "no answer came: the keys may be held until the lease ends")\
    X(LL_E_UNAVAILABLE,   -2, "Redis is unreachable or not ready; nothing is held")      \
    X(LL_E_EPOCH,         -3, "Redis lost or changed its token record: install an epoch")\
    X(LL_E_READONLY,      -4, "Redis is a replica and takes no writes")                  \
    X(LL_E_AUTH,          -5, "Redis refused the password or the user's rights")         \
    X(LL_E_EVICTING,      -6, "Redis may evict keys: set maxmemory-policy noeviction")   \
    X(LL_E_OOM,           -7, "Redis is out of memory and refuses writes")               \
    X(LL_E_PROTO,         -8, "Redis gave an answer that makes no sense here")           \
    X(LL_E_INVAL,         -9, "wrong argument")                                          \
    X(LL_E_NOMEM,        -10, "out of memory")                                           \
    X(LL_E_FORKED,       -11, "the client belongs to the parent process")                \
    X(LL_E_NO_QUORUM,    -12, "fewer than a majority of the nodes granted it")           \
    X(LL_E_AMNESIA,      -13, "a majority of the nodes has lost its memory: seed them")  \
    X(LL_E_NOT_REPLICATED, -14, "too few replicas confirmed the lock; it was given back") \
    X(LL_E_TLS,          -15, "TLS is not available in this build or failed")            \
    X(LL_E_CLUSTER,      -16, "Redis Cluster is not offered: use one server or a quorum")\
    X(LL_E_VERSION,      -17, "Redis is older than 6.2, which the scripts need")

/* clang-format on */

enum ll_code {

#define LL_ENUM(name, value, sentence) name = value,
    LL_CODES(LL_ENUM)
#undef LL_ENUM
};

enum { LL_KEY_MAX = 200, LL_KEYS_MAX = 1000, LL_PREFIX_MAX = 64, LL_NODES_MAX = 5 };

/* A nonce as text, with its end. */
enum { LL_NONCE_SIZE = 33 };

/* Highest epoch: epoch * 2^40 + n stays below 2^53, exact in Lua's numbers. */
#define LL_EPOCH_MAX 8191

struct ll_client;
struct ll_lock;
struct ll_renewer;

/* clang-format off */
/* Set size to sizeof(struct ll_options); zero elsewhere means the default. Text is copied.
 *
 * url, one of:
 *   redis://[user[:password]@]host[:port][/db]     one server
 *   rediss://[user[:password]@]host[:port][/db]    the same over TLS: certificate and host
 *                                                  name are checked (hiredis 1.0 or newer)
 *   unix://[user[:password]@]/path[?db=n]          one server on a Unix socket
 *   URL,URL,URL                                    3 or 5 independent servers: a quorum
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../name[/db]
 *                                                  the primary that Sentinels call `name`;
 *                                                  user and password are for the primary,
 *                                                  the Sentinels are asked without */
/* clang-format on */
struct ll_options {
    size_t size;
    const char *url;
    const char *password;  /* beats the one in the URL; NULL: none */
    const char *prefix;    /* before every key; default "lock:" */
    uint32_t connect_ms;   /* whole connect and handshake; default 2000 */
    uint32_t reply_ms;     /* one command; default 1000; of a quorum: per node, default
                              the larger of 20 ms and 5 % of the lease */
    uint32_t replicas;     /* after an acquire WAIT for this many replicas; default 0 */
    uint32_t max_lease_ms; /* quorum: longest lease (with tolerance) anyone uses, the
                              same for all; a longer one is LL_E_INVAL; default 60000 */
    bool no_scripts;       /* the server forbids scripts: WATCH/MULTI/EXEC instead */
    const char *tls_ca;    /* rediss://: file of trusted certificates; NULL: system's */
};

/* One name to lock; borrowed during the call. 1 to LL_KEY_MAX bytes, must not start
 * with
 * '!' (those are the library's own keys). */
struct ll_key {
    const char *name;
    size_t len;
};

/* any: take the free ones and leave the busy ones; all: every one or none. */
enum ll_mode { LL_ANY, LL_ALL };

/* The sentence of a code. */
const char *ll_strerror(int code);

/* ---- client ---- */

/* Parses the options; opens no connection. LL_E_INVAL, LL_E_NOMEM, LL_E_TLS leave *out
 * NULL; the reason is put into why (may be NULL). */
int ll_open(struct ll_client **out,
            const struct ll_options *options,
            char *why,
            size_t why_size);

/* Closes and frees; accepts NULL. Locks of the client must be freed before. */
void ll_close(struct ll_client *c);

/* Connects where there is no connection, checks that the server is a primary, does not
 * evict and is no node of a cluster. Every other call does this by itself; this one is
 * for a check at start. */
int ll_connect(struct ll_client *c);

/* Drops the connections; the next call makes new ones. */
void ll_disconnect(struct ll_client *c);

/* What went wrong last, in words; valid until the next call on the client. */
const char *ll_error(const struct ll_client *c);

/* ---- tokens ---- */

/* One server: installs an epoch that the caller has made durable elsewhere (a committed
 * row): the record is replaced only if its epoch is lower. *current is the epoch in the
 * record afterwards. LL_E_EPOCH: the record is foreign and not lower; make a higher
 * one. */
int ll_install_epoch(struct ll_client *c, int64_t epoch, int64_t *current);

/* One server: whether the record is there and made by the server we are connected to:
 * LL_OK or LL_E_EPOCH with the record's epoch (0: none) in *current. */
int ll_check_epoch(struct ll_client *c, int64_t *current);

/* Quorum: lets the nodes without memory vote, from a floor that the caller knows no
 * token has passed (a durable row; 0 for servers that were never used). Needed at the
 * very first start and after a majority lost its memory; a minority is re-admitted
 * without it. Waits for nothing: LL_E_AMNESIA with *wait_ms as long as leases granted
 * before may still run. */
int ll_seed(struct ll_client *c, int64_t floor, int64_t *wait_ms);

/* ---- locks ---- */

/* An empty lock, reusable for any number of tenures; NULL when out of memory. */
struct ll_lock *ll_new(struct ll_client *c);

/* Frees the memory; accepts NULL. A tenure that is still held is left to its lease:
 * release first. */
void ll_free(struct ll_lock *l);

/* Settings of a lock, to be set while it is not held. tolerance_ms: the key lives this
 * much longer than the lease that we count on, default 0. reentrant: acquiring again
 * while held refreshes the lease and counts; only the outermost release frees. */
void ll_set_tolerance(struct ll_lock *l, uint32_t tolerance_ms);
void ll_set_reentrant(struct ll_lock *l, bool reentrant);

/* Where each acquire writes the nonce of its tenure before anything is sent
 * (LL_NONCE_SIZE bytes, borrowed as long as the lock; NULL: nowhere). In memory that
 * outlives the process it lets somebody else free the keys: ll_release_dead. */
void ll_set_nonce_copy(struct ll_lock *l, char *copy);

/* One tenure over n keys (at least 1; a name twice: LL_E_INVAL), with one fresh nonce.
 * Up to LL_KEYS_MAX keys are one script call and one fencing token; more are taken in
 * chunks of that size (LL_ALL: given back together if one is busy), each with a token
 * of its own. LL_OK: all granted. LL_PARTIAL (LL_ANY): some are. LL_BUSY: none is.
 * ll_key_code tells of each. After LL_E_UNCERTAIN whatever may be held was given back
 * if the server could still be reached, and else ends with its lease. A lost answer is
 * asked for again with the same nonce before the call gives up. A lock that is held
 * already: LL_E_INVAL (release or abandon it first), or with ll_set_reentrant one more
 * hold (the keys must be the same) and LL_OK, or LL_LOST. */
int ll_acquire(struct ll_lock *l,
               const struct ll_key *keys,
               size_t n,
               enum ll_mode mode,
               uint32_t lease_ms);

/* One attempt on one key. LL_OK, LL_BUSY or a fault. */
int ll_try(struct ll_lock *l, const char *name, uint32_t lease_ms);

/* Tries until everything wanted is granted (LL_ANY: until at least one key is) or
 * wait_ms have passed: LL_TIMEOUT. Woken by the release of the key it waits for, which
 * is only a hint: it also looks by itself, with full jitter, never later than the
 * holder's lease. */
int ll_acquire_wait(struct ll_lock *l,
                    const struct ll_key *keys,
                    size_t n,
                    enum ll_mode mode,
                    uint32_t lease_ms,
                    uint32_t wait_ms);

/* Lengthens the lease of the whole tenure from now, never shortens it, never makes a
 * key again. LL_OK, LL_LOST (sticks: at least one granted key is not ours any more),
 * faults. */
int ll_extend(struct ll_lock *l, uint32_t lease_ms);

/* Asks Redis whether the tenure is still whole: LL_OK with the shortest time that a key
 * has left, LL_LOST. */
int ll_verify(struct ll_lock *l, int64_t *left_ms);

/* Deletes the granted keys that still carry our nonce. LL_OK: all were ours until now;
 * LL_GONE: at least one had run out; LL_NOT_OWNER: at least one is somebody else's.
 * ll_key_code tells of each. Any number of times, same answer; after a fault it may be
 * asked again, and what a try whose answer was lost deleted counts as ours. */
int ll_release(struct ll_lock *l);

/* Forgets the tenure without a word to the server: its keys end with their lease. For a
 * release that could not be sent. */
void ll_abandon(struct ll_lock *l);

/* Releases some keys of the tenure by index and keeps the others. */
int ll_release_some(struct ll_lock *l, const size_t *index, size_t n);

/* After acquire: LL_OK or LL_BUSY. After release: LL_OK, LL_GONE, LL_NOT_OWNER for the
 * granted ones, LL_BUSY for those that never were. */
int ll_key_code(const struct ll_lock *l, size_t i);

/* Milliseconds that the present holder of a busy key had left; -1: it has no end. */
int64_t ll_key_busy_ms(const struct ll_lock *l, size_t i);

/* Number of keys granted and not released. */
size_t ll_granted(const struct ll_lock *l);

/* How often it is held: 0, 1, or more when re-entrant. */
unsigned ll_holds(const struct ll_lock *l);

/* The fencing token of this tenure, fixed at acquire; 0 when nothing is granted. Over
 * more than LL_KEYS_MAX keys, and with a quorum, keys may differ: ask for each. */
int64_t ll_token(const struct ll_lock *l);
int64_t ll_key_token(const struct ll_lock *l, size_t i);

/* Local question, no I/O: granted, not released, not known to be lost, and the lease
 * ends later than margin_ms from now, counted from before the acquire (or extend) was
 * sent and less 1 % + 2 ms for clock drift. */
bool ll_valid(const struct ll_lock *l, uint32_t margin_ms);

/* ---- renewal ---- */

/* Told once for each tenure that was lost while it was renewed, on the renewer's
 * thread, while up to an eighth of the lease (at most a second) is still left if Redis
 * could not be reached: ll_valid answers false from now on. code is LL_LOST: a key is
 * gone or somebody else's; LL_GONE: it was not renewed any more (no progress, max_hold,
 * or the process stood still) and its lease runs out; < 0: the fault that no renewal
 * got past. Must not call the library for this lock other than ll_valid and ll_token,
 * nor wait for a thread that does. */
typedef void (*ll_lost_fn)(struct ll_lock *l, int code, void *arg);

struct ll_renew_options {
    size_t size;
    uint32_t interval_ms; /* default: a third of each lease; at most half of it */
    ll_lost_fn on_lost;   /* may be NULL */
    void *arg;
};

/* Starts the renewer: one thread with its own connection, made from c's options. One
 * renewer serves the locks of any clients with the same options, each from its own
 * thread. options NULL: the defaults. */
int ll_renewer_open(struct ll_renewer **out,
                    struct ll_client *c,
                    const struct ll_renew_options *options);

/* Stops the thread and frees; locks are not released, and not renewed any more. Not
 * while another thread calls the library for one of its locks. Accepts NULL. */
void ll_renewer_close(struct ll_renewer *r);

/* Renews a held lock until it is released, abandoned, freed, lost, or ll_renew_stop.
 * Nor is it renewed from max_hold_ms after this call on (0: 10 times the lease), nor
 * while the last ll_progress (or this call) is stall_ms or more ago (0: no such limit):
 * it stays ours until its lease has run out, which is then told like any other loss,
 * and the keys are free at the latest one lease (and tolerance) after the limit.
 *
 * Every lock of the renewer in one round trip (without scripts two), earliest deadline
 * first, at lease/3, each with its own lease; a script that the server forgot costs two
 * more, and without scripts a key that somebody changed meanwhile two a lock. A
 * transient error is retried until shortly before the local deadline. A lock that was
 * released is never extended and never told as lost: ll_release and ll_renew_stop wait
 * for a renewal that is on its way (one command, ended by its deadline).
 *
 * The lock may be used as ever, from its own thread, except that ll_release_some wants
 * ll_renew_stop first; settings must not be changed. LL_LOST: its lease has run out
 * already. LL_E_INVAL: not held, or renewed already. */
int ll_renew(struct ll_renewer *r,
             struct ll_lock *l,
             uint32_t stall_ms,
             uint32_t max_hold_ms);
void ll_renew_stop(struct ll_renewer *r, struct ll_lock *l);

/* "The work goes on": feeds stall_ms. */
void ll_progress(struct ll_lock *l);

/* A descriptor for poll: readable once a lock is lost and on_lost has come back. Read 8
 * bytes, a uint64_t: how many since the last read. Closed by ll_renewer_close. */
int ll_renewer_fd(const struct ll_renewer *r);

/* What a renewer has done so far, for measuring. A round renews everything that is due
 * or will be soon. */
struct ll_renew_figures {
    uint64_t rounds;
    uint64_t round_trips;
    uint64_t renewals;  /* locks renewed, over all rounds */
    int64_t slowest_us; /* longest round */
};

void ll_renewer_figures(const struct ll_renewer *r, struct ll_renew_figures *f);

/* ---- for operators ---- */

/* One held lock. Text is valid during the callback only. token 0: a value that is not
 * ours (another client's lock). left_ms -1: it has no end. */
struct ll_held {
    const char *name; /* without the prefix */
    const char *holder;
    int64_t token;
    int64_t left_ms;
};

typedef void (*ll_held_fn)(const struct ll_held *held, void *arg);

/* Deletes those of the keys that carry this nonce, for whoever knows for certain that
 * the process that took it is dead: its tenure ends now and not with its lease. *freed:
 * how many keys it still held. LL_OK or a fault, after which it may be asked again;
 * LL_E_INVAL: that is no nonce. A command that the dead one had sent may still be on
 * its way; what it takes ends with its lease, as ever. */
int ll_release_dead(struct ll_client *c,
                    const char *nonce,
                    const struct ll_key *keys,
                    size_t n,
                    size_t *freed);

/* Calls fn for every key under the prefix but the library's own, in no order; scans in
 * small steps, so a key may be told twice while the server's table grows. fn must not
 * call the library with this client. LL_E_INVAL on a quorum. */
int ll_list(struct ll_client *c, ll_held_fn fn, void *arg);

/* Deletes a key whoever holds it. LL_OK, LL_GONE; LL_E_INVAL on a quorum. The fence of
 * the resource is what keeps the old holder out; journal it. */
int ll_force_release(struct ll_client *c, const char *name);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
