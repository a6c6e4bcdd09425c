/* rules: what must hold. Each reports what breaks it with broken(). */
#ifndef CHECKER_RULES_H
#define CHECKER_RULES_H

#include "tests/checker/history.h"
#include "tests/checker/tables.h"

struct limits {
    int64_t bound_us;  /* 0: recovery is not timed */
    int64_t set_aside; /* rows that may be parked */
    bool kills;        /* any worker may have been killed over its invoke */
};

/* Of the rows alone. */
void rules_of_tables(const struct tables *t, const struct limits *limits);

/* Of the rows and the histories together. Returns the longest recovery that was seen,
 * in microseconds; 0: there was nothing to recover. */
int64_t rules_of_history(const struct tables *t,
                         const struct history *h,
                         const struct limits *limits);

/* Of what was written for each user and SKU, in the order of the COMMITs that the
 * histories tell: a row lock is held until then. */
void rules_of_tokens(const struct tables *t,
                     const struct history *h,
                     const struct limits *limits);

#endif
