/* one_database: a migrated database for each case, or one for all of a program. */
#ifndef LEDGERLOCK_ONE_DATABASE_H
#define LEDGERLOCK_ONE_DATABASE_H

#include "tests/lib/runs.h"

static struct fixture f;

static inline void one_open(void)
{
    fixture_open_migrated(&f);
}

static inline void one_close(void)
{
    fixture_close(&f);
}

/* The first column of the first row, as the owner, with search_path ledgerlock. */
static inline int64_t ask(const char *sql)
{
    char all[2048];

    assert_in_range(snprintf(all, sizeof all, "SET search_path = ledgerlock; %s", sql),
                    0, sizeof all - 1);
    return fixture_query_int8(f.url, all);
}

#endif
