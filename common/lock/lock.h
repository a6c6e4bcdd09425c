/* lock: leases on names, held in Redis, with fencing tokens. Stands by itself: needs
 * hiredis and nothing else of this project.
 *
 *     #include <ledgerlock/lock.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         struct rlock_client *c;
 *         struct rlock *l = rlock_open(&c, 0, 0, 0) < 0 ? NULL : rlock_new(c);
 *         if (l == NULL || rlock_try(l, "report", 10000) != RLOCK_OK)
 *             return 1;
 *         printf("at work with token %lld\n", (long long)rlock_token(l));
 *         return rlock_release(l) != RLOCK_OK;
 *     }
 *
 * The program ends with 1 if somebody else holds the lock, or if the lease ran out
 * before the work was done. A program that goes on calls rlock_free and rlock_close.
 *
 * A lock is a plain string key with a time to live and the value "<nonce>|<token>",
 * behind which a caller's text ("|=text") and a mark of waiters ("|w") may stand: every
 * client that follows SET key value NX PX ms excludes ours and is excluded by it.
 *
 * The library promises: while Redis keeps its data and no holder is paused beyond its
 * lease, one holder at a time. The library cannot promise exclusion through pauses,
 * failovers and lost data. For that every acquire gets a fencing token, and the
 * resource must refuse a token lower than one it has seen. A token is
 * max(last + 1, server time in microseconds, floor + 1), below 2^53 - 2^40: tokens of
 * one server rise strictly while it keeps its data; after it lost them, they rise if
 * its clock is ahead of its last token (a floor, or a clock that was set back, may have
 * put a token ahead of the clock). Across a failover they rise as far as the clocks of
 * the two servers agree, or the floor. In a
 * quorum they rise for each key; locks of different keys may get the same token at the
 * same time.
 *
 * Codes: 0 is success, > 0 an expected negative answer, < 0 a fault. No fault ever
 * looks like RLOCK_OK or RLOCK_BUSY. hiredis before 1.0 ends the process where it
 * should tell of RLOCK_E_NOMEM. After RLOCK_E_UNAVAILABLE no command was carried out,
 * but of an acquire whose answer came after its lease; its keys were released, or end
 * with their lease. The library prints nothing, installs no signal handler, keeps no
 * global state, and never dies of SIGPIPE.
 *
 * Time: a call ends connect_ms + reply_ms after it began (in a quorum without
 * reply_ms, three times the nodes' time for max_lease_ms counts), whatever the server
 * sends, and a wait after wait_ms, both 50 ms later at most, on CLOCK_BOOTTIME.
 * Resolving a host name is the system's own wait and not counted.
 *
 * Threads: a client and its locks belong to one thread at a time; the renewer is the
 * one exception and says so. Fork: in a child every call on an inherited client answers
 * RLOCK_E_FORKED and touches neither socket nor server, and rlock_valid is false;
 * rlock_close and rlock_free are allowed and free memory only. Tested on Linux. */
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
#define RLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RLOCK_MUST_CHECK
#endif

