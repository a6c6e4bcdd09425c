/* connection: the lower half of the lock library: base (errors, clocks, calls), text
 * (commands and answers as bytes), tls, talk (exchanges), url, handshake, node
 * (connects one address), connect (keeps nodes up). Not installed. */
#ifndef LEDGERLOCK_LOCK_CONNECTION_H
#define LEDGERLOCK_LOCK_CONNECTION_H

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/lock/lock.h"
#include "lua_gen.h"

enum {
    RLOCK_ERROR_MAX = 256,
    RLOCK_PLACES_MAX = 8,
    RLOCK_HOST_MAX = 255,
    RLOCK_RUN_ID_MAX = 48,
    RLOCK_NONCE_HEX = RLOCK_NONCE_SIZE - 1,
    RLOCK_ALL_NODES = (1 << RLOCK_NODES_MAX) - 1, /* as bits */
    RLOCK_TICK_MS = 50, /* longest time that a read or poll blocks before a check of its
                        deadline, which also counts the time that the machine sleeps */
    RLOCK_CHECK_MS = 1000, /* time between two checks of a server's role and clock */
};

/* Tokens are below this: Lua's numbers are exact up to 2^53, and a fence that is higher
 * still leaves room. No clock gets here before the end of 2254. */
#define RLOCK_TOKEN_END ((INT64_C(1) << 53) - (INT64_C(1) << 40))

static inline int64_t rlock_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t rlock_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Nodes are a set of bits. */
static inline bool rlock_has(unsigned nodes, size_t i)
{
    return (nodes >> i & 1) != 0;
}

static inline size_t rlock_count(unsigned nodes)
{
    size_t n = 0;

    for (; nodes != 0; nodes &= nodes - 1)
        n++;
    return n;
}

/* ---- text: commands as Redis reads them ---- */

/* A growing buffer; zero it before the first use. */
struct rlock_text {
    char *at;
    size_t size, room;
    bool is_short; /* out of memory while writing */
};

/* Begins a command of argc words; the calls below add one word each. */
void rlock_put_command(struct rlock_text *t, size_t argc);
void rlock_put(struct rlock_text *t, const char *word, size_t len);
void rlock_put_word(struct rlock_text *t, const char *word);
void rlock_put_number(struct rlock_text *t, int64_t number);
/* Writes a whole command of words without zero bytes; the last argument is NULL. */
void rlock_put_words(struct rlock_text *t, const char *const *words);
void rlock_text_free(struct rlock_text *t);

/* ---- nodes and clients ---- */

/* The address of a server. */
struct rlock_address {
    char host[RLOCK_HOST_MAX + 1]; /* or path when is_unix */
    int port;
    bool is_unix, is_tls;
};

enum rlock_state { RLOCK_DOWN, RLOCK_CONNECTING, RLOCK_TLS, RLOCK_SHAKING, RLOCK_UP };

/* One server, its connection, and the exchange under way. */
struct rlock_node {
    struct rlock_address address;
    enum rlock_state state;
    redisContext *conn; /* not in RLOCK_DOWN */
    void *ssl;          /* of the TLS handshake */
    bool is_layered;    /* I/O goes through hiredis: TLS, or the caller's connection */
    bool is_sentinel;   /* a Sentinel: asked for an address only */
    bool is_asking;     /* cluster: the slot moves to it: every command needs ASKING */
    int failure;        /* code of the last failed try to connect, */
    char why[RLOCK_ERROR_MAX];     /* and its text */
    char run_id[RLOCK_RUN_ID_MAX]; /* run id of the server process; "": unknown */
    int64_t server_ahead_ms;       /* server wall clock minus local boot clock */
    int64_t grants_at_ms; /* quorum: may not grant before this, after a restart */
    int64_t began_us;     /* begin of the try to connect, */
    int64_t until_ms;     /* and its end */
    int64_t asked_ms;     /* the handshake was sent */
    int64_t checked_ms;   /* last check of role, policy and clock, */
    int64_t check_at_ms;  /* and the next; 0: not checked yet */
    int64_t retry_at_ms, pause_ms; /* quorum: back-off between tries to connect */
    unsigned redirects;            /* cluster: redirections followed in this try */
    redisReplyObjectFunctions functions; /* hiredis' own, except for arrays: */
    redisReplyObjectFunctions *hiredis_functions;
    /* the exchange */
    struct rlock_text out;
    size_t sent;
    bool is_flushing; /* the rest waits in hiredis' own buffer */
    bool has_left;    /* bytes of this exchange may have reached the server */
    size_t owed;      /* answers to earlier commands, which come first */
    int64_t owed_since_ms;
    size_t wanted; /* answers of this exchange: expected, and received */
    size_t reply_ct, reply_room;
    redisReply **replies;
    int code; /* RLOCK_OK when all are received */
};

