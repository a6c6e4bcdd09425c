/* schedule: when a worker pulls next, without knowledge of clock and server.
 *
 * Each of the n workers of a job polls every n x poll_ms, at its own phase, so the job
 * is polled every poll_ms whatever n is. A part-full batch is followed by a pause up
 * to the worker's phase of n x 20 ms, so rows that trickle in are worked together. A
 * worker whose job is paused asks twice a second if it still is, whatever poll_ms is.
 */
#ifndef LEDGERLOCK_SCHEDULE_H
#define LEDGERLOCK_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/batch/batch.h"

struct schedule {
    const struct config *config;
    const struct job_type *job;
    int64_t poll_ms, batch; /* of the job; batch: most rows of a transaction */
    int64_t index, workers; /* of those that work the job */
    bool once;              /* nothing trickles in: no pause while there is work */
    struct batch_order
        next;        /* pull; its limit: rows that fit into a tenth of a lease */
    int64_t head_ms; /* without shards: not before this one from the oldest row */
    bool is_ahead;   /* of several workers: begins at the oldest row */
    unsigned apart;  /* pulls that were to begin behind those of others */

    /* Of this round, which is the pulls from the oldest row on, or through all shards:
     */
    bool is_vain;     /* of a pull less than half could be worked; */
    int64_t vain_ms;  /* how long such pulls took */
    bool has_worked;  /* something was */
    unsigned in_vain; /* rounds before it in a row in which nothing was */
};

void schedule_start(struct schedule *s);

/* Learns from a batch that took ms. Returns how long to pause, at now_ms. */
int64_t schedule_learn(struct schedule *s,
                       const struct batch_outcome *out,
                       int64_t ms,
                       int64_t now_ms);

/* Learns from a batch that broke after ms: the next one is of other shards, or behind
 * the rows that were refused, and a smaller one if it took too long or met a conflict,
 * so that a row that causes it stands alone at last. */
void schedule_fail(struct schedule *s,
                   const struct batch_outcome *out,
                   bool is_large,
                   int64_t ms,
                   int64_t now_ms);

#endif