/* X(name, value, sentence) */
/* clang-format off */
#define RLOCK_CODES(X)                                                                         \
    X(RLOCK_OK,                 0, "ok")                                                       \
    X(RLOCK_BUSY,               1, "somebody else holds it")                                   \
    X(RLOCK_PARTIAL,            2, "some keys granted, the others are busy")                   \
    X(RLOCK_GONE,               3, "the lease has run out, or is renewed no more")             \
    X(RLOCK_NOT_OWNER,          4, "somebody else holds it now; nothing was released")         \
    X(RLOCK_TIMEOUT,            5, "waited as long as asked, it was busy all the time")        \
    X(RLOCK_LOST,               6, "the lock is not ours any more")                            \
    X(RLOCK_CANCELLED,          7, "the wait was cancelled")                                   \
    X(RLOCK_E_UNCERTAIN,       -1, "no answer came: the command may have been carried out")    \
    X(RLOCK_E_UNAVAILABLE,     -2, "Redis is unreachable or not ready")                        \
    X(RLOCK_E_READONLY,        -3, "Redis is a replica and takes no writes")                   \
    X(RLOCK_E_AUTH,            -4, "Redis refused the password or the user's rights")          \
    X(RLOCK_E_EVICTING,        -5, "Redis may evict keys: set maxmemory-policy noeviction")    \
    X(RLOCK_E_OOM,             -6, "Redis is out of memory and refuses writes")                \
    X(RLOCK_E_PROTO,           -7, "Redis gave an answer that makes no sense here")            \
    X(RLOCK_E_INVAL,           -8, "wrong argument")                                           \
    X(RLOCK_E_NOMEM,           -9, "out of memory")                                            \
    X(RLOCK_E_FORKED,         -10, "the client belongs to the parent process")                 \
    X(RLOCK_E_NO_QUORUM,      -11, "fewer than a majority of the nodes can answer")            \
    X(RLOCK_E_NOT_REPLICATED, -12, "too few replicas confirmed the lock: it does not count")   \
    X(RLOCK_E_TLS,            -13, "TLS is not available in this build or failed")             \
    X(RLOCK_E_CLUSTER,        -14, "Redis Cluster needs one hash tag in the prefix: {locks}:") \
    X(RLOCK_E_VERSION,        -15, "Redis is older than 6.2, which the scripts need")

/* clang-format on */

enum rlock_code {

#define RLOCK_ENUM(name, value, sentence) name = value,
    RLOCK_CODES(RLOCK_ENUM)
#undef RLOCK_ENUM
};

enum {
    RLOCK_KEY_MAX = 200,
    RLOCK_KEYS_MAX = 1000,
    RLOCK_PREFIX_MAX = 64,
    RLOCK_NODES_MAX = 5
};

/* A user or a password, with its end. */
enum { RLOCK_SECRET_MAX = 4096 };

/* A nonce as text, with its end. */
enum { RLOCK_NONCE_SIZE = 33 };

/* The longest text of rlock_set_text, without its end. */
enum { RLOCK_TEXT_MAX = 100 };

struct rlock_client;
struct rlock;
struct rlock_renewer;
struct redisContext;

/* An event for metrics. on_event gets one at the end of every acquire, extend, verify
 * (as an extend) and release, and of every try to connect to a server; a Sentinel, a
 * renewer and the calls for operators have none of their own. */
enum rlock_event_kind {
    RLOCK_EV_CONNECT,
    RLOCK_EV_ACQUIRE,
    RLOCK_EV_EXTEND,
    RLOCK_EV_RELEASE
};

struct rlock_event {
    enum rlock_event_kind kind;
    int code;       /* of the call */
    size_t keys;    /* asked for */
    size_t granted; /* of an acquire: keys granted */
    int64_t us;     /* microseconds that the call took */
};

/* The hook, which must not call the library with this client. */
typedef void (*rlock_event_fn)(const struct rlock_event *event, void *arg);

/* Returns a connected context (with your TLS, pool or credentials). The library makes
 * it non-blocking, uses it alone and frees it with redisFree. NULL: no connection now.
 * A renewer calls it on its own thread. */
typedef struct redisContext *(*rlock_connect_fn)(void *arg);

/* Asked for user and password before each connection to a server (not to a Sentinel),
 * since they may be changed meanwhile: texts of RLOCK_SECRET_MAX bytes with their end,
 * an empty user for the default one, an empty password for no login. false: those of
 * the options. A connection that is logged in goes on. A renewer calls it on its own
 * thread. */
typedef bool (*rlock_credentials_fn)(void *arg, char *user, char *password);

