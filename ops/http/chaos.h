/* chaos: faults that a person starts from the page (run --allow-chaos): a worker dies
 * or stands still, Redis forgets or is silent, a row is held. One fault at a time, each
 * on a thread of its own, which then waits until the pool is at work again and notes
 * how long that took.
 *
 *   chaos.c         the thread, the list of faults
 *   chaos_faults.c  what each fault does
 *   chaos_page.c    POST, and the buttons as a page of their own */
#ifndef LEDGERLOCK_CHAOS_H
#define LEDGERLOCK_CHAOS_H

#include <microhttpd.h>

#include "ops/http/http.h"

enum { CHAOS_TOKEN = 33, CHAOS_KEPT = 8 };

/* A fault that was started. Written by its thread, under the mutex of the page. */
struct chaos_fault {
    const struct chaos_action *action; /* NULL: none is here */
    char what[200];                    /* the worker, the key, or why it failed */
    int64_t at_unix_ms;
    int64_t lasts_ms;     /* by itself */
    int64_t recovered_ms; /* chaos.c, recovered_ms(); -1: not yet */
    bool is_over;
};

/* A fault as its functions see it. */
struct chaos_run {
    const struct companion_order *order;
    char what[200];
    int64_t lasts_ms;
    int64_t user;             /* whose row is held */
    size_t slot;              /* of the worker, */
    pid_t pid;                /* and its process; 0: the fault is none of a worker's */
    size_t incidents;         /* of the timeline before it */
    int64_t begun_ms, rounds; /* rounds: of the workers when it ended */
    struct pg *pg;
};

/* One button. `end` may be NULL. */
struct chaos_action {
    const char *name, *title, *sentence;
    bool breaks_plain; /* workers under a plain lock charge twice after it */
    int (*begin)(struct chaos_run *r, struct err *e);
    void (*end)(struct chaos_run *r);
};

extern const struct chaos_action chaos_actions[];
extern const size_t chaos_action_ct;

struct chaos {
    struct http *h;
    char token[CHAOS_TOKEN];
    pthread_cond_t wanted_came;
    const struct chaos_action *wanted; /* or under way; NULL: none */
    struct chaos_fault faults[CHAOS_KEPT];
    size_t next; /* in faults, which is a ring */
};

/* Starts a fault; false: another one is under way. */
bool chaos_start(struct chaos *c, const struct chaos_action *action);

#endif
