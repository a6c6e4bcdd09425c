/* operation: acquire, extend, release, and the wait for a lock, as state machines.
 * Not installed.
 *
 * An operation is filled in, or begun, and then its step is called until it has its
 * code, by rlock_drive or by the loop. Then it owns nothing any more; rlock_*_clear
 * ends an operation that is given up before. An operation must stay at its address. */
#ifndef LEDGERLOCK_LOCK_OPERATION_H
#define LEDGERLOCK_LOCK_OPERATION_H

#include "common/lock/internal.h"
#include "common/lock/lock_held.h"

/* ---- release ---- */

struct rlock_giving {
    struct rlock *l;
    int64_t limit_ms;
    enum rlock_stage stage;
    bool was_valid;
    struct rlock_gather gather;
    struct rlock_span span;
    size_t some; /* keys of the table that are released; 0: all that are held */
    size_t rest; /* keys that are still to be released, one by one */
    int code;    /* of those before */
    struct rlock_round round;
};

/* Releases the keys of a lock that may be held. */
int rlock_giving_step(void *giving);
void rlock_giving_clear(struct rlock_giving *g);
/* The refusal of a lock that cannot be released, or RLOCK_UNDER_WAY. */
int rlock_giving_begin(struct rlock_giving *g, struct rlock *l);
/* Writes the release behind an acquire that may be carried out, into its connection,
 * and does not wait: its keys do not stay locked by nobody. rlock_give_late: where it
 * was not answered in time; the connection is closed then. */
void rlock_tell_release(struct rlock *l);
void rlock_give_late(struct rlock *l);

/* ---- extend, verify ---- */

struct rlock_keeping {
    struct rlock *l;
    uint32_t lease_ms; /* 0: check only */
    bool is_end;       /* it is shortened */
    int64_t limit_ms;
    enum rlock_stage stage;
    int64_t deadline_ms;
    struct rlock_part part;
    struct rlock_kept kept;
    struct rlock_gather gather;
    struct rlock_round round;
};

int rlock_keeping_step(void *keeping);
void rlock_keeping_clear(struct rlock_keeping *k);
/* The refusal of a lock that is not held, or RLOCK_UNDER_WAY. */
int rlock_keeping_begin(struct rlock_keeping *k, struct rlock *l, uint32_t lease_ms);

/* ---- acquire ---- */

/* The answers of the nodes about the keys of one span. */
struct rlock_vote {
    struct rlock *l;
    enum rlock_mode mode;
    int64_t limit_ms;

    enum { RLOCK_UNBEGUN, RLOCK_ASKING, RLOCK_WRITING_BACK, RLOCK_NEXT } stage;

    /* a number of permits of a quorum: they are asked for one by one */
    size_t first, tried, taken, permit;
    struct rlock_gather gather; /* before the next of them */
    struct rlock_span span;
    struct rlock_take take;
    struct rlock_round round, back; /* the acquire, and the write-back */
    unsigned read;                  /* nodes (bits) whose answer was read */
    unsigned valid;                 /* of these: valid answers */
    unsigned far;                   /* of these: proposals that are too far ahead */
    unsigned voters;                /* of the valid ones: those whose votes count */
    int64_t proposals[RLOCK_NODES_MAX];
    int64_t token;
    bool is_unheard; /* a node did not answer the write-back */
    bool is_written_back;
};

static inline struct rlock_slot *rlock_vote_slot(const struct rlock_vote *v, size_t i)
{
    return rlock_span_slot(v->take.s, i);
}

/* Nodes (bits) that granted a key; whether they are a majority. */
unsigned rlock_granting(const struct rlock_vote *v, size_t i);
bool rlock_has_majority(const struct rlock_vote *v, size_t i);
/* The token is the highest proposal for the keys with a majority; true if all keys have
 * one. settled: a majority proposed it, for each of these keys. */
bool rlock_choose_token(struct rlock_vote *v);
bool rlock_is_settled(const struct rlock_vote *v);
/* Nodes (bits) that proposed the token; the others get it, in the round `back`. */
unsigned rlock_agreeing(const struct rlock_vote *v);
void rlock_begin_write_back(struct rlock_vote *v);
void rlock_read_write_back(struct rlock_vote *v);
/* Asks all servers: RLOCK_OK, RLOCK_PARTIAL or RLOCK_BUSY with the slots (code,
 * busy_ms) and the token filled, or a fault. */
int rlock_vote_step(struct rlock_vote *v);
void rlock_vote_clear(struct rlock_vote *v);

struct rlock_taking {
    struct rlock *l;
    enum rlock_mode mode;
    uint32_t lease_ms;
    int64_t limit_ms;

    enum {
        RLOCK_TAKING_NODES,
        RLOCK_VOTING,
        RLOCK_REPLICATING,
        RLOCK_CONCLUDING,
        RLOCK_GIVING_BACK
    } stage;

    int code; /* of the vote, or of what went wrong since */
    char words[RLOCK_ERROR_MAX];
    struct rlock_gather gather;
    struct rlock_ask wait; /* for replicas */