/* clang-format off */
/* Set size to sizeof(struct rlock_options); zero elsewhere means the default. Text is copied.
 *
 * url, one of:
 *   redis://[[user]:password@]host[:port][/db]     one server (valkey, valkeys: the same
 *                                                  as redis, rediss, here and below)
 *   rediss://[[user]:password@]host[:port][/db]    the same over TLS: certificate and host
 *                                                  name are checked (hiredis 1.0 or newer)
 *   unix://[[user]:password@]/path[?db=n]          one server on a Unix socket
 *   URL,URL,URL                                    3 or 5 independent servers: a quorum;
 *                                                  one user, password and db for all
 *   redis+cluster://[[user]:password@]host[:port],host[:port]...
 *                                                  Redis Cluster: any of its nodes; the prefix
 *                                                  has one hash tag (rediss+cluster: TLS)
 *   redis+sentinel://[[user]:password@]host[:port],host[:port].../name[/db]
 *                                                  the primary that Sentinels call `name`; user
 *                                                  and password are the primary's
 *                                                  (rediss+sentinel: TLS to all of them) */
/* clang-format on */
struct rlock_options {
    size_t size;
    const char *url;           /* default redis://127.0.0.1:6379 */
    const char *password;      /* beats the one in the URL; NULL: none */
    const char *prefix;        /* before every key; default "lock:" */
    uint32_t connect_ms;       /* whole connect and handshake; default 2000 */
    uint32_t reply_ms;         /* one command; default 1000; of a quorum: per node,
                                  default the larger of 100 ms and 5 % of the lease;
                                  waited for only until a majority agrees */
    uint32_t replicas;         /* after an acquire WAIT for this many; default 0; with
                                  fewer the lock is released, or ends with its lease */
    uint32_t max_lease_ms;     /* quorum: longest lease that anyone uses,
                                  the same for all clients: a node with another
                                  value has no vote; one that started less than
                                  this ago grants nothing; default 60000 */
    const char *tls_ca;        /* file of trusted certificates; NULL: system's */
    const char *tls_cert;      /* client certificate and its key: files in PEM; */
    const char *tls_key;       /* NULL: none */
    const char *sentinel_user; /* for the Sentinels themselves; NULL: none */
    const char *sentinel_password; /* likewise */
    bool allow_eviction;           /* accept a server that may evict keys: the fencing
                                      token is then all that protects */
    rlock_connect_fn connect;      /* instead of url; one server */
    void *connect_arg;
    rlock_event_fn on_event; /* may be NULL */
    void *event_arg;
    rlock_credentials_fn credentials; /* may be NULL: user and password stay the same */
    void *credentials_arg;
    bool allow_no_role; /* accept a server whose INFO names no role, as some proxies do:
                           that it is a replica is then told by the first refusal */
    const char *client_name; /* of the connections in CLIENT LIST; default "rlock"; a
                                server or user that refuses it is used all the same */
};

/* A name to lock: bytes, borrowed during the call. 1 to RLOCK_KEY_MAX of them; must
 * not start with '!' (those are the library's own keys). */
struct rlock_key {
    const char *name;
    size_t len;
};

/* RLOCK_ALL: every key or none. RLOCK_ANY: the free keys, without the busy ones.
 * RLOCK_ONE: exactly one free key (n keys are n permits of a semaphore).
 * RLOCK_SOME(k): exactly k free keys or none, k from 1 to the number of keys. */
enum rlock_mode { RLOCK_ALL, RLOCK_ANY, RLOCK_ONE, RLOCK_MODES_END = 1001 };

#define RLOCK_SOME(k) ((enum rlock_mode)(RLOCK_ONE - 1 + (k)))

/* The sentence of a code. */
const char *rlock_strerror(int code);

/* The version of the library that runs; RLOCK_VERSION is that of the header. */
#define RLOCK_VERSION "0.1.0"
const char *rlock_version(void);

/* ---- client ---- */

/* Parses the options (NULL: all default); opens no connection. RLOCK_E_INVAL,
 * RLOCK_E_NOMEM, RLOCK_E_TLS, RLOCK_E_CLUSTER leave *out NULL; the reason is put into
 * why (may be NULL). */
RLOCK_MUST_CHECK int rlock_open(struct rlock_client **out,
                                const struct rlock_options *options,
                                char *why,
                                size_t why_size);

