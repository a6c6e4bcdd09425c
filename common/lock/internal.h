/* internal: the upper half of the lock library, not installed. The layers from the
 * bottom: those of connection.h and lock (the object, its names), round (one script on
 * all nodes), answer, grant, heal, keep, heap, due, renew, give, write_back, vote,
 * take, ears (wake-ups), wait, loop, begin (event loops), some, held, operators,
 * client, renewer. A file calls only files of lower layers. */
#ifndef LEDGERLOCK_LOCK_INTERNAL_H
#define LEDGERLOCK_LOCK_INTERNAL_H

#include <pthread.h>

#include "common/lock/connection.h"

/* ---- round: one script on every node, of which a majority decides; one server is a
 * majority of one. ---- */

/* The script on one node. */
struct rlock_call {
    struct rlock_exchange x; /* of the present try */
    int64_t sent_ms, deadline_ms;
    int64_t id;    /* of the try: its answer begins with it */
    unsigned ends; /* of the node when it was sent: the connection is the same */
    int tries;     /* that are over */
    bool is_asked;
    struct rlock_gather again; /* one server: it is connected before another try */
    int code; /* RLOCK_UNDER_WAY, RLOCK_OK with an answer in x, or the fault */
};

/* Of an operation: not begun; nodes are connected; its script is called. */
enum rlock_stage { RLOCK_RESTING, RLOCK_GATHERING, RLOCK_CALLING };

struct rlock_round {
    struct rlock_client *c;
    enum lua_id script;
    unsigned allowed; /* bits: the nodes that may be asked */
    unsigned who;     /* the nodes that were asked */
    int64_t node_ms;  /* their time to answer */
    int64_t limit_ms; /* end of the call */
    size_t keys;      /* keys in an answer, one character each */
    void (*fill)(struct rlock_round *r, struct rlock_node *node); /* see rlock_eval */
    bool (*enough)(void *round); /* NULL: all of them */
    const void *arg;
    bool is_urgent; /* its time is short: a slow answer need not be a dead server's */
    bool has_begun;
    bool has_asked; /* cluster: a command was sent behind ASKING */
    /* outcome */
    struct rlock_call calls[RLOCK_NODES_MAX];
    unsigned answered;
    unsigned unanswered; /* an answer was lost: the script may have run before */
    unsigned whole;      /* the node did not know the script: it is sent in full */
};

struct rlock_round rlock_round_of(struct rlock_client *c,
                                  const struct rlock *l,
                                  enum lua_id script,
                                  int64_t limit_ms,
                                  void (*fill)(struct rlock_round *r,
                                               struct rlock_node *node),
                                  const void *arg);
/* Runs the script. A node where it certainly did not run, or may have run without an
 * answer, is asked again within the time of the call: every script may run twice.
 * rlock_round_step is its step. rlock_round_clear frees the answers, and must be called
 * before the round goes. */
void rlock_round_run(struct rlock_round *r);
int rlock_round_step(void *round);
void rlock_round_clear(struct rlock_round *r);
/* A single server: the same once more, after what connects it. rlock_is_apart: the keys
 * of the call are in two places, since their slot moves: each can be asked for by
 * itself.
 */
void rlock_round_again(struct rlock_round *r);
bool rlock_is_apart(const struct rlock_round *r);
/* Sends it to each of these nodes, even if they owe answers, and does not wait. */
void rlock_round_tell(struct rlock_round *r, unsigned who);
/* For `fill`: rlock_eval begins a script call with its number of keys and arguments,
 * which rlock_put* adds; rlock_put_window adds the window of server time in which it
 * may run. */
void rlock_eval(struct rlock_round *r,
                struct rlock_node *node,
                size_t keys,
                size_t args);
void rlock_put_window(struct rlock_round *r, struct rlock_node *node);
/* The answer of node i; NULL: none. rlock_said: the characters that it answered for the
 * keys; NULL: no answer, or an invalid one. */
const redisReply *rlock_answer(const struct rlock_round *r, size_t i);
const char *rlock_said(const struct rlock_round *r, size_t i);
/* For `enough`: true if a majority says that every key is ours. */
bool rlock_is_all_ours(void *round);
/* The fault of a round without a majority of answers. */
int rlock_too_few(const struct rlock_round *r);

/* ---- locks ---- */

/* One key of a lock. */
struct rlock_slot {
    atomic_int code;      /* as rlock_key_code tells */
    bool held;            /* granted and not released */
    unsigned char grants; /* nodes (bits) that granted it */
    unsigned char gone;   /* nodes (bits) that deleted it, or may have */
    int64_t busy_ms;
};

