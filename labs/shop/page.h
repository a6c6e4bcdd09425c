/* page: the page of the demonstration, by a process beside the shop: both verdicts, and
 * buttons that start a fault: a worker of a pool dies or stands still, Redis forgets or
 * is silent, a row is held. Faults come one at a time; then the process waits until the
 * pool has caught up, and notes how long that took. The workers of the pool must be
 * processes that this one sees and may signal.
 *
 *   page.c   the process, who may ask, the answers
 *   chaos.c  the thread of the faults
 *   hits.c   what each fault does to the pool (to the plain side: faults.c) */
#ifndef LEDGERLOCK_SHOP_PAGE_H
#define LEDGERLOCK_SHOP_PAGE_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>

#include "labs/shop/shop.h"

enum { PAGE_TOKEN = 33, FAULTS_KEPT = 8, FAULT_WHAT = 200 };

/* A fault as its functions see it. */
struct hit {
    const struct config *config;
    char what[FAULT_WHAT]; /* the worker, the key, or why it failed */
    int64_t lasts_ms;      /* by itself */
    int64_t user;          /* whose row is held */
    pid_t pid;             /* of the worker; 0: the fault is none of a worker's */
    char title[32];        /* and the name of that process, "billing:0", */
    char pool[48];         /* its pool and its slot */
    int64_t slot;
    struct pg *pg; /* holds the row */
};

/* A button. `end` may be NULL. */
struct action {
    const char *name, *title, *sentence;
    bool breaks_plain; /* workers under a plain lock charge twice after it */
    bool of_gateway;   /* it is there if a gateway is set */
    int (*begin)(struct hit *h, struct pg *pg, struct err *e);
    void (*end)(struct hit *h);
};

extern const struct action actions[];
extern const size_t action_ct;

/* A fault that was started. */
struct fault {
    const struct action *action; /* NULL: none is here */
    char what[FAULT_WHAT];
    int64_t at_unix_ms, lasts_ms;
    int64_t recovered_ms; /* from its begin until the pool had caught up; -1: not yet */
    bool is_over;
};

struct page {
    const struct config *config;
    char token[PAGE_TOKEN];
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t wanted_came;
    const struct action *wanted; /* or under way; NULL: none */
    struct hit *hit;             /* of a fault that lasts; NULL: none does */
    struct fault faults[FAULTS_KEPT];
    size_t next;       /* in faults, which is a ring */
    json_t *tables;    /* as view_read_tables has them, "plain", and "cards" as
                          cards_count has them; NULL: never read */
    int64_t tables_ms; /* when that was (clk_ms) */
    char trouble[300]; /* why they were not read again; "" */
};

/* ---- page.c ---- */

/* The life of the process, which answers on the socket, until it gets TERM. */
void page_run(const struct config *c, int fd) __attribute__((noreturn));

/* ---- chaos.c ---- */

/* Makes the token and starts the thread. */
MUST_CHECK int chaos_open(struct page *p, struct err *e);

/* Actions and faults; the mutex is held. */
void chaos_document(const struct page *p, json_t *doc);

/* Starts a fault; false: another one is under way. */
bool chaos_start(struct page *p, const struct action *action);

/* ---- hits.c ---- */

/* The worker goes on, if it is there. */
void hits_thaw(struct hit *h);

/* Workers that a process of the page before left standing still go on. */
MUST_CHECK int hits_wake(struct pg *pg, struct err *e);

/* The gateway answers. */
void hits_answer(struct hit *h);

#endif
