/* audit_totals: the queries of the totals, and their part of the document. */
#ifndef LEDGERLOCK_AUDIT_TOTALS_H
#define LEDGERLOCK_AUDIT_TOTALS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "common/pg.h"

enum { AUDIT_TOTAL_COUNT = 9 };

/* In the order in which add is to be called, on an empty object at first. */
extern const struct audit_total {
    enum sql_id id;
    bool takes_now;
    int (*add)(json_t *totals, const struct pg_result *res, struct err *e);
} audit_totals[AUDIT_TOTAL_COUNT];

#endif
