/* internal: what the files of the lock library share. Not installed. */
#ifndef LEDGERLOCK_LOCK_INTERNAL_H
#define LEDGERLOCK_LOCK_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "common/lock/lock.h"
#include "lua_gen.h"

struct redisContext;
struct redisReply;

enum { LL_IDENT_MAX = 96, LL_ERROR_MAX = 256, LL_SENTINELS_MAX = 8 };

enum { LL_NONCE_HEX = LL_NONCE_SIZE - 1 };

/* Longest that a read blocks before its caller looks at the deadline again. */
enum { LL_TICK_MS = 50 };

/* Where a server is. */
struct ll_address {
    char *host; /* host name, or path when is_unix */
    int port;
    bool is_unix;
    bool is_tls;
};

/* One server and the connection to it. */
struct ll_node {
    struct ll_address address;
    struct redisContext *conn;
    char ident[LL_IDENT_MAX]; /* run id and replication id of the server */
    int64_t server_ahead_ms;  /* server wall clock minus local boot clock */
    int64_t retry_at_ms;      /* quorum: not asked before, it just failed to connect */
    int failure;              /* quorum: why it did */
    int64_t doubt_at_ms;      /* quorum: its ident is not read again before */
    char sha[LUA_COUNT][41];  /* as answered by SCRIPT LOAD on this connection */
};

struct ll_client {
    struct ll_node nodes[LL_NODES_MAX];
    size_t node_ct; /* 1, or 3 or 5: a quorum */
    struct ll_address sentinels[LL_SENTINELS_MAX];
    size_t sentinel_ct;
    char *primary_name; /* what the Sentinels call it */
    char *user;
    char *password;
    char *tls_ca;
    char prefix[LL_PREFIX_MAX + 1];
    size_t prefix_len;
    int db;
    bool no_scripts;
    int64_t connect_ms;
    int64_t reply_ms; /* 0 in a quorum: follows the lease */
    int64_t max_lease_ms;
    uint32_t replicas;
    int64_t last_token;    /* quorum: highest that this client was given */
    int64_t readmit_at_ms; /* quorum: nobody is let in again before */
    uint64_t exchanges;    /* of commands and answers, with any number of nodes */
    pid_t owner;
    char error[LL_ERROR_MAX];
};

/* One key of a tenure. */
struct ll_slot {
    int code;
    int64_t busy_ms;
    int64_t token;
    bool given_back;              /* deleted, perhaps by a try whose answer was lost */
    int64_t grants[LL_NODES_MAX]; /* quorum: what each node granted; 0: nothing */
    unsigned acks;                /* quorum: nodes whose counter has reached token */
};

struct ll_lock {
    struct ll_client *client;
    char nonce[LL_NONCE_HEX + 1];
    char mark[LL_NONCE_HEX + 2]; /* "nonce|": a value that begins with it is ours */
    char *nonce_copy;            /* may be NULL */
    int64_t token;
    _Atomic int64_t deadline_ms; /* local boot clock, drift taken off */
    _Atomic int64_t progress_ms; /* last ll_progress */
    atomic_bool lost;
    uint32_t lease_ms;
    uint32_t tolerance_ms;
    bool reentrant;
    unsigned holds;
    struct ll_renewer *renewer; /* NULL: not renewed */
    struct ll_renewal *renewal; /* what the renewer knows of it */
    size_t n;
    size_t granted;
    bool released;
    bool uncertain;   /* asked for, no answer: may be held */
    bool unreachable; /* the last attempt found no server */
    unsigned asked;   /* quorum: nodes (bits) that may have granted something */
    unsigned marks;   /* ll_acquire_wait: mark this many busy keys as waited for */
    int release_code;
    char *names; /* prefixed names, one after the other */
    size_t names_size;
    size_t slot_size;
    size_t *offsets; /* slot_size + 1 */
    struct ll_slot *slots;
    const char *
        *argv; /* 2 * slot_size + 16: a command over all keys, each with a word */
    size_t *lens;
};

/* ---- conn: one command on one or several nodes ---- */

