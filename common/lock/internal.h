/* internal: the upper half of the lock library, not installed. The layers from the
 * bottom: those of connection.h and lock (the object, its names), round (one script on
 * all nodes), keep, renew, give, vote, take, wait, list, client, renewer; above them
 * lock_async. A file calls only files of lower layers. */
#ifndef LEDGERLOCK_LOCK_INTERNAL_H
#define LEDGERLOCK_LOCK_INTERNAL_H

#include <pthread.h>

#include "common/lock/connection.h"

/* ---- round: one script on every node, of which a majority decides; one server is a
 * majority of one. lock_async uses parts of it and of what follows. ---- */

struct ll_round {
    struct ll_client *c;
    enum lua_id script;
    unsigned allowed; /* bits: the nodes that may be asked */
    unsigned who;     /* the nodes that were asked */
    int64_t node_ms;  /* their time to answer */
    size_t keys;      /* keys in an answer, one character each */
    void (*fill)(struct ll_round *r, struct ll_node *node); /* see ll_eval */
    bool (*enough)(void *round);                            /* NULL: all of them */
    const void *arg;
    /* outcome: LL_OK with node->replies, or the fault */
    int codes[LL_NODES_MAX];
    unsigned answered;
    unsigned unanswered; /* an answer was lost: the script may have run before */
    unsigned whole;      /* the node did not know the script: it is sent in full */
};

struct ll_round ll_round_of(struct ll_client *c,
                            const struct ll_lock *l,
                            enum lua_id script,
                            void (*fill)(struct ll_round *r, struct ll_node *node),
                            const void *arg);
/* Runs the script. A node where it certainly did not run, or may have run without an
 * answer, is asked again within the time of the call: every script may run twice. */
void ll_round_run(struct ll_round *r);
/* Sends it to each of these nodes, even if they owe answers, and does not wait. */
void ll_round_tell(struct ll_round *r, unsigned who);
/* For `fill`: ll_eval begins a script call with its number of keys and arguments, which
 * ll_put* adds; ll_put_window adds the window of server time in which it may run. */
void ll_eval(struct ll_round *r, struct ll_node *node, size_t keys, size_t args);
void ll_put_window(struct ll_round *r, struct ll_node *node);
/* The characters that node i answered for the keys; NULL: no answer, or an invalid one.
 */
const char *ll_said(const struct ll_round *r, size_t i);
/* For `enough`: true if a majority says that every key is ours. */
bool ll_is_all_ours(void *round);
/* The fault of a round without a majority of answers. */
int ll_too_few(const struct ll_round *r);

/* ---- locks ---- */

/* One key of a lock. */
struct ll_slot {
    atomic_int code;      /* as ll_key_code tells */
    bool held;            /* granted and not released */
    unsigned char grants; /* nodes (bits) that granted it */
    unsigned char gone;   /* nodes (bits) that deleted it, or may have */
    int64_t busy_ms;
};

/* A lock in a renewer, from ll_renew until it is forgotten or its loss was told. The
 * renewer's mutex guards all of it. */
struct ll_renewal {
    _Atomic(struct ll_renewer *) renewer; /* NULL: not renewed */
    struct ll_lock *next, **link;         /* link NULL: not in the list */
    int64_t due_ms;                       /* time of the next renewal */
    int64_t stop_ms;                      /* max_hold: no renewal after this time */
    uint32_t stall_ms;
    int code; /* of the last try: LL_OK, or the fault */
};

struct ll_lock {
    struct ll_client *client;
    char nonce[LL_NONCE_HEX + 1];
    char mark[LL_NONCE_HEX + 2]; /* "nonce|": a value that begins with it is ours */
    char *nonce_copy;            /* may be NULL */
    bool is_forced;              /* a release of a holder that an operator saw: */
    const char *seen; /* by this whole value, "" for no string; NULL: by mark */
    size_t seen_len;
    int64_t token;
    _Atomic int64_t deadline_ms; /* local boot clock, drift taken off */
    _Atomic int64_t progress_ms; /* last ll_progress */
    atomic_bool lost;
    uint32_t lease_ms;
    struct ll_renewal renewal;
    struct ll_async_call *async_call;
    size_t n, granted;
    bool released;  /* a release was answered: release_code */
    bool releasing; /* a release was sent: no longer valid */
    bool uncertain; /* an acquire without an answer: may be held */
    int release_code;
    unsigned marks; /* a wait: number of busy keys to mark as waited for */
    char run_ids[LL_NODES_MAX][LL_RUN_ID_MAX]; /* the server processes that granted */
    char *names;                               /* prefixed names, one after the other */
    size_t *offsets;                           /* n + 1 */
    size_t *table;                             /* 2 * n: scratch */
    struct ll_slot *slots;
};

/* n keys of a lock, by index; index NULL: the first n. */
struct ll_span {
    struct ll_lock *l;
    const size_t *index;
    size_t n;
};

static inline size_t ll_span_key(const struct ll_span *s, size_t i)
{
    return s->index != NULL ? s->index[i] : i;
}

static inline struct ll_slot *ll_span_slot(const struct ll_span *s, size_t i)
{
    return &s->l->slots[ll_span_key(s, i)];
}

/* Puts the last token's key and the keys of a span. */
void ll_put_span(struct ll_text *t, const struct ll_span *s);
/* Copies the names with the prefix; every key is LL_BUSY. LL_OK, LL_E_INVAL (also for a
 * name given twice), LL_E_NOMEM. */
