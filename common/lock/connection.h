/* connection: the lower half of the lock library: portable (the system), base (errors,
 * calls), text (commands and answers as bytes), link (exchanges, without I/O), tls,
 * url, handshake, socket (opens), end, node (drives a connection without waiting),
 * drive (waits), locate (asks Sentinels), gather (keeps nodes up). Not installed.
 *
 * Every operation is a state machine that never waits: its step goes on as far as
 * possible, and returns RLOCK_UNDER_WAY until it has its code. Steps note the time at
 * which they want to be called again though nothing has come (rlock_want). Between
 * two steps, rlock_drive waits for the descriptors of the nodes and for that time. */
#ifndef LEDGERLOCK_LOCK_CONNECTION_H
#define LEDGERLOCK_LOCK_CONNECTION_H

#include <poll.h>

#include "common/lock/client.h"
#include "common/lock/portable.h"

/* ---- base ---- */

/* Polls until that time; 0: it is over. A time in the past: polls once. */
int rlock_poll(struct pollfd *fds, size_t n, int64_t until_ms);
/* Makes the descriptor of the client's loop, if it has one, readable at the time that
 * the steps want. rlock_ring: now, since a step has something to do. */
void rlock_set_timer(const struct rlock_client *c);
void rlock_ring(struct rlock_client *c);
int64_t rlock_jitter_ms(int64_t most_ms); /* 1 to most_ms, at random */
/* Sets the error text, returns code. at: "Redis at HOST" and the text; as: the code's.
 */
int rlock_fail(struct rlock_client *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int rlock_fail_at(struct rlock_client *c,
                  struct rlock_node *node,
                  int code,
                  const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));
int rlock_fail_as(struct rlock_client *c, int code);
/* rlock_check_owner: RLOCK_E_FORKED in a child, else RLOCK_OK. */
struct rlock_owner rlock_this_process(void);
bool rlock_is_owner(const struct rlock_client *c);
int rlock_check_owner(struct rlock_client *c);
/* End of a call that begins now: time to connect and to answer. */
int64_t rlock_call_end(const struct rlock_client *c);
/* Ends a call that began at event.us: calls the hook, returns the code. */
int rlock_leave(struct rlock_client *c, struct rlock_event event);
/* Later tokens are above this one, which a server gave. */
void rlock_note_token(struct rlock_client *c, int64_t token);
/* copy: the same options, for another thread; is_alike: the same url, as text, and
 * prefix. */
int rlock_copy(struct rlock_client **out, const struct rlock_client *c);
bool rlock_is_alike(const struct rlock_client *a, const struct rlock_client *b);
/* Copies options of a caller; false: no size, or options that this library lacks. */
bool rlock_read_options(void *to, size_t size, const void *given, size_t given_size);
/* Fills addresses, user, password, db; returns NULL, or the reason of the failure
 * (rlock_no_memory if out of memory). */
const char *rlock_parse_url(struct rlock_client *c, const char *url);
extern const char rlock_no_memory[];

/* ---- connections ---- */

/* Opens a connection to the node's address: RLOCK_OK: it is there, or under way;
 * RLOCK_BUSY: a full Unix socket, to be tried again at again_ms; or the fault. check:
 * outcome of a connect that poll told of. wait: 0 when reads wait for at most
 * RLOCK_TICK_MS (those through hiredis do not wait). */
int rlock_socket_open(struct rlock_client *c, struct rlock_node *node);
int rlock_socket_check(struct rlock_client *c, struct rlock_node *node);
bool rlock_socket_has_next(const struct rlock_node *node); /* address of its host */
int rlock_socket_wait(const struct rlock_node *node);
/* watch: the loop waits for these events of the socket. leave ends the writing alone:
 * what was sent comes there, drop_left closes it. */
void rlock_socket_watch(struct rlock_node *node, int watch_fd, short events);
void rlock_socket_leave(struct rlock_client *c, struct rlock_node *node);
void rlock_drop_left(struct rlock_client *c);
/* Begins a try to connect, which ends in RLOCK_UP or RLOCK_DOWN (with failure and the
 * error text). */