/* Closes and frees; accepts NULL. Locks of the client must be freed before. */
void rlock_close(struct rlock_client *c);

/* Connects if there is no connection and checks that the server is a primary, 6.2 or
 * newer, and does not evict. That takes two round trips, and more over TLS, through
 * Sentinels, and where a cluster redirects. An acquire, and this call, check again if
 * the last check is older than a second. Every other call connects by itself; call it
 * for a check at start. A server whose INFO names no role is RLOCK_E_PROTO,
 * but with allow_no_role. */
RLOCK_MUST_CHECK int rlock_connect(struct rlock_client *c);

/* Closes the connections; the next call opens new ones. */
void rlock_disconnect(struct rlock_client *c);

/* The text of the last failure or negative answer, without any password; valid until
 * the next call on the client. */
const char *rlock_error(const struct rlock_client *c);

/* By how many milliseconds the server's clock was ahead of ours when it was last
 * checked, below zero when it was behind, to half a round trip; in a quorum of the node
 * that is farthest from ours. 0 before rlock_connect. */
int64_t rlock_clock_ahead_ms(const struct rlock_client *c);

/* All later tokens are higher than this one. Pass the highest fence of a row that
 * refused a token. A lower value changes nothing. RLOCK_E_INVAL: below 0, or more than
 * a year ahead of the server's clock (before rlock_connect: of ours) or of 2^53 - 2^40
 * - 2: such a fence is damaged, and tokens above it would leave no room for those of
 * the clock. */
RLOCK_MUST_CHECK int rlock_raise_floor(struct rlock_client *c, int64_t token);

/* ---- locks ---- */

/* An empty lock, reusable for any number of acquires; NULL when out of memory. */
RLOCK_MUST_CHECK struct rlock *rlock_new(struct rlock_client *c);

/* Releases the keys that are held, as rlock_release, and frees the memory; accepts
 * NULL. rlock_abandon before leaves them to their lease. A client with an event loop
 * does not wait for the answer: where it is closed at once, the keys may stay until
 * their lease ends. */
void rlock_free(struct rlock *l);

/* Memory to which each acquire writes its nonce before anything is sent
 * (RLOCK_NONCE_SIZE bytes, borrowed as long as the lock; NULL: nowhere). In memory that
 * outlives the process, it allows another process to free the keys with
 * rlock_release_dead. */
void rlock_set_nonce_copy(struct rlock *l, char *copy);

/* A text of the caller, which stands in the value of the keys of every acquire from now
 * on, for rlock_look and rlock_list: a host, a job. Up to RLOCK_TEXT_MAX bytes, no '|'
 * and no control character; copied; NULL: none. RLOCK_OK, RLOCK_E_NOMEM, RLOCK_E_INVAL
 * (also while the lock is held). */
RLOCK_MUST_CHECK int rlock_set_text(struct rlock *l, const char *text);

/* Acquires n keys (1 to RLOCK_KEYS_MAX; more, a name twice, or a lease below 3 ms:
 * RLOCK_E_INVAL), with one fresh nonce, one script call and one fencing token.
 * RLOCK_OK: all granted (RLOCK_SOME(k): k are). RLOCK_PARTIAL (RLOCK_ANY): some are.
 * RLOCK_BUSY: none is. rlock_key_code has the code of each. If an answer is lost, the
 * call asks again with the same nonce before it gives up (not in a quorum: a majority
 * is enough). After a fault no key counts as granted: keys that may be held were
 * released if the server could be reached, and else end with their lease; rlock_release
 * may be called to try again. A lock that is held already: RLOCK_E_INVAL (release or
 * abandon it first). */
RLOCK_MUST_CHECK int rlock_acquire(struct rlock *l,
                                   const struct rlock_key *keys,
                                   size_t n,
                                   enum rlock_mode mode,
                                   uint32_t lease_ms);

