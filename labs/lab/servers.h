/* servers: the private Redis servers of a cell, what stands in front of them, and what
 * can be done to them.
 *
 * There is one server, or three for the strategies that want a majority. Of three, A
 * (the actor that holds the lock when the fault comes) reaches two, and the fault
 * strikes one of those; B reaches all. That is the case in which a majority can be
 * wrong: a fault of a server that did not count, or of one more than must be there,
 * would show nothing. */
#ifndef LEDGERLOCK_LAB_SERVERS_H
#define LEDGERLOCK_LAB_SERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "labs/lab/redis.h"
#include "tests/testkit/fake_redis.h"
#include "tests/testkit/proxy.h"

#define LAB_PREFIX "lab:"

enum { LAB_NODES = 3, LAB_URLS = 1024 };

/* The servers that a cell needs. */
struct lab_needs {
    const char *program; /* redis-server */
    const char *shim;    /* moves clocks; NULL: they cannot be moved */
    bool three;          /* nodes, not one */
    bool aged;           /* they say that they have been up for long */
    bool replica;        /* of the struck node, behind a proxy */
    bool lying;          /* the struck node is a fake that grants everything */
};

struct lab_servers {
    struct lab_needs needs;
    char dir[LAB_PATH]; /* folder of all sockets */
    struct lab_redis redis[LAB_NODES], replica;
    struct fake_redis fake;
    struct proxy to_struck;  /* A's way to the node that the fault strikes */
    struct proxy to_primary; /* the replica's way to it */
    bool is_promoted;
    char url[LAB_URLS];         /* of all nodes */
    char url_proxied[LAB_URLS]; /* of those that A reaches, by the proxy */
};

void lab_servers_open(struct lab_servers *s, const struct lab_needs *needs);
void lab_servers_close(struct lab_servers *s);

/* ---- faults of the struck node; each makes sure that it happened ---- */

void lab_flush(struct lab_servers *s);
void lab_restart_empty(struct lab_servers *s);

/* The link to the replica is frozen first (what is written from then on does not reach
 * it); then the primary is killed and the replica promoted. */
void lab_freeze_replica(struct lab_servers *s);
void lab_promote(struct lab_servers *s);

/* Its clock jumps an hour ahead. */
void lab_jump(struct lab_servers *s);

/* A real server takes the place of the fake. */
void lab_end_lies(struct lab_servers *s);

/* ---- questions ---- */

/* Keys with our prefix that have no end, in all nodes; -1: Redis cannot be asked. */
int64_t lab_stuck_keys(const struct lab_servers *s);

/* Milliseconds that a key has left, in the node that has it longest: -1 no end, -2 not
 * there. */
int64_t lab_key_left(const struct lab_servers *s, const char *key);

#endif