/* Of a lock in a renewer: in a heap, in the call under way, or lost: its on_lost is to
 * be called, or runs. */
enum rlock_place {
    RLOCK_NOWHERE,
    RLOCK_WAITING,
    RLOCK_URGENT,
    RLOCK_CALLED,
    RLOCK_UNTOLD,
    RLOCK_TOLD
};

/* A lock in a renewer, from rlock_renew until it is forgotten or its loss was told. The
 * renewer's mutex guards all of it. */
struct rlock_renewal {
    _Atomic(struct rlock_renewer *) renewer; /* NULL: not renewed */
    enum rlock_place place;
    size_t at;                  /* index in its heap */
    struct rlock *next, **link; /* RLOCK_UNTOLD: in the queue */
    int64_t due_ms;             /* time of the next renewal */
    int64_t stop_ms;            /* max_hold: no renewal after this time */
    uint32_t stall_ms;
    int code; /* of the last try: RLOCK_OK, or the fault; untold: of on_lost */
};

struct rlock {
    struct rlock_client *client;
    char nonce[RLOCK_NONCE_HEX + 1];
    char mark[RLOCK_NONCE_HEX + 2]; /* "nonce|": a value that begins with it is ours */
    char *nonce_copy;               /* may be NULL */
    char *text;                     /* "|=" and the caller's text; NULL: none */
    bool is_forced;                 /* a release of a holder that an operator saw: */
    const char *seen; /* by this whole value, "" for no string; NULL: by mark */
    size_t seen_len;
    int64_t token;
    _Atomic int64_t deadline_ms; /* local boot clock, drift taken off */
    _Atomic int64_t progress_ms; /* last rlock_progress */
    atomic_bool lost;
    uint32_t lease_ms;
    struct rlock_renewal renewal;
    struct rlock_op *op; /* of the loop, under way; NULL: none */
    size_t n, granted;
    bool released;  /* a release was answered: release_code */
    bool releasing; /* a release was sent: no longer valid */
    bool is_taking; /* an acquire is under way: not valid yet */
    bool uncertain; /* an acquire without an answer: may be held */
    int release_code;
    unsigned marks; /* a wait: number of busy keys to mark as waited for, */
    bool is_heir;   /* and its own are taken as such, since others may wait, too */
    char run_ids[RLOCK_NODES_MAX]
                [RLOCK_RUN_ID_MAX]; /* the server processes that granted */
    char *names;                    /* prefixed names, one after the other */
    size_t *offsets;                /* n + 1 */
    size_t *table;                  /* 2 * n: scratch */
    struct rlock_slot *slots;
};

/* n keys of a lock, by index; index NULL: the first n. */
struct rlock_span {
    struct rlock *l;
    const size_t *index;
    size_t n;
    bool is_apart; /* a call has no other key than one of these */
};

static inline size_t rlock_span_key(const struct rlock_span *s, size_t i)
{
    return s->index != NULL ? s->index[i] : i;
}

static inline struct rlock_slot *rlock_span_slot(const struct rlock_span *s, size_t i)
{
    return &s->l->slots[rlock_span_key(s, i)];
}

/* Puts the keys of a span. */
void rlock_put_span(struct rlock_text *t, const struct rlock_span *s);
/* Copies the names with the prefix; every key is RLOCK_BUSY. RLOCK_OK, RLOCK_E_INVAL
 * (also for a name given twice), RLOCK_E_NOMEM. */
int rlock_store_names(struct rlock *l, const struct rlock_key *keys, size_t n);
void rlock_free_names(struct rlock *l);
void rlock_free_memory(struct rlock *l);
/* The prefixed name of key i. */
const char *rlock_name(const struct rlock *l, size_t i, size_t *len);
void rlock_put_name(struct rlock_text *t, const struct rlock *l, size_t i);

/* The name of the list for the wake-ups of key i, without an end; returns its length.
 */
enum { RLOCK_WAKE_NAME = RLOCK_PREFIX_MAX + RLOCK_KEY_MAX + 8 };

enum { RLOCK_WAKE_KEYS = 16 }; /* most keys that a waiter listens for */

size_t rlock_wake_name(const struct rlock *l, size_t i, char name[RLOCK_WAKE_NAME]);
/* The end of the values of its keys, behind the token; and a whole value. */
const char *rlock_text_of(const struct rlock *l);
void rlock_put_value(struct rlock_text *t, const struct rlock *l, int64_t token);
/* No key is asked for or held any more. */
void rlock_clear(struct rlock *l);
int rlock_new_nonce(struct rlock *l);
/* Deadline of a lease that is asked for now, less the clock drift. */
int64_t rlock_deadline(uint32_t lease_ms);
/* RLOCK_E_INVAL if the lease is 0 or longer than a quorum allows; or if there is no
 * such mode for n keys. */
