/* When the page makes its next whole audit. */
#include "tests/lib/test.h"
#include "worker/http/http.h"

static const struct {
    const char *name;
    int64_t every_ms, took_ms, pause_ms;
} audits[] = {
    {"that_is_quick", 600000, 40, 600000},
    {"at_the_limit", 600000, 3000, 600000},
    {"beyond_it", 600000, 3001, 600200},
    {"of_ten_minutes", 600000, 600000, 120000000},
    {"every_second", 1000, 100, 20000},
};

/* Guarantee: The whole audits of a page take at most a 200th of the time, however long
 * one takes, and come no more often than http.audit_every_s says. */
CASE_ROWS(next_audit_waits_after_one, audits)
{
    assert_int_equal(http_audit_pause_ms(row->every_ms, row->took_ms), row->pause_ms);
}
