/* flights_inside: what flights.c and settle.c share. */
#ifndef LEDGERLOCK_FLIGHTS_INSIDE_H
#define LEDGERLOCK_FLIGHTS_INSIDE_H

#include "worker/batch/batch.h"
#include "worker/jobs/calls.h"

enum {
    SETTLE_MAX = 500, /* answers of one transaction */
    SETTLE_MS = 20,   /* between two transactions that are not full */
    TROUBLE_CT = 10   /* answers in a row that decide nothing: the gateway is sick */
};

/* The calls that one batch has sent. */
struct flight {
    struct rlock *lock; /* NULL: without locks */
    int64_t token;
    int64_t extend_ms; /* when its lock is extended next; 0: it is lost */
    size_t calls;      /* that are not settled */
    unsigned short of_key[RLOCK_KEYS_MAX]; /* of these, by the keys of the lock */
    struct flight *next;
};

/* A call, until its answer is settled. */
struct flown {
    struct flight *flight;
    int64_t payment;
    size_t key;       /* of its user, in the lock */
    bool is_charge;   /* is settled in a transaction without others */
    int64_t calls;    /* with this one */
    int64_t asked_ms; /* before it began, money was last asked for */
    int64_t end_ms; /* from then on its row is due again, and the answer is nobody's */
    struct gateway_answer answer;
    struct flown *next;
};

struct flights {
    struct calls *calls;
    struct flight *first;
    struct flown *answered; /* the newest first; last those that could not be settled */
    size_t under_way, answered_ct;
    int64_t settled_ms, sent_ms;
    int64_t second_ms;   /* begin of the second in which so many calls */
    size_t in_second;    /* were begun */
    unsigned in_trouble; /* answers in a row that decide nothing */
    bool is_told;        /* a failure to settle was */
};

/* Then the gateway is spared. */
static inline bool flights_is_sick(const struct flights *f)
{
    return f->in_trouble >= TROUBLE_CT;
}

/* Settles what was answered, and gives back the users of the calls that are settled, or
 * whose rows are due again. After an error that one of them may have caused, one alone:
 * the others come next. */
void flights_settle(struct session *s);

#endif