int rlock_check_lease(const struct rlock *l, uint32_t lease_ms);
int rlock_check_mode(const struct rlock *l, int mode, size_t n);

/* How many keys a mode from RLOCK_ONE on asks for. */
static inline size_t rlock_wanted(enum rlock_mode mode)
{
    return (size_t)mode - RLOCK_ONE + 1;
}

/* RLOCK_E_INVAL while a call of the loop is under way for the lock. */
int rlock_check_op(const struct rlock *l);
/* True if the lock was not lost and its lease runs: nobody else can hold it. */
bool rlock_was_valid(const struct rlock *l);
/* The next held key from i on; l->n when there is none. */
size_t rlock_next_held(const struct rlock *l, size_t i);

/* ---- acquire ---- */

struct rlock_take {
    struct rlock_span *s;
    enum rlock_mode mode;
    uint32_t lease_ms;
    int64_t floor;
    int64_t token; /* of the answer that was read; 0: nothing is granted */
};

void rlock_fill_take(struct rlock_round *r, struct rlock_node *node);
/* Reads one server's answer to a take: RLOCK_OK, RLOCK_PARTIAL or RLOCK_BUSY with the
 * slots (code, busy_ms) and the token filled, or a fault. */
int rlock_read_take(struct rlock_client *c,
                    struct rlock_node *node,
                    struct rlock_take *take,
                    const redisReply *reply);
/* True if a script that ended with this fault may have stopped half-way. */
bool rlock_is_half_done(int code);
/* rlock_note_grants: marks the keys as held whose code says so. rlock_drop_grants:
 * marks none. */
void rlock_note_grants(struct rlock *l);
void rlock_drop_grants(struct rlock *l);
/* A lock for a new acquire: its names, and a fresh nonce. rlock_prepare_again: with the
 * same names. */
int rlock_prepare(struct rlock *l, const struct rlock_key *keys, size_t n);
int rlock_prepare_again(struct rlock *l);

/* ---- extend ---- */

/* A part: one lock in a call that renews its held keys. */
struct rlock_part {
    struct rlock *l;     /* NULL: it left its renewer, which has no thread */
    size_t keys;         /* of it, in the command that was sent last */
    uint32_t ttl_ms;     /* 0: check only */
    bool is_end;         /* ttl_ms is the most that is left */
    int code;            /* RLOCK_OK, or RLOCK_LOST (see the codes of the keys) */
    int64_t left_ms;     /* the shortest, if ttl_ms is 0; -1: no node told */
    int64_t deadline_ms; /* for the renewer: of the lease that is asked for */
};

/* The parts of one call: at most RLOCK_KEYS_MAX keys. */
struct rlock_kept {
    struct rlock_part *parts;
    size_t n, keys;
    bool is_apart;                 /* the keys are asked for one by one: */
    size_t at;                     /* this one, counted over all parts; */
    char opinions[RLOCK_KEYS_MAX]; /* of those before, and the shortest time */
    int64_t left_ms;               /* that one of them has left */
};

void rlock_fill_keep(struct rlock_round *r, struct rlock_node *node);
/* rlock_keep_round is the round of a call, and counts its keys; rlock_keep_step makes
 * it; rlock_read_keep reads the answers: RLOCK_OK if every part has its code, else the
 * fault. */
int rlock_keep_step(struct rlock_round *r, struct rlock_kept *call);
int rlock_read_keep(const struct rlock_round *r, const struct rlock_kept *call);
struct rlock_round
rlock_keep_round(struct rlock_client *c, struct rlock_kept *call, int64_t limit_ms);
/* The keys of a part, which begin at `at` in the answers, go back to nodes that lost
 * them. */
void rlock_heal(const struct rlock_round *kept,
                const struct rlock_part *part,
                size_t at);
/* Marks a lock as lost, or as held until a deadline; returns code. */
int rlock_note_kept(struct rlock *l, int code, int64_t deadline_ms);

/* ---- release ---- */

void rlock_fill_give(struct rlock_round *r, struct rlock_node *node);
/* Indices of the held keys; of all keys if the acquire had no answer. */
size_t rlock_pick(const struct rlock *l, size_t *index);
/* Reads the answers: the code of all keys together, which have theirs and are no longer
 * held, or the fault. */
int rlock_read_give(const struct rlock_round *r,
                    const struct rlock_span *s,
                    bool was_valid);

/* Removes the lock from its renewer, if it has one; returns when no renewal of it is
 * under way in a thread. After that it is neither extended nor reported lost. */
void rlock_renew_forget(struct rlock *l);

#endif