int ll_store_names(struct ll_lock *l, const struct ll_key *keys, size_t n);
void ll_free_names(struct ll_lock *l);
/* The prefixed name of key i. */
const char *ll_name(const struct ll_lock *l, size_t i, size_t *len);
void ll_put_name(struct ll_text *t, const struct ll_lock *l, size_t i);
/* No key is asked for or held any more. */
void ll_clear(struct ll_lock *l);
int ll_new_nonce(struct ll_lock *l);
/* Deadline of a lease that is asked for now, less the clock drift. */
int64_t ll_deadline(uint32_t lease_ms);
/* LL_E_INVAL if the lease is 0 or longer than a quorum allows; or if the mode is none
 * of the three. */
int ll_check_lease(const struct ll_lock *l, uint32_t lease_ms);
int ll_check_mode(const struct ll_lock *l, int mode);
/* True if the lock was not lost and its lease runs: nobody else can hold it. */
bool ll_was_valid(const struct ll_lock *l);
/* The next held key from i on; l->n when there is none. */
size_t ll_next_held(const struct ll_lock *l, size_t i);

/* ---- acquire ---- */

struct ll_take {
    struct ll_span *s;
    enum ll_mode mode;
    uint32_t lease_ms;
    int64_t floor;
    int64_t token; /* of the answer that was read; 0: nothing is granted */
};

void ll_fill_take(struct ll_round *r, struct ll_node *node);
/* Reads one server's answer to a take, ll_vote asks all servers: LL_OK, LL_PARTIAL or
 * LL_BUSY with the slots (code, busy_ms) and the token filled, or a fault. */
int ll_read_take(struct ll_client *c, struct ll_take *take, const redisReply *reply);
int ll_vote(struct ll_lock *l, enum ll_mode mode);
/* True if a script that ended with this fault may have stopped half-way. */
bool ll_is_half_done(int code);
/* ll_note_grants: marks the keys as held whose code says so. ll_drop_grants: marks
 * none. */
void ll_note_grants(struct ll_lock *l);
void ll_drop_grants(struct ll_lock *l);
/* A lock for a new acquire: its names, and a fresh nonce. */
int ll_prepare(struct ll_lock *l, const struct ll_key *keys, size_t n);
/* An acquire within the time of the present call. */
int ll_take_all(struct ll_lock *l,
                const struct ll_key *keys,
                size_t n,
                enum ll_mode mode,
                uint32_t lease_ms);

/* ---- extend ---- */

/* A part: one lock in a call that renews its held keys. */
struct ll_part {
    struct ll_lock *l;
    uint32_t ttl_ms;     /* 0: check only */
    int code;            /* LL_OK, or LL_LOST (see the codes of the keys) */
    int64_t left_ms;     /* the shortest, if ttl_ms is 0; -1: no node told */
    int64_t deadline_ms; /* for the renewer: of the lease that is asked for */
};

/* The parts of one call: at most LL_KEYS_MAX keys. */
struct ll_kept {
    struct ll_part *parts;
    size_t n, keys;
};

void ll_fill_keep(struct ll_round *r, struct ll_node *node);
/* ll_read_keep reads the answers, ll_keep asks the nodes that ll_gather has just found:
 * LL_OK if every part has its code, else the fault. */
int ll_read_keep(const struct ll_round *r, const struct ll_kept *call);
int ll_keep(struct ll_client *c, struct ll_part *parts, size_t n);
/* Marks a lock as lost, or as held until a deadline; returns code. */
int ll_note_kept(struct ll_lock *l, int code, int64_t deadline_ms);

/* ---- release ---- */

void ll_fill_give(struct ll_round *r, struct ll_node *node);
/* Indices of the held keys; of all keys if the acquire had no answer. */
size_t ll_pick(const struct ll_lock *l, size_t *index);
/* Reads the answers: the code of all keys together, which have theirs and are no longer
 * held, or the fault. */
int ll_read_give(const struct ll_round *r, const struct ll_span *s, bool was_valid);
/* Releases the keys of a lock that may be held, within the present call. */
int ll_give_all(struct ll_lock *l);
/* The token of a value "nonce|token"; 0: it is not one of ours. */
int64_t ll_value_token(const char *value, size_t len);

/* ---- renew: a renewal reads only those members of a lock that its thread does not
 * change before ll_renew_forget returns: names, nonce, held keys. ---- */

struct ll_renewer {
    struct ll_client *client; /* used by the renewing thread alone */
    struct ll_renew_options o;
    int timer_fd;
    bool has_thread;
    pthread_t thread;      /* that renews: ours, or the one in ll_renew_now */
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t idle;   /* a part is over */
    struct ll_lock *first;
    int64_t asleep_until_ms; /* 0: awake */
    bool closing;
    unsigned failures; /* tries in a row */
    /* Under way: ll_renew_forget waits for the end of the exchange, or of the lock's
     * own on_lost. The lock of a part that is over, or forgotten, is NULL. */
    struct ll_part parts[LL_KEYS_MAX];
    size_t part_ct;
    const struct ll_part *told; /* its on_lost runs; NULL: none, the exchange does */
};

/* Removes the lock from its renewer, if it has one; returns when no renewal of it is
 * under way. After that it is neither extended nor reported lost. */
void ll_renew_forget(struct ll_lock *l);
/* The calls below need the mutex. Sets the timer that the thread sleeps on; 0: never.
 */
void ll_renew_arm(const struct ll_renewer *r, int64_t when_ms);
/* Time at which ll_renew_step has something to do; INT64_MAX: no lock is renewed.
 * ll_renew_step reports a loss or renews the due locks. LL_OK, or the fault. */
int64_t ll_renew_next(struct ll_renewer *r);
int ll_renew_step(struct ll_renewer *r);

#endif
