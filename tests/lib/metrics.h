/* metrics: the values of /metrics, of the pool of a world (world.h), and the list that
 * names for each metric the case that asserts its value. A metric that is not in the
 * list fails, and so does a case that asserts nothing of a metric of its own. */
#ifndef LL_TEST_METRICS_H
#define LL_TEST_METRICS_H

#include "tests/lib/http.h"
#include "tests/lib/steps.h"

/* The last answer. */
extern struct http_answer metrics_read_last;

/* Starts world.pool through the proxies, with a page. */
void metrics_start(const char *words, ...) STEPS_TAKE(1);

/* The case by this name ends: each metric that is its own has had its value asserted.
 */
void metrics_end(const char *by);

/* Asserts that the list has each metric of the pool, no other, and cases that exist. */
void metrics_assert_known(void);

void metrics_read(void);

/* The value of ledgerlock_NAME and its labels, which counts as asserted; and without
 * labels. */
double value(const char *name, const char *labels, ...) STEPS_TAKE(2);
double plain_value(const char *name);

/* Reads until it is so. */
#define AWAIT_METRIC(condition)                                                        \
    FIXTURE_AWAIT((metrics_read(), condition), "never %s:\n%s", #condition,            \
                  metrics_read_last.body)

#endif