/* A command and what came of it. */
struct ll_call {
    struct ll_node *node;
    int argc;
    const char **argv;
    const size_t *lens;
    struct redisReply *reply; /* NULL unless code is LL_OK; the caller frees it */
    int code;
    struct redisReply **replies; /* a pipe (ll_pipe_run): command and size are given, */
    size_t wanted, reply_ct;     /* and so many replies wanted; else NULL */
    /* state of the exchange */
    char *command;
    size_t size, sent;
    bool is_open;
    bool is_flushing; /* TLS: the rest waits in the connection's own buffer */
};

/* Milliseconds since boot. */
int64_t ll_now_ms(void);

/* Sets the client's error text and returns code. */
int ll_fail(struct ll_client *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Answers LL_E_FORKED in a child, else LL_OK. */
int ll_check_owner(struct ll_client *c);

/* Connects the socket of a node, with TLS where its address says so; no word of Redis
 * yet. On failure too the caller disconnects. */
int ll_node_open(struct ll_client *c, struct ll_node *node, int64_t deadline_ms);

/* The rest of the handshake; disconnects on failure. */
int ll_node_shake(struct ll_client *c, struct ll_node *node, int64_t deadline_ms);

/* Connects a node if it is not, with the whole handshake. */
int ll_node_connect(struct ll_client *c, struct ll_node *node, int64_t deadline_ms);

/* Closes our descriptor only: nothing is sent. */
void ll_node_disconnect(struct ll_node *node);

/* Sends every call and waits for every reply, all at once, until the deadline. On any
 * I/O error or late answer the node's connection is thrown away (its next bytes would
 * answer the wrong question) and the call's code is LL_E_UNCERTAIN if anything may have
 * reached the server, else LL_E_UNAVAILABLE. Error replies are handed over like any
 * other. */
void ll_exchange(struct ll_client *c,
                 struct ll_call *calls,
                 size_t n,
                 int64_t deadline_ms);

/* One command on one node. */
int ll_command(struct ll_client *c,
               struct ll_node *node,
               int argc,
               const char **argv,
               const size_t *lens,
               int64_t deadline_ms,
               struct redisReply **reply);

/* The same for words without zero bytes; an error reply becomes its code. */
int ll_words(struct ll_client *c,
             struct ll_node *node,
             int64_t deadline_ms,
             struct redisReply **reply,
             int argc,
             const char **argv);

/* Code of an error reply, with its text kept. */
int ll_reply_code(struct ll_client *c,
                  struct ll_node *node,
                  const struct redisReply *reply);

/* Loads a script on a node. */
int ll_load_script(struct ll_client *c,
                   struct ll_node *node,
                   enum lua_id id,
                   int64_t deadline_ms);

/* Runs a script by its hash on the one server, loading it when the server forgot it.
 * The caller fills argv and lens from index 3 on: keys, then arguments; argc counts the
 * first three too. */
int ll_script(struct ll_client *c,
              enum lua_id id,
              int keys,
              int argc,
              const char **argv,
              size_t *lens,
              struct redisReply **reply);

/* ---- command ---- */

/* Writes a command as Redis reads it; returns its size. room: what it needs at most. */
size_t ll_command_room(int argc, const size_t *lens);
size_t ll_write_command(char *buf, int argc, const char **argv, const size_t *lens);

/* ---- pipe: several commands to one server in one round trip ---- */

/* Zero it before the first use; ll_pipe_free at the end. */
struct ll_pipe {
    char *text; /* the commands as they are sent */
    size_t size, room;
    size_t n;                    /* commands */
    bool is_short;               /* out of memory on the way: ll_pipe_run says so */
    struct redisReply **replies; /* n of them when ll_pipe_run answered LL_OK */
    size_t reply_ct;
};

void ll_pipe_add(struct ll_pipe *p, int argc, const char **argv, const size_t *lens);

/* The same for words without zero bytes. */
void ll_pipe_words(struct ll_pipe *p, int argc, const char **argv);

/* Sends all and takes one reply for each; codes as of ll_command. Error replies are
 * handed over like any other. */
int ll_pipe_run(struct ll_client *c,
                struct ll_node *node,
                struct ll_pipe *p,
                int64_t deadline_ms);

/* Empty again, memory kept; free: no memory kept. */
void ll_pipe_clear(struct ll_pipe *p);
void ll_pipe_free(struct ll_pipe *p);

/* ---- url ---- */

/* Fills addresses, user, password, db; returns NULL or the reason why not, which is
 * ll_no_memory when it is that. */
const char *ll_parse_url(struct ll_client *c, const char *url);
extern const char ll_no_memory[];

/* ---- sentinel ---- */

/* Puts the present primary into nodes[0].address. Asks the Sentinels in turn, beginning
 * with the one that answered last; none of them may take more than its share of the
 * time. */
int ll_sentinel_find(struct ll_client *c, int64_t deadline_ms);

/* What the first Sentinel told was no primary: begin with another one next time. */
void ll_sentinel_distrust(struct ll_client *c);

/* ---- locks ---- */

/* Makes room for n keys in the lock. LL_OK or LL_E_NOMEM. */
int ll_lock_reserve(struct ll_lock *l, size_t n, size_t name_bytes);

/* Takes the names over, prefixed; every key LL_OK. LL_OK, LL_E_INVAL, LL_E_NOMEM. */
int ll_store_names(struct ll_lock *l, const struct ll_key *keys, size_t n);

/* Of those taken over: LL_E_INVAL if one is there twice, else LL_OK. */
int ll_check_distinct(struct ll_lock *l);

/* Deadline of a lease that is asked for now: drift taken off. */
int64_t ll_deadline(uint32_t lease_ms);

/* Prefixed name of key i, and its length. */
const char *ll_name(const struct ll_lock *l, size_t i, size_t *len);

/* Granted keys of one lock that stand together in a call: n of them, the first is
 * `from`.
 */
struct ll_part {
    const struct ll_lock *l;
    size_t from, n;
    uint32_t ttl_ms;
    char ttl[12], count[12]; /* ttl_ms and n as scripts are told */
    int code;                /* what came of it: LL_OK, LL_LOST, or the fault */
};

/* The next granted key from i on; l->n when there is none. */
size_t ll_next_granted(const struct ll_lock *l, size_t i);

/* Cuts off at most `room` granted keys from *at on, and moves *at behind them. */
struct ll_part
ll_part_cut(const struct ll_lock *l, size_t *at, size_t room, uint32_t ttl_ms);

/* Lengthens the parts of any locks, each of which is LL_LOST, and as it was, if one of
 * its keys is not ours: every node is asked for all in one round trip, a server without
 * scripts in two. Returns LL_OK when every part has its code, else the fault. */
int ll_quorum_keep(struct ll_client *c,
                   struct ll_part *parts,
                   size_t n,
                   int64_t node_ms);
int ll_plain_keep(struct ll_client *c,
                  struct ll_part *parts,
                  size_t n,
                  int64_t until_ms);

/* The same three beats for servers without scripts (plain.c) and for a quorum
 * (quorum.c). */
int ll_plain_acquire(
    struct ll_lock *l, size_t first, size_t n, enum ll_mode mode, uint32_t ttl_ms);
int ll_plain_release(struct ll_lock *l, const size_t *index, size_t n);
int ll_plain_extend(struct ll_lock *l, uint32_t ttl_ms);
int ll_plain_epoch(struct ll_client *c, int64_t epoch, int64_t *current);
int ll_quorum_acquire(struct ll_lock *l, enum ll_mode mode, uint32_t ttl_ms);
int ll_quorum_release(struct ll_lock *l, const size_t *index, size_t n);
int ll_quorum_extend(struct ll_lock *l, uint32_t ttl_ms);
int ll_quorum_connect(struct ll_client *c);

/* Sleeps at least 1 ms, whatever signals come. jitter: 1 to most_ms, evenly. */
void ll_sleep_ms(int64_t ms);
int64_t ll_jitter_ms(int64_t most_ms);

/* Another client with the same options, for a thread of its own. */
int ll_copy(struct ll_client **out, const struct ll_client *c);

/* Tells the renewer that the lock is being released, if it has one; returns when no
 * renewal of it is under way. From then on it is neither extended nor reported lost. */
void ll_renew_forget(struct ll_lock *l);

#endif