enum rlock_kind { RLOCK_ONE_SERVER, RLOCK_QUORUM, RLOCK_SENTINELS, RLOCK_CLUSTER };

struct rlock_client {
    enum rlock_kind kind;
    struct rlock_node nodes[RLOCK_NODES_MAX];
    size_t node_ct; /* 1, or 3 or 5: a quorum */
    struct rlock_address
        places[RLOCK_PLACES_MAX]; /* Sentinels, or nodes of a cluster */
    size_t place_ct, place_at;
    char *primary_name;     /* name of the primary at the Sentinels */
    char *user, *password;  /* from the URL */
    struct rlock_options o; /* a copy; o.reply_ms 0: follows the lease */
    char prefix[RLOCK_PREFIX_MAX + 1];
    size_t prefix_len;
    char last_key[RLOCK_PREFIX_MAX + 8]; /* "<prefix>!last" */
    int db;
    int64_t floor;    /* tokens are higher */
    int64_t limit_ms; /* end of the present call, on the boot clock */
    int cancel_fd;    /* a readable fd ends the present exchange; -1: none */
    unsigned garbled; /* nodes (bits) whose answers made no sense: closed next */
    struct rlock_async *async; /* NULL: not attached; only lock_async knows the type: */
    void (*async_detach)(struct rlock_client *c);
    void (*async_forget)(struct rlock_lock *l);
    pid_t owner;
    char error[RLOCK_ERROR_MAX];
};

static inline size_t rlock_majority(const struct rlock_client *c)
{
    return c->node_ct / 2 + 1;
}

/* The first of these nodes from i on; node_ct: none is left. */
static inline size_t rlock_next(const struct rlock_client *c, unsigned nodes, size_t i)
{
    while (i < c->node_ct && !rlock_has(nodes, i))
        i++;
    return i;
}

/* Milliseconds since boot. */
int64_t rlock_now_us(void);
int64_t rlock_now_ms(void);
/* Polls until that time; 0: it is over. A time in the past: polls once. */
int rlock_poll(struct pollfd *fds, size_t n, int64_t until_ms);
/* Sleeps at least 1 ms in spite of signals, or until fd (-1: none) is readable: true.
 * jitter: a number from 1 to most_ms. */
bool rlock_sleep_ms(int64_t ms, int fd);
int64_t rlock_jitter_ms(int64_t most_ms);
/* Sets the client's error text and returns code. rlock_fail_at: "Redis at HOST" and the
 * text; rlock_fail_as: the sentence of the code. */
int rlock_fail(struct rlock_client *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int rlock_fail_at(struct rlock_client *c,
                  const struct rlock_node *node,
                  int code,
                  const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));
int rlock_fail_as(struct rlock_client *c, int code);
/* RLOCK_E_FORKED in a child, else RLOCK_OK. */
int rlock_check_owner(struct rlock_client *c);
/* Begins a call and sets its end: time to connect and to answer. Returns as
 * rlock_check_owner. */
int rlock_enter(struct rlock_client *c);
/* Ends a call that asked a server and began at event.us: calls the hook. Returns its
 * code. */
int rlock_leave(struct rlock_client *c, struct rlock_event event);
/* Later tokens are above this one, which a server gave. */
void rlock_note_token(struct rlock_client *c, int64_t token);
/* rlock_copy: another client with the same options, for another thread.
 * rlock_is_alike: true if both have the same url, word for word, and prefix. */
int rlock_copy(struct rlock_client **out, const struct rlock_client *c);
bool rlock_is_alike(const struct rlock_client *a, const struct rlock_client *b);
/* Copies a caller's struct of options into ours, which is zeroed; false: it has no
 * size, or options that this library lacks. */
bool rlock_read_options(void *to, size_t size, const void *given, size_t given_size);
/* Fills addresses, user, password, db; returns NULL, or the reason of the failure
 * (rlock_no_memory if out of memory). */
const char *rlock_parse_url(struct rlock_client *c, const char *url);
extern const char rlock_no_memory[];

/* ---- connections ---- */

/* rlock_node_start begins a try to connect; rlock_node_advance continues it as far as
 * possible without waiting. It ends in RLOCK_UP or RLOCK_DOWN (with failure and the
 * error text). */
void rlock_node_start(struct rlock_client *c,
                      struct rlock_node *node,
                      int64_t until_ms);
void rlock_node_advance(struct rlock_client *c, struct rlock_node *node);
bool rlock_node_is_under_way(const struct rlock_node *node);
/* Notes a successful handshake: the next check is due after RLOCK_CHECK_MS. */
void rlock_node_checked(struct rlock_client *c, struct rlock_node *node);
/* Closes a connection or ends a try; nothing is sent. rlock_node_fail: with a reason.
 */
