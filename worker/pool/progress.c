/* progress: the commits of the pool, and what `run --once` leaves. */
#include "worker/pool/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/batch/batch.h"
#include "worker/batch/flights.h"

enum { LEAVE_LEASES = 3 };

void pool_progress_note(struct pool_progress *p, const struct session *s, bool gets_on)
{
    long long commits = *s->commits;

    if (commits == p->commits && !gets_on)
        return;
    p->commits = commits;
    p->at_ms = clk_ms();
}

int64_t pool_progress_age_ms(const struct pool_progress *p)
{
    return clk_ms() - p->at_ms;
}

/* Run --once leaves the rows that are due. */
static enum exit_code
leave_due(char left[POOL_PROGRESS_LEFT], int64_t due, const char *why)
{
    char ct[24] = "all";

    if (due == 0)
        return EXIT_OK;
    if (due > 0)
        (void)snprintf(ct, sizeof ct, "%" PRId64, due);
    (void)snprintf(left, POOL_PROGRESS_LEFT, "%s due (%s)", ct, why);
    return EXIT_LEFT;
}

static bool
has_waited(const struct pool_progress *p, const struct session *s, int leases)
{
    return pool_progress_age_ms(p) >= leases * s->config->lease_ms;
}

/* The one that serves gets on while fewer and fewer rows are due. If it is of this pool
 * it ends before this one. */
static bool is_done_standing_by(struct pool_progress *p,
                                struct session *s,
                                char left[POOL_PROGRESS_LEFT],
                                enum exit_code *code)
{
    int64_t due = batch_due(s);

    pool_progress_note(p, s, due < p->due);
    p->due = due;
    if (due != 0 && !has_waited(p, s, LEAVE_LEASES + 1))
        return false;
    *code = leave_due(left, due, "another pool serves them");
    return true;
}

/* Rows that may bring more of this job, as far as this pool works theirs. */
static int64_t count_feeding(struct session *s)
{
    const struct pg_param params[] = {pg_text(s->now), pg_text(s->config->jobs)};
    struct err ignored = {0};
    int64_t n = 0;

    if (s->job->feeding == NULL ||
        pg_ask(s->pg, s->job->feeding, params, 2, &n, &ignored) != 0)
        return 0;
    return n;
}

/* Nothing is due; is anything to come? */
static bool is_done_with_all(struct pool_progress *p,
                             struct session *s,
                             char left[POOL_PROGRESS_LEFT],
                             enum exit_code *code)
{
    int64_t n = flights_under_way(s) > 0 ? 1 : count_feeding(s);

    *code = EXIT_OK;
    if (n == 0)
        return true;
    if (p->fed_ms == 0 || *s->commits != p->fed || flights_under_way(s) > 0) {
        p->fed = *s->commits;
        p->fed_ms = clk_ms();
    }
    if (clk_ms() - p->fed_ms < LEAVE_LEASES * s->config->lease_ms)
        return false;
    *code = leave_due(left, n, "a card is asked, and its answer decides nothing yet");
    return true;
}

bool pool_progress_is_done(struct pool_progress *p,
                           struct session *s,
                           char left[POOL_PROGRESS_LEFT],
                           enum exit_code *code)
{
    const struct batch_outcome *out = &s->batch->out;
    int64_t met_ms = clk_ms() - s->config->lease_ms;
    char why[120];

    if (out->is_standby)
        return is_done_standing_by(p, s, left, code);
    pool_progress_note(p, s, p->due != 0); /* it begins to serve */
    p->due = 0;
    if (out->is_paused) {
        (void)snprintf(why, sizeof why, "%s is paused: ledgerlock resume %s",
                       s->job->name, s->job->name);
        *code = leave_due(left, batch_due(s), why);
    } else if (batch_found_nothing(out)) {
        return is_done_with_all(p, s, left, code);
    } else if (!has_waited(p, s, LEAVE_LEASES)) {
        return false;
    } else if (busy_text(&s->busy, met_ms, left, POOL_PROGRESS_LEFT)[0] == '\0' &&
               busy_text(&s->busy, clk_ms(), left, POOL_PROGRESS_LEFT)[0] == '\0') {
        *code = leave_due(left, batch_due(s), "see the log");
    } else {
        *code = EXIT_LEFT;
    }
    return true;
}
