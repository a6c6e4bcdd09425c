/* walk: where a worker goes next, and how much it takes there.
 *
 * Workers share nothing that tells them apart but what they meet: a bucket whose keys
 * were mostly with others is left alone for a while, twice as long each time in a row;
 * a row that stands first and was not served again and again is served by itself. */
#ifndef LEDGERLOCK_WALK_H
#define LEDGERLOCK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALK_BUCKETS = 64 };

/* What a worker remembers of one bucket of one job. */
struct walk_bucket {
    int64_t not_before_ms; /* stepped back from until then */
    unsigned busy_ct;      /* turns in a row that met mostly busy keys */
    int64_t first;         /* item that stood first and was not served; 0: none */
    unsigned passed_ct;    /* turns in a row in which it was passed over, weighed */
};

/* One job's walk; limit is set to the configured batch, the rest to zero. */
struct walk {
    struct walk_bucket buckets[WALK_BUCKETS];
    size_t limit; /* rows of the next batch */
};

/* What a turn did in a bucket: rows pulled and worked, the first row and whether it was
 * among those worked, and how long the turn took. */
struct walk_turn {
    size_t pulled;
    size_t worked;
    int64_t first;
    bool first_worked;
    int64_t took_ms;
};

/* Whether a bucket may be visited now; if not, lowers *next_ms to the time left. */
bool walk_may(const struct walk *w, int64_t bucket, int64_t now_ms, int64_t *next_ms);

/* Whether the next turn in the bucket should serve its first row alone and wait for its
 * keys: it was passed over too often. */
bool walk_is_patient(const struct walk *w, int64_t bucket);

/* Learns from a turn whether to step back from its bucket, and who was passed over. */
void walk_learn(struct walk *w,
                int64_t bucket,
                const struct walk_turn *turn,
                int64_t now_ms);

/* Fits the size of the next batch: it grows to batch_max as long as a turn takes less
 * than a twentieth of the lease, and shrinks so that none takes more than a tenth. */
void walk_fit(struct walk *w,
              const struct walk_turn *turn,
              size_t batch_max,
              int64_t lease_ms);

#endif
