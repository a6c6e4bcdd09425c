/* busy: the keys that a worker met busy in the present round, each with its reason, and
 * those of rows that met an error, which are left out for a while. A round is
 * the pulls from the oldest row on, or through all shards. Behind an order that needs a
 * busy key no younger one that needs it is worked in the same round. */
#ifndef LEDGERLOCK_BUSY_H
#define LEDGERLOCK_BUSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/jobs/resource.h"

enum busy_cause { BUSY_LOCKED, BUSY_NO_TTL, BUSY_ROW_LOCKED, BUSY_MONTH, BUSY_ERROR };

struct busy_key {
    int64_t id;
    int kind;        /* of the resource */
    int64_t round;   /* in which it was met last; 0: a free place */
    unsigned errors; /* that its rows met */
    enum busy_cause cause;
    int64_t since_ms; /* met in each round since then */
    int64_t until_ms; /* left out until then after an error; else when it was met */
};

/* A hash table. All zero: nothing was met. */
struct busy {
    struct busy_key *keys;
    size_t n, room;
    int64_t round;
};

/* A round begins. */
void busy_begin(struct busy *b);

/* Notes a key that could not be had at now_ms. True if that is new, or for another
 * cause, in twenty seconds. Ends the process with code 70 when there is no memory: the
 * next one in its slot works the rows. */
bool busy_note(
    struct busy *b, int kind, int64_t id, enum busy_cause cause, int64_t now_ms);

/* True if a key was met in this round, or its rows met an error of late. */
bool busy_is_met(const struct busy *b, int kind, int64_t id, int64_t now_ms);

/* "user:42 (its lock is held in Redis), ..." of a few that were met in each round since
 * then, or left out after an error, into buf; returns buf. A key that another worker of
 * the pool had for a moment is not among them. */
const char *busy_text(const struct busy *b, int64_t since_ms, char *buf, size_t size);

void busy_close(struct busy *b);

#endif
