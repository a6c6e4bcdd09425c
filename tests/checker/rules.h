/* rules: what must hold. Each reports what breaks it with broken(). */
#ifndef CHECKER_RULES_H
#define CHECKER_RULES_H

#include "tests/checker/history.h"
#include "tests/checker/tables.h"

struct limits {
    int64_t bound_us;  /* 0: recovery is not timed */
    int64_t lease_us;  /* the longest of a lock */
    int64_t set_aside; /* rows that may be parked */
    bool kills;        /* any worker may have been killed over its invoke */
    bool quorum;       /* locks of different rows may have one token */
};

/* Of the rows alone. */
void rules_of_tables(const struct tables *t, const struct limits *limits);

/* Of the rows and the histories together. Returns the longest recovery that was seen,
 * in microseconds; 0: there was nothing to recover. */
int64_t rules_of_history(const struct tables *t,
                         const struct history *h,
                         const struct limits *limits);

/* Of what was written for each user and SKU, in the order of the COMMITs. in_parts: a
 * batch may have been worked in several transactions. */
void rules_of_tokens(const struct tables *t, const struct history *h, bool in_parts);

/* Of declined charges and rejected orders: something was short at that COMMIT. */
void rules_of_truth(const struct tables *t, const struct history *h);

/* Of the keys that the workers held. */
void rules_of_keys(const struct history *h, const struct limits *limits);

#endif
