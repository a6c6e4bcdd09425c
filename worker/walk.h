/* walk: where a worker goes next, and how much it takes there.
 *
 * A worker whose batch was mostly busy steps back, twice as long each time in a row:
 * from the bucket, and from the job for about as long as a batch takes, since what is
 * wanted most is wanted in many buckets. A row that stands first and was not served
 * again and again is served by itself. Beyond that the workers of a pool share how far
 * their batches went in each bucket, so that no row waits behind younger ones for ever.
 */
#ifndef LEDGERLOCK_WALK_H
#define LEDGERLOCK_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WALK_BUCKETS = 64,
    WALK_LATE = 4,   /* batches with a younger row, then rows are served first */
    WALK_OVERDUE = 8 /* then they are not passed over any more */
};

/* Of a bucket, in memory that the workers of a pool share: the youngest rows of those
 * batches that went furthest. A row older than all of them was overtaken that often. */
struct walk_line {
    atomic_llong youngest[WALK_OVERDUE];
    atomic_uint served; /* batches */
};

/* What a worker remembers of one bucket of one job. */
struct walk_bucket {
    int64_t not_before_ms; /* stepped back from until then */
    unsigned busy_ct;      /* turns in a row that met mostly busy keys */
    int64_t first;         /* item that stood first and was not served; 0: none */
    unsigned passed_ct;    /* turns in a row in which it was passed over, weighed */
    unsigned shared_ct;    /* turns that are still to begin with waiting */
    bool is_alone;         /* something was busy: not taken along with others */
};

/* One job's walk; limit is set to the configured batch, lines if a lower id is an older
 * row, the rest to zero. */
struct walk {
    struct walk_bucket buckets[WALK_BUCKETS];
    struct walk_line *lines; /* one for each bucket; NULL: ids are no order */
    int64_t rest_until_ms;   /* stepped back from the job until then */
    unsigned rest_ct;        /* turns in a row that did */
    int64_t pace_ms;         /* what a turn that worked takes, on average */
    size_t limit;            /* rows of the next batch */
};

/* What a turn did in a bucket: rows pulled and worked, the first row and whether it was
 * among those worked, the last row that was, and how long the turn took. */
struct walk_turn {
    size_t pulled;
    size_t worked;
    int64_t first;
    bool first_worked;
    int64_t youngest;
    int64_t took_ms; /* without what it waited for its turn */
    bool queued;     /* it would have */
    bool patient;    /* it was about the first row alone */
};

/* Whether less than half of what was pulled could be worked. */
bool walk_is_mostly_busy(const struct walk_turn *turn);

/* Puts buckets into the order of a worker whose place is `place` of WALK_BUCKETS: as
 * far from the others' when few are left as when all are. */
void walk_turn_to(int64_t *buckets, size_t n, int64_t place);

/* Whether a bucket may be visited now; if not, lowers *next_ms to the time left. */
bool walk_may(const struct walk *w, int64_t bucket, int64_t now_ms, int64_t *next_ms);

/* Whether a batch of other buckets that is not full may take this one along. */
bool walk_may_go_along(const struct walk *w, int64_t bucket, int64_t now_ms);

/* Whether the next turn in the bucket should serve its first row alone and wait for its
 * keys: it was passed over too often. */
bool walk_is_patient(const struct walk *w, int64_t bucket);

/* Whether the next turn in the bucket should wait for those of others before it pulls:
 * one of the last beside them found nothing free, so they are in this bucket too. */
bool walk_is_shared(const struct walk *w, int64_t bucket);

/* The bucket's line; NULL if ids are no order. */
struct walk_line *walk_line(const struct walk *w, int64_t bucket);

/* Rows below the answer were overtaken by n batches of this pool that are over, n at
 * most WALK_OVERDUE; 0: none was, or there is no line. */
int64_t walk_overtaken(const struct walk_line *line, size_t n);

/* Learns from a turn whether to step back, and who was passed over. */
void walk_learn(struct walk *w,
                int64_t bucket,
                const struct walk_turn *turn,
                int64_t now_ms);

/* Learns the same of a bucket that went along. */
void walk_learn_along(struct walk *w,
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