/* An attempt on one key, named by a C string. RLOCK_OK, RLOCK_BUSY or a fault. */
RLOCK_MUST_CHECK int rlock_try(struct rlock *l, const char *name, uint32_t lease_ms);

/* The same, waiting: see rlock_acquire_wait. */
RLOCK_MUST_CHECK int
rlock_lock(struct rlock *l, const char *name, uint32_t lease_ms, uint32_t wait_ms);

/* Tries until everything wanted is granted (RLOCK_ANY: at least one key), or
 * wait_ms have passed: RLOCK_TIMEOUT, or the fault that lasted until then. wait_ms 0: a
 * single try with the time of rlock_acquire. No try begins that has less time than the
 * last round trip took. Faults that
 * pass (unreachable, no answer, a replica, no quorum) do not end the wait; others end
 * it at once. cancel_fd: a readable descriptor ends the wait with RLOCK_CANCELLED (an
 * attempt under way ends within its limits first); 0 or below: none. A release of the
 * first busy key (not RLOCK_ALL: of one of the first 16) wakes the waiter, but
 * not in a quorum. The wake-up is only a hint: the waiter also tries by itself, at the
 * latest when the holder's lease ends. There is no queue: the first attempt after a
 * release gets the key. */
RLOCK_MUST_CHECK int rlock_acquire_wait(struct rlock *l,
                                        const struct rlock_key *keys,
                                        size_t n,
                                        enum rlock_mode mode,
                                        uint32_t lease_ms,
                                        uint32_t wait_ms,
                                        int cancel_fd);

/* Extends the lease of all granted keys, counted from now. The call never shortens a
 * lease and never creates a key, but on a server of a quorum that lost it while a
 * majority has it. RLOCK_OK; RLOCK_LOST (for good: at least one granted
 * key is no longer ours, and its rlock_key_code is RLOCK_LOST); a fault, after which
 * the keys are held as before. */
RLOCK_MUST_CHECK int rlock_extend(struct rlock *l, uint32_t lease_ms);

/* Shortens the lease of all granted keys to lease_ms from now, where it is longer: for
 * work that is nearly done, or a key that is to stay locked for a while. The lock's own
 * time left is shorter from the call on, whatever it returns. The codes are those of
 * rlock_extend; RLOCK_E_INVAL for a lock that is renewed. */
RLOCK_MUST_CHECK int rlock_shorten(struct rlock *l, uint32_t lease_ms);

/* Asks Redis if all granted keys are still ours: RLOCK_OK with the shortest time that
 * one of them has left (left_ms may be NULL); RLOCK_LOST; a fault. */
RLOCK_MUST_CHECK int rlock_verify(struct rlock *l, int64_t *left_ms);

/* Deletes the granted keys that still carry our nonce. RLOCK_OK: all were ours until
 * now; RLOCK_GONE: at least one had run out; RLOCK_NOT_OWNER: at least one is somebody
 * else's. rlock_key_code has the code of each. After an answer, further calls return
 * the same code. After a fault the call may be repeated; keys that a try without an
 * answer deleted count as ours if the same server process answers. From the first try
 * on rlock_valid is false, and rlock_extend and rlock_verify return RLOCK_E_INVAL. */
int rlock_release(struct rlock *l);

/* Deletes some of the granted keys, by their places (each once), and goes on holding
 * the others: extend, verify and a release are about those from now on. The codes are
 * those of rlock_release for these keys, and rlock_key_code has the code of each. After
 * a fault they are held no more here, and end with their lease if they are still there.
 * RLOCK_E_INVAL: the lock is not held or is renewed, or a key of these is not granted.
 */
RLOCK_MUST_CHECK int rlock_release_some(struct rlock *l, const size_t *at, size_t n);

/* Forgets the held keys without a command to the server: they end with their lease. */
void rlock_abandon(struct rlock *l);

