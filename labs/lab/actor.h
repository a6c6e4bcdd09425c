/* actor: a worker of the laboratory: pull, lock, read, compute, write, unlock. */
#ifndef LEDGERLOCK_LAB_ACTOR_H
#define LEDGERLOCK_LAB_ACTOR_H

#include "common/lock/lock.h"
#include "labs/bench/bare.h"
#include "labs/lab/lab.h"

/* The work that an actor is sent to do. */
struct lab_task {
    int64_t first, last; /* items */
    int steps;           /* ends after so many written; 0: when nothing is due */
    int tries;           /* ends after so many that came to nothing; 0: never */
    int64_t give_up_ms;  /* ends when nobody wrote anything for so long */
    bool is_proxied;     /* its connections lead through the proxies */
    enum lab_point stop_at;
};

struct lab_renewal;

/* All of one actor. */
struct lab_actor {
    const struct lab_strategy *strategy;
    struct lab_seat *seat;
    const char *postgres_url, *redis_url;
    int64_t lease_ms, seed;
    struct pg *pg;
    struct bare *redis[LAB_NODES]; /* the strategies that are plain commands */
    struct rlock_client *client;   /* those with our lock */
    struct rlock *lock;
    struct lab_renewal *renewal;
    int64_t valid_until_ms; /* Redlock: by our own clock */
    int64_t item, pulled;   /* and the period of it that was pulled */
    char key[32];
    char value[48]; /* what is written into the key; fresh for each lock */
    char lease[16]; /* lease_ms as text */
    int64_t token;  /* 0: no fences */
    unsigned locks; /* taken so far */
};

/* Forks an actor into a seat; it ends with the director. */
void lab_actor_start(struct lab *l, struct lab_seat *seat, const struct lab_task *task);

/* Waits here if the director wants it. */
void lab_point(struct lab_actor *a, enum lab_point point);

/* One command to a node of Redis, over the actor's connection, which is made when there
 * is none. */
struct bare_answer
lab_ask_node(struct lab_actor *a, size_t node, const char *const *words, size_t n);

#define LAB_ASK_NODE(a, node, ...)                                                     \
    lab_ask_node(a, node, (const char *const[]){__VA_ARGS__},                          \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
#define LAB_ASK(a, ...) LAB_ASK_NODE(a, 0, __VA_ARGS__)

/* One statement over the actor's connection. ERR_CONN closes it; the next makes a new
 * one, which is what a program does that reconnects by itself. */
MUST_CHECK int lab_sql(struct lab_actor *a,
                       const struct sql_text *sql,
                       const struct pg_param *params,
                       size_t n,
                       struct pg_result **res);

/* The key is renewed from a thread of its own until lab_renew_stop. */
void lab_renew(struct lab_actor *a);
void lab_renew_stop(struct lab_actor *a);

/* Redlock as it is published: redlock.c. */
enum lab_answer lab_redlock_lock(struct lab_actor *a);
bool lab_redlock_unlock(struct lab_actor *a);
bool lab_redlock_check(struct lab_actor *a);

/* Deletes the key on a node if it has our value. */
struct bare_answer lab_unlock_node(struct lab_actor *a, size_t node);

#endif