void rlock_node_start(struct rlock_client *c,
                      struct rlock_node *node,
                      int64_t until_ms);
/* Does the I/O that poll says (revents) is possible, and goes on as far as that
 * allows. */
void rlock_node_io(struct rlock_client *c, struct rlock_node *node, short events);
void rlock_node_tick(struct rlock_client *c, struct rlock_node *node); /* time-outs */
bool rlock_node_is_under_way(const struct rlock_node *node);
bool rlock_node_is_ready(
    const struct rlock_node *node); /* up, and owes no answer that is late */
/* The events that poll has to wait for before I/O can continue. */
short rlock_node_events(const struct rlock_node *node);
/* send: what was put into the link, as far as that is possible now. read waits for
 * what comes, at most RLOCK_TICK_MS; drain does not. check: asks an UP node again for
 * its role, policy and clock. */
void rlock_node_send(struct rlock_client *c, struct rlock_node *node);
void rlock_node_read(struct rlock_client *c, struct rlock_node *node);
void rlock_node_drain(struct rlock_client *c, struct rlock_node *node);
void rlock_node_checked(struct rlock_client *c, struct rlock_node *node); /* well */
void rlock_node_check(struct rlock_client *c,
                      struct rlock_node *node,
                      int64_t until_ms);
/* Closes a connection or ends a try; nothing is sent. rlock_node_fail: with a reason.
 */
void rlock_node_close(struct rlock_node *node);
void rlock_node_fail(struct rlock_client *c, struct rlock_node *node, int code);
/* The program's hook is told of a try to connect; broke: of no more use. */
void rlock_node_tell_hook(struct rlock_client *c,
                          const struct rlock_node *node,
                          int code);
void rlock_node_broke(struct rlock_client *c, struct rlock_node *node, const char *why);
/* A fault with the reason for which the connection of a call ended. */
int rlock_fail_by_end(struct rlock_client *c, const struct rlock_node *node, int code);
void rlock_node_free(struct rlock_node *node);
/* The answers of INFO in a handshake or a check: rlock_info_field copies a value;
 * false: it has none. rlock_info_check: the server may be used, else the fault;
 * rlock_info_join: as a node of a quorum. */
bool rlock_info_field(const struct rlock_node *node,
                      const char *name,
                      char *buf,
                      size_t size);
int rlock_info_check(struct rlock_client *c, struct rlock_node *node);
int rlock_info_join(struct rlock_client *c, struct rlock_node *node);
/* rlock_handshake_put writes all commands of a handshake, or of a check;
 * rlock_handshake_read reads the answers: RLOCK_OK, a fault, or RLOCK_BUSY (the slot is
 * on another node; the address was changed). rlock_handshake_failure: code of a
 * connection that ended in the handshake, by the error that came before. */
void rlock_handshake_put(struct rlock_client *c, struct rlock_node *node);
int rlock_handshake_read(struct rlock_client *c, struct rlock_node *node);
int rlock_handshake_failure(struct rlock_client *c, struct rlock_node *node);
/* Quorum: the node that is the same server under another name and is up; NULL: none. */
const struct rlock_node *rlock_twin_of(const struct rlock_client *c,
                                       const struct rlock_node *node);
/* NULL if this build has TLS, else the reason. */
const char *rlock_tls_missing(void);
/* Begins and continues the TLS handshake on a connected socket: RLOCK_OK, RLOCK_BUSY
 * with what poll has to wait for, RLOCK_E_TLS, RLOCK_E_UNAVAILABLE. */
int rlock_tls_step(struct rlock_client *c, struct rlock_node *node);
short rlock_tls_events(const struct rlock_node *node);
/* Bytes through hiredis, never with a SIGPIPE. write: 0 or -1 as hiredis answers;
 * read: the number of bytes, 0 when there is none now, -1 with conn->errstr. */
int rlock_layer_write(redisContext *conn, const char *data, size_t n, bool *is_done);
ssize_t rlock_layer_read(redisContext *conn, char *bytes, size_t size);
/* Nodes (bits) that are up; rlock_ready_nodes: those that also owe no answers. */
unsigned rlock_up_nodes(const struct rlock_client *c);
unsigned rlock_ready_nodes(const struct rlock_client *c);
/* Cluster: puts the address of the next known node into nodes[0]. */
void rlock_next_seed(struct rlock_client *c);
/* Cluster: follows "MOVED slot host:port" or "ASK ..."; false: it is neither. The
 * node's connection is not to be used any more. */