void rlock_node_close(struct rlock_node *node);
void rlock_node_fail(struct rlock_client *c, struct rlock_node *node, int code);
void rlock_node_free(struct rlock_node *node);
/* rlock_node_events: the events that poll has to wait for before advance or talk can
 * continue; rlock_node_ready: those that are there now. */
short rlock_node_events(const struct rlock_node *node);
short rlock_node_ready(const struct rlock_node *node);
/* rlock_handshake_put writes all commands of a handshake; rlock_handshake_read reads
 * the answers: RLOCK_OK, a fault, or RLOCK_BUSY (the slot is on another node; the
 * address was changed). */
void rlock_handshake_put(struct rlock_client *c, struct rlock_node *node);
int rlock_handshake_read(struct rlock_client *c, struct rlock_node *node);
/* Quorum: the node that is the same server under another name and is up; NULL: none. */
const struct rlock_node *rlock_twin_of(const struct rlock_client *c,
                                       const struct rlock_node *node);
/* NULL if this build has TLS, else the reason. */
const char *rlock_tls_missing(void);
/* Begins and continues the TLS handshake on a connected socket: RLOCK_OK, RLOCK_BUSY
 * with what poll has to wait for, RLOCK_E_TLS, RLOCK_E_UNAVAILABLE. */
int rlock_tls_step(struct rlock_client *c, struct rlock_node *node);
short rlock_tls_events(const struct rlock_node *node);
/* Bytes through hiredis, never with a SIGPIPE; 0 or -1 as hiredis answers. */
int rlock_layer_write(redisContext *conn, const char *data, size_t n, bool *is_done);
int rlock_layer_read(redisContext *conn);
/* Connects nodes that are not connected and waits for a majority; slower nodes continue
 * to connect meanwhile. Before a take it repeats checks that are older than a second.
 * RLOCK_OK, or the fault. */
int rlock_gather(struct rlock_client *c, bool is_take);
/* Nodes (bits) that are up; rlock_ready_nodes: those that also owe no answers. */
unsigned rlock_up_nodes(const struct rlock_client *c);
unsigned rlock_ready_nodes(const struct rlock_client *c);
/* Cluster: puts the address of the next known node into nodes[0]. */
void rlock_next_seed(struct rlock_client *c);
/* Cluster: follows "MOVED slot host:port" or "ASK ..."; false: it is neither. */
bool rlock_place_follow(struct rlock_client *c,
                        struct rlock_node *node,
                        const char *error);
/* Cluster: the prefix has a hash tag, so all keys are in one slot. */
bool rlock_has_tag(const char *prefix);

/* ---- talk: commands on connected nodes ---- */

/* Begins an exchange with a node; rlock_put*(&node->out) then adds its commands. */
void rlock_talk_begin(struct rlock_node *node, size_t answers);
/* Sends the commands and reads the answers of the nodes in `who` (bits), until all are
 * there, `enough` returns true, or the deadline. Then node->code is RLOCK_OK with
 * node->replies; RLOCK_E_UNAVAILABLE: no byte was sent; RLOCK_E_UNCERTAIN: the
 * connection failed or was too slow (a node of a quorum stays connected and owes the
 * answers); or RLOCK_E_NOMEM. */
void rlock_talk(struct rlock_client *c,
                unsigned who,
                int64_t deadline_ms,
                bool (*enough)(void *arg),
                void *arg);
/* Sends the commands without waiting: the node owes the answer. */
void rlock_talk_tell(struct rlock_client *c, struct rlock_node *node);
/* Writes or reads once, as poll says (revents). */
void rlock_talk_step(struct rlock_client *c, struct rlock_node *node, short events);
/* A node's time to answer for a lease. */
int64_t rlock_node_ms(const struct rlock_client *c, uint32_t lease_ms);
int64_t rlock_reply_deadline(const struct rlock_client *c, int64_t reply_ms);
/* Code of an error answer or an answer of a wrong type; its text is kept. */
int rlock_reply_code(struct rlock_client *c,
                     struct rlock_node *node,
                     const redisReply *reply);
bool rlock_is_error(const redisReply *reply, const char *word);
/* True if the script ran outside its window, and so did nothing. */
bool rlock_is_late(const redisReply *reply);
/* rlock_reply_number: a number, as text or integer; false: not a number.
 * rlock_reply_token: a token; 0: not a token. */
bool rlock_reply_number(const redisReply *reply, int64_t *number);
int64_t rlock_reply_token(const redisReply *reply);

#endif