/* After acquire: RLOCK_OK or RLOCK_BUSY (after a fault RLOCK_BUSY: not counted as
 * granted). After a loss: RLOCK_LOST for the keys that are gone. After release:
 * RLOCK_OK, RLOCK_GONE, RLOCK_NOT_OWNER for the granted ones, RLOCK_BUSY for those that
 * never were. */
int rlock_key_code(const struct rlock *l, size_t i);

/* Milliseconds that the holder of a busy key had left; -1: the key has no TTL. */
int64_t rlock_key_busy_ms(const struct rlock *l, size_t i);

/* Number of keys granted and not released. */
size_t rlock_granted(const struct rlock *l);

/* The fencing token of all its keys, fixed at acquire; 0 when that granted nothing. The
 * token stays after a release, for a journal; rlock_abandon and the next acquire end
 * it. */
int64_t rlock_token(const struct rlock *l);

/* Local questions, no I/O. left: milliseconds until the lease ends, counted from before
 * the acquire (or extend) was sent and less 1 % + 2 ms for clock drift; 0: nothing is
 * granted, or released, known to be lost, over, or another process's. valid: more than
 * margin_ms are left. */
int64_t rlock_left_ms(const struct rlock *l);
bool rlock_valid(const struct rlock *l, uint32_t margin_ms);

/* ---- renewal ---- */

/* Called once for each lock that was lost while it was renewed, on a thread that does
 * nothing else, so no renewal waits for it, or inside rlock_loop_step. If Redis could
 * not be reached, up to an eighth of the lease (at most a second) is still left.
 * rlock_valid is false from now on. code is RLOCK_LOST: keys are gone or somebody
 * else's (see rlock_key_code); RLOCK_GONE: renewal has stopped (no progress, max_hold,
 * or the process stood still) and the lease runs out; < 0: the fault of the last
 * renewal. The callback may release, abandon and free the lock if no other thread uses
 * its client meanwhile. The callback must not close the renewer, nor wait for a thread
 * that calls the library for this lock. */
typedef void (*rlock_lost_fn)(struct rlock *l, int code, void *arg);

struct rlock_renew_options {
    size_t size;
    uint32_t interval_ms;  /* default: a third of each lease; at most half of it */
    rlock_lost_fn on_lost; /* may be NULL */
    void *arg;
    bool no_thread; /* rlock_loop_step of c renews (ledgerlock/lock_loop.h) */
};

/* Starts the renewer: a thread with its own connection, made from c's options, and a
 * thread for on_lost; or, without a thread, a part of c's event loop, on whose thread
 * its locks must be used. A renewer serves
 * the locks of any clients with the same prefix and the same url, word for word (or the
 * same connect and connect_arg), each from its own thread. Must be closed before c, and
 * before a lock of it is freed by another thread. options may be NULL. */
RLOCK_MUST_CHECK int rlock_renewer_open(struct rlock_renewer **out,
                                        struct rlock_client *c,
                                        const struct rlock_renew_options *options);

/* Ends the thread; locks stay held. Accepts NULL. */
void rlock_renewer_close(struct rlock_renewer *r);

/* Renews l until it is released, abandoned, lost, or rlock_renew_stop. stall_ms:
 * renewal stops when rlock_progress was not called for so long (0: no limit).
 * max_hold_ms: renewal stops so long from now (0: no limit). A fault does not stop
 * it: it is tried again until shortly before the local deadline. A released lock is
 * never extended and never reported as lost: rlock_release and rlock_renew_stop wait
 * for a renewal under way (one command, ended by its deadline). The lock may be used
 * from its own thread meanwhile. RLOCK_LOST: its lease has run out already.
 * RLOCK_E_INVAL: not held, renewed already, or a lock of another url or prefix. */
RLOCK_MUST_CHECK int rlock_renew(struct rlock_renewer *r,
                                 struct rlock *l,
                                 uint32_t stall_ms,
                                 uint32_t max_hold_ms);
void rlock_renew_stop(struct rlock_renewer *r, struct rlock *l);

/* Reports that the work goes on: stall_ms begins again. */
void rlock_progress(struct rlock *l);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
