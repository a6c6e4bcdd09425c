/* metrics: what a worker counts. One slot per worker in memory shared with the
 * supervisor, so a killed worker loses nothing that it counted; one writer per slot. */
#ifndef LEDGERLOCK_METRICS_H
#define LEDGERLOCK_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* X(name, help). Names are the keys in ledgerlock.workers.counters. */
/* clang-format off */
#define METRIC_LIST(X)                                                                   \
    X(batches,        "batches committed")                                               \
    X(charged,        "periods captured")                                                \
    X(declined,       "periods declined: too little balance")                            \
    X(cancelled,      "rows ended at their cancel date")                        \
    X(fulfilled,      "orders fulfilled")                                                \
    X(rejected,       "orders rejected")                                                 \
    X(deferred,       "rows left for the next batch, behind an undecided one")           \
    X(granted,        "lock keys granted")                                               \
    X(busy,           "lock keys met busy")                                              \
    X(lost,           "tenures found lost before COMMIT or at release")                  \
    X(fenced,         "rows that a newer token had written")                             \
    X(uncertain,      "acquires whose answer never came")                                \
    X(commit_unknown, "COMMITs whose answer never came")                                 \
    X(conflicts,      "transactions rolled back by a timeout or a deadlock")             \
    X(epoch_bumps,    "epochs raised")                                                   \
    X(parked,         "rows set aside: an invariant broke, or their workers died")                       \
    X(restarts,       "times the worker of this slot was started again")

/* clang-format on */

enum metric {

#define METRIC_ENUM(name, help) METRIC_##name,
    METRIC_LIST(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

struct metrics {
    int64_t value[METRIC_COUNT];
};

/* Name and help of a counter. */
const char *metric_name(enum metric m);
const char *metric_help(enum metric m);

/* Writes {"batches":1,...} without zeros into buf; returns buf. 1024 bytes suffice. */
const char *metrics_json(const struct metrics *m, char *buf, size_t size);

/* Adds `from` to `to`. */
void metrics_add(struct metrics *to, const struct metrics *from);

#endif