    union {
        struct rlock_vote vote;
        struct rlock_giving giving; /* of what was taken before a fault */
    } of;
};

/* Acquires the keys of a lock that was prepared; l, mode and lease_ms are filled in. */
void rlock_taking_begin(struct rlock_taking *t, int64_t limit_ms);
int rlock_taking_step(struct rlock_taking *t);
/* Ends it before its answer; false: it goes on, since it gives back what it took. */
bool rlock_taking_cancel(struct rlock_taking *t);
void rlock_taking_clear(struct rlock_taking *t);

/* ---- the wait for a lock ---- */

enum {
    RLOCK_GRAIN_MS = 100 /* an idle server (hz 10) ends a BLPOP up to this much later */
};

enum rlock_hint {
    RLOCK_DEAF, /* listens no more, or not yet */
    RLOCK_LISTENING,
    RLOCK_WOKEN,
    RLOCK_REFUSED /* the server refuses BLPOP */
};

/* A waiter that wants to be woken. l, mode and until_ms are filled in. */
struct rlock_listener {
    struct rlock *l;
    enum rlock_mode mode;
    int64_t until_ms;
    enum rlock_hint state;
    bool is_heard; /* by the BLPOP under way */
    struct rlock_listener *next, **link;
};

/* False: it cannot listen now. leave: it has ended before. */
bool rlock_ears_join(struct rlock_client *c, struct rlock_listener *w);
void rlock_ears_leave(struct rlock_client *c, struct rlock_listener *w);
void rlock_ears_step(struct rlock_client *c);
void rlock_ears_close(struct rlock_client *c);

struct rlock_waiting {
    struct rlock *l;
    enum rlock_mode mode;
    uint32_t lease_ms;
    int cancel_fd;     /* -1: none */
    bool is_cancelled; /* by rlock_cancel */
    bool is_single;    /* one attempt, which has the time of any call */
    bool is_again;     /* not the first attempt */
    bool has_hints;    /* a release may wake it */
    int64_t end_ms;    /* of the wait */
    int64_t most_ms;   /* of the next pause without a wake-up */
    int64_t pause_until_ms;
    int before; /* code of the attempt before, */
    int code;   /* and of the last one */

    enum {
        RLOCK_BETWEEN,
        RLOCK_RELEASING_EARLIER,
        RLOCK_ATTEMPTING,
        RLOCK_PAUSING
    } stage;
    struct rlock_listener listener;
    struct rlock_taking taking; /* of.giving also releases what an attempt may hold */
};

/* Refuses wrong arguments and a lock that is held, and copies the keys; else
 * RLOCK_UNDER_WAY. wait_ms 0: a single attempt. */
int rlock_waiting_begin(struct rlock_waiting *w,
                        struct rlock *l,
                        const struct rlock_key *keys,
                        size_t n,
                        enum rlock_mode mode,
                        uint32_t lease_ms);
/* Gives it time: from now on. */
void rlock_waiting_allow(struct rlock_waiting *w, uint32_t wait_ms, int cancel_fd);
int rlock_waiting_step(void *waiting);
void rlock_waiting_clear(struct rlock_waiting *w);

/* ---- for operators ---- */

/* A key of a server, whose texts stand here, but for the value. */
struct rlock_described {
    struct rlock_held held;
    char holder[48];
    char text[RLOCK_TEXT_MAX + 1];
};

/* The token of a value; 0: it is none of ours. */
int64_t rlock_token_of(const char *value, size_t value_len);
/* answer: the value, and the time that it has left. False: the key is gone. */
bool rlock_describe(struct rlock_described *d, redisReply *const *answer);

/* ---- the loop ---- */

struct rlock_op {
    struct rlock *l;
    struct rlock_op *next, **link; /* under way, or ended */
    enum rlock_event_kind kind;
    int (*step)(void *of);
    void (*done)(struct rlock *l, int code, void *arg);
    void *arg;
    int64_t began_us;
    size_t keys;
    bool is_over;
    int code; /* and its text, once it is over */
    char words[RLOCK_ERROR_MAX];

    union {
        struct rlock_waiting waiting;
        struct rlock_keeping keeping;
        struct rlock_giving giving;
    } of;
};

/* Opens the loop of a client, if it has none yet. RLOCK_OK or RLOCK_E_NOMEM. end: with
 * what is under way. */
int rlock_loop_open(struct rlock_client *c);
void rlock_loop_end(struct rlock_client *c);
/* Renewers that the loop steps. */
void rlock_loop_join(struct rlock_client *c, struct rlock_renewer *r);
void rlock_loop_leave(struct rlock_renewer *r);

/* Begins an operation, of which the lock, the kind and what is asked for are filled in;
 * code: RLOCK_UNDER_WAY, or the code that is known, of which a fault refuses it. */
int rlock_loop_add(struct rlock_op *op, int code, int (*step)(void *of));
/* Takes it out, whatever it waits for. */
void rlock_loop_drop(struct rlock_op *op);

#endif
