/* metrics: the list, and a reader. */
#include "tests/lib/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct http_answer metrics_read_last;
static int port;

struct metric {
    const char *name, *by; /* the case */
    bool is_asserted;
};

static struct metric metrics[] = {
    {"build_info", "work", false},
    {"tables_read_timestamp_seconds", "work", false},
    {"rows_total", "work", false},
    {"duplicates_prevented_total", "guards", false},
    {"commits_in_doubt_total", "doubt", false},
    {"batches_total", "work", false},
    {"lock_keys_total", "work", false},
    {"rows_locked_total", "work", false},
    {"leases_lost_total", "lease", false},
    {"lock_answers_lost_total", "answers", false},
    {"commit_answers_lost_total", "doubt", false},
    {"conflicts_total", "conflict", false},
    {"rows_parked_total", "backlog", false},
    {"worker_restarts_total", "lease", false},
    {"lock_acquire_seconds", "work", false},
    {"transaction_seconds", "work", false},
    {"workers", "lease", false},
    {"redis_up", "outage", false},
    {"pg_up", "outage", false},
    {"backlog_rows", "backlog", false},
    {"parked_rows", "backlog", false},
    {"oldest_due_timestamp_seconds", "backlog", false},
    {"audit_broken_invariants", "work", false},
    {"audit_timestamp_seconds", "work", false},
    {"audit_seconds", "work", false},
};

enum { METRICS = sizeof metrics / sizeof metrics[0] };

void metrics_start(const char *words, ...)
{
    char all[512];
    va_list ap;

    va_start(ap, words);
    (void)vsnprintf(all, sizeof all, words, ap);
    va_end(ap);
    port = fixture_free_port();
    pool_start_in(&world.through, "%s --http %d", all, port);
    FIXTURE_AWAIT(http_get(port, &metrics_read_last, "/state") == 200, "no page: %d",
                  metrics_read_last.status);
    metrics_read();
}

void metrics_read(void)
{
    FIXTURE_AWAIT(http_get(port, &metrics_read_last, "/metrics") == 200,
                  "no metrics: %d", metrics_read_last.status);
}

void metrics_end(const char *by)
{
    for (size_t i = 0; i < METRICS; i++) {
        if (strcmp(metrics[i].by, by) == 0 && !metrics[i].is_asserted)
            fail_msg("%s asserts no value of %s", by, metrics[i].name);
    }
}

static void assert_case_exists(const char *by)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "grep -qF 'metrics_end(\"%s\")' %s/tests/pool/test_metrics*.c", by,
                   getenv("LL_TEST_SOURCE"));
    assert_int_equal(system(command), 0);
}

void metrics_assert_known(void)
{
    static const char head[] = "# TYPE ledgerlock_";
    size_t n = 0;

    for (const char *p = metrics_read_last.body; (p = strstr(p, head)) != NULL; n++) {
        size_t i = 0, length = strcspn(p += sizeof head - 1, " ");

        while (i < METRICS && (strlen(metrics[i].name) != length ||
                               strncmp(p, metrics[i].name, length) != 0))
            i++;
        if (i == METRICS)
            fail_msg("no case asserts the value of %.*s", (int)length, p);
        assert_case_exists(metrics[i].by);
    }
    assert_int_equal(n, METRICS);
}

double value(const char *name, const char *labels, ...)
{
    char sample[160];
    size_t n = (size_t)snprintf(sample, sizeof sample, "ledgerlock_%s", name);
    va_list ap;

    for (size_t i = 0; i < METRICS; i++) {
        size_t length = strlen(metrics[i].name);

        if (strncmp(name, metrics[i].name, length) == 0 &&
            strspn(name + length, "_sumcountbucket") == strlen(name + length))
            metrics[i].is_asserted = true;
    }
    va_start(ap, labels);
    (void)vsnprintf(sample + n, sizeof sample - n, labels, ap);
    va_end(ap);
    return http_metric(&metrics_read_last, sample);
}

double plain_value(const char *name)
{
    return value(name, "%s", "");
}