bool rlock_place_follow(struct rlock_client *c,
                        struct rlock_node *node,
                        const char *error);
/* Cluster: the prefix has a hash tag, so all keys are in one slot. */
bool rlock_has_tag(const char *prefix);

/* ---- locate: Sentinels ---- */

/* Begins to ask the Sentinels where the primary is; a step connects to it then. The try
 * ends as that of rlock_node_start. */
void rlock_locate_start(struct rlock_client *c,
                        struct rlock_node *node,
                        int64_t until_ms);
void rlock_locate_step(struct rlock_client *c,
                       struct rlock_node *node,
                       int64_t limit_ms);

/* ---- gather: the begin of every call ---- */

/* Connects nodes that are not connected, until a majority is; slower nodes continue to
 * connect meanwhile. Before a take it repeats checks that are older than a second. */
struct rlock_gather {
    bool is_take;
    int64_t limit_ms; /* end of the call */
    bool has_begun, had_majority;
    size_t tries;        /* to connect */
    int64_t began_ms;    /* and time of the begin */
    int64_t majority_ms; /* a majority was there then; 0: not yet */
};

/* RLOCK_OK, the fault, or RLOCK_UNDER_WAY; rlock_gather waits. */
int rlock_gather_step(struct rlock_client *c, struct rlock_gather *g);
int rlock_gather(struct rlock_client *c, bool is_take, int64_t limit_ms);

/* ---- drive ---- */

/* The step wants to be called at that time. */
static inline void rlock_want(struct rlock_client *c, int64_t when_ms)
{
    c->want_ms = rlock_least(c->want_ms, when_ms);
}

/* Waits for I/O of the nodes, for the time that the steps want, or until c->cancel_fd
 * is readable. rlock_drive calls a step until it has its code, and waits in between. */
void rlock_await(struct rlock_client *c);
/* The same without waiting. rlock_awaited_events: what is waited for at a node; 0:
 * nothing. */
void rlock_io(struct rlock_client *c);
short rlock_awaited_events(const struct rlock_node *node);
/* The nodes of a client with their helpers: Sentinel, ears. Returns how many. */
size_t rlock_all_nodes(struct rlock_client *c, struct rlock_node **nodes);
int rlock_drive(struct rlock_client *c, int (*step)(void *op), void *op);

/* Commands on an UP node that are no script. rlock_link_begin with x and rlock_put*
 * come first; rlock_ask sends them, and returns the last answer, or NULL with the fault
 * in x.code. rlock_exchange_clear frees the answers. */
struct rlock_ask {
    struct rlock_client *c;
    size_t node;
    struct rlock_exchange x;
    int64_t until_ms;
};

const redisReply *rlock_ask(struct rlock_ask *a, int64_t until_ms);
/* The same in steps, and its end. */
void rlock_ask_send(struct rlock_ask *a, int64_t until_ms);
int rlock_ask_step(void *ask);
void rlock_ask_clear(struct rlock_ask *a);
/* A node's time to answer for a lease. */
int64_t rlock_node_ms(const struct rlock_client *c, uint32_t lease_ms);
/* Code of an error answer or an answer of a wrong type; its text is kept. */
int rlock_reply_code(struct rlock_client *c,
                     struct rlock_node *node,
                     const redisReply *reply);
bool rlock_is_error(const redisReply *reply, const char *word);
/* Takes the id of a call from the head of a script's answer; false: it is not there. */
bool rlock_cut_id(redisReply *reply, int64_t id);
/* True if the script ran outside its window, and so did nothing. */
bool rlock_is_late(const redisReply *reply);
/* rlock_reply_number: a number, as text or integer; false: not a number.
 * rlock_reply_token: a token; 0: not a token. */
bool rlock_reply_number(const redisReply *reply, int64_t *number);
int64_t rlock_reply_token(const redisReply *reply);

#endif
