/* lab_server: the private Redis servers of a cell, what stands in front of them, and
 * what can be done to them. */
#ifndef LEDGERLOCK_LAB_SERVER_H
#define LEDGERLOCK_LAB_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "worker/lab_relay.h"

enum { LAB_URL = 512, LAB_PATH = 104 };

/* One redis-server of ours on a Unix socket, without persistence. */
struct lab_redis {
    pid_t pid; /* 0: not running */
    char sock[LAB_PATH];
    char url[LAB_URL];
    char clock[LAB_PATH]; /* file that moves its clock; "": cannot be moved */
    int port;             /* of 127.0.0.1, for its replica; 0: none */
};

struct lab_servers {
    const char *program; /* redis-server */
    const char *shim;    /* moves clocks; NULL: they cannot be moved */
    const char *pidfile; /* of a PostgreSQL that somebody starts again; NULL: none */
    char dir[LAB_PATH];  /* folder of all sockets */
    struct lab_redis redis, replica;
    struct lab_relay to_redis, to_postgres, to_primary;
    uint64_t seed;           /* of the liar */
    pid_t liar;              /* 0: not running */
    char redis_url[LAB_URL]; /* where Redis is at present */
    char redis_via[LAB_URL]; /* the same through a relay */
};

/* The folder, and Redis in it; with_replica: and one that copies it through a relay;
 * lying: a program that answers at random in its place. */
MUST_CHECK int
lab_servers_open(struct lab_servers *s, bool with_replica, bool lying, struct err *e);
void lab_servers_close(struct lab_servers *s);

/* Honest again, empty: for what follows a liar. */
MUST_CHECK int lab_servers_tell_truth(struct lab_servers *s, struct err *e);

/* ---- faults; each looks that it happened ---- */

MUST_CHECK int lab_flush(struct lab_servers *s, struct err *e);
MUST_CHECK int lab_restart_empty(struct lab_servers *s, struct err *e);

/* The link to the replica is frozen first (what is written from then on does not reach
 * it); then the primary is killed and the replica promoted. */
MUST_CHECK int lab_freeze_replica(struct lab_servers *s, struct err *e);
MUST_CHECK int lab_promote(struct lab_servers *s, struct err *e);

/* The clock of Redis jumps an hour ahead. */
MUST_CHECK int lab_jump(struct lab_servers *s, struct err *e);

/* Crashes PostgreSQL (no shutdown) and waits for its successor to take connections. */
MUST_CHECK int
lab_crash_postgres(struct lab_servers *s, const char *url, struct err *e);

/* ---- looking ---- */

/* Keys with our prefix that have no end; -1: Redis cannot be asked. */
int64_t lab_stuck_keys(const struct lab_servers *s);

/* Milliseconds that a key has left: -1 no end, -2 not there, -3 cannot be asked. */
int64_t lab_key_left(const struct lab_servers *s, const char *key);

/* A process that answers Redis commands at random, granting to everybody in the end.
 * Listens on the socket; returns its pid, -1 on failure. */
pid_t lab_liar_start(const char *sock, uint64_t seed);

#endif
