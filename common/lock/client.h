/* client: the types of a client: its servers with their connections, the wake-ups that
 * it waits for, its loop. Not installed. */
#ifndef LEDGERLOCK_LOCK_CLIENT_H
#define LEDGERLOCK_LOCK_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "common/lock/link.h"
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

/* The address of a server. */
struct rlock_address {
    char host[RLOCK_HOST_MAX + 1]; /* or path when is_unix */
    int port;
    bool is_unix, is_tls;
};

enum rlock_state {
    RLOCK_DOWN,
    RLOCK_LOCATING, /* Sentinels are asked for the address */
    RLOCK_CONNECTING,
    RLOCK_TLS,
    RLOCK_SHAKING,
    RLOCK_UP
};

/* A server and its connection. */
struct rlock_node {
    struct rlock_address address;
    enum rlock_state state;
    redisContext *conn; /* NULL in RLOCK_DOWN and RLOCK_LOCATING, and while a Unix
                           socket is full */
    struct rlock_link link;
    struct rlock_exchange shake; /* the handshake, or a check of an UP node */
    bool is_checking;            /* the check is under way */
    bool has_auth;               /* the first command was AUTH */
    size_t head_ct, info_ct;     /* answers before those of INFO, and of INFO */
    void *ssl;                   /* of the TLS handshake */
    bool is_layered;  /* I/O goes through hiredis: TLS, or the caller's connection */
    bool is_flushing; /* the rest waits in hiredis' own buffer */
    bool has_more;    /* bytes wait in its TLS layer, which poll does not see */
    bool is_sentinel; /* a Sentinel: asked for an address only */
    bool is_asking;   /* cluster: the slot moves to it: every command needs ASKING */
    bool is_stale;    /* not to be used for another call: closed by the next */
    int failure;      /* code of the last failed try to connect, */
    char why[RLOCK_ERROR_MAX];     /* and its text, */
    bool is_why_of_end;            /* which is that of the last connection's end */
    char run_id[RLOCK_RUN_ID_MAX]; /* run id of the server process; "": unknown */
    int64_t server_ahead_ms;       /* server wall clock minus local boot clock */
    int64_t grants_at_ms; /* quorum: may not grant before this, after a restart */
    int64_t began_us;     /* begin of the try to connect, */
    int64_t until_ms;     /* and its end, or that of a check */
    int64_t again_ms;     /* time of the next try on a full Unix socket */
    unsigned place_at, place_ct;   /* the address that is tried, of those of the host */
    int64_t next_place_ms;         /* until then, if there is another one */
    int64_t asked_ms;              /* the handshake was sent */
    int64_t checked_ms;            /* last check of role, policy and clock, */
    int64_t check_at_ms;           /* and the next; 0: not checked yet */
    int64_t retry_at_ms, pause_ms; /* quorum: back-off between tries to connect */
    int64_t trip_ms;               /* the last round trip of a script */
    unsigned redirects;            /* cluster: redirections followed in this try */
    size_t asked;                  /* RLOCK_LOCATING: Sentinels that were asked */
    int watcher;                   /* descriptor of the loop, */
    short watched;                 /* and the events that it waits for; 0: none */
    unsigned ends;                 /* how often a connection or a try has ended */
    int worst;                     /* and the worst of their codes */
};

/* A process, also one in another pid namespace. */
struct rlock_owner {
    pid_t pid;
    unsigned forks;
};

/* The wake-ups of a client. */
struct rlock_ears {
    struct rlock_node *own; /* its connection; NULL: the client's */
    struct rlock_listener *first;
    struct rlock_exchange x; /* a BLPOP for those that are heard */
    bool is_asked;
    int64_t until_ms; /* it must have ended then */
    int64_t again_ms; /* no try to connect before */
};

/* The calls of a client that are under way in an event loop. */
struct rlock_loop {
    int watch_fd, timer_fd;                /* of which the first hears the other */
    struct rlock_op *first, **last;        /* under way, in their order, */
    struct rlock_op *ended, **last_ended;  /* or not told yet */
    struct rlock_renewer *renewers, *next; /* next: the one to be stepped */
    unsigned ends;                         /* of the nodes, as all calls know of them */
    bool is_stepping, is_closed;
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
    struct rlock_node *scout; /* connection to a Sentinel; NULL: none was needed */
    int64_t floor;            /* tokens are higher */
    int64_t calls;            /* scripts sent so far: their ids */
    int64_t want_ms;          /* the steps want to be called then, */
    int cancel_fd;            /* and when this is readable; -1: none */
    struct rlock_ears ears;
    struct rlock_loop *loop; /* NULL: every call waits for its end */
    void *looked;            /* what rlock_look told; NULL: nothing */
    redisContext *left; /* the last connection that was left to the server, or NULL */
    struct rlock_owner owner;
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

#endif
