/* lab_actor: a worker of a plain strategy: pull, lock, read, compute, write, unlock. */
#ifndef LEDGERLOCK_LAB_ACTOR_H
#define LEDGERLOCK_LAB_ACTOR_H

#include "common/lock/bare.h"
#include "common/lock/lock.h"
#include "worker/lab.h"

/* What an actor is sent to do. */
struct lab_errand {
    int64_t first, last; /* boxes */
    int steps;           /* ends after so many written; 0: when nothing is due */
    int tries;           /* ends after so many that came to nothing; 0: patient */
    int64_t patience_ms; /* ends when nobody wrote anything for so long */
    bool is_relayed;     /* its connections lead through the relays */
    enum lab_point stop_at;
};

struct lab_renewal;

/* All of one actor. */
struct lab_hand {
    const struct lab_strategy *strategy;
    struct lab_seat *seat;
    const char *postgres_url, *redis_url;
    int64_t lease_ms, seed;
    struct pg *pg;
    struct bare *redis;       /* the strategies of the articles */
    struct ll_client *client; /* those with our lock */
    struct ll_lock *lock;
    struct lab_renewal *renewal;
    int64_t box;
    char key[32];
    char value[48]; /* what we write into the key; fresh for each lock */
    char lease[16]; /* lease_ms as text */
    int64_t token;  /* 0: no fences */
    unsigned turns;
};

/* Forks an actor into a seat; it ends with the director. */
MUST_CHECK int lab_actor_start(struct lab *l,
                               struct lab_seat *seat,
                               const struct lab_errand *errand,
                               struct err *e);

/* Waits here if the director wants it. */
void lab_point(struct lab_hand *h, enum lab_point point);

/* One command to Redis over the actor's connection, which is made when there is none.
 */
struct bare_answer lab_ask(struct lab_hand *h, const char *const *words, size_t n);

#define LAB_ASK(h, ...)                                                                \
    lab_ask(h, (const char *const[]){__VA_ARGS__},                                     \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* One statement over the actor's connection. ERR_CONN closes it; the next makes a new
 * one, which is what a program does that reconnects by itself. */
MUST_CHECK int lab_sql(struct lab_hand *h,
                       enum sql_id id,
                       const struct pg_param *params,
                       size_t n,
                       struct pg_result **res);

/* The key is renewed from a thread of its own until lab_renew_stop. */
void lab_renew(struct lab_hand *h);
void lab_renew_stop(struct lab_hand *h);

#endif
