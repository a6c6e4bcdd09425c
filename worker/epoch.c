/* epoch: raise in PostgreSQL first, install in Redis second, one worker at a time. */
#include "worker/epoch.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/journal.h"

enum { RAISES_MAX = 10, RAISE_WINDOW_MS = 60000, TURN_MS = 2000, TURN_LOOK_MS = 20 };

static const int64_t counters_per_epoch = INT64_C(1) << 40;

int64_t epoch_of(int64_t token)
{
    return token / counters_per_epoch;
}

static int query_int8(struct worker *w,
                      enum sql_id id,
                      const struct pg_param *params,
                      size_t n,
                      int64_t *value,
                      struct err *e)
{
    struct pg_result *res;

    if (pg_exec(w->pg, id, params, n, &res, e) != 0)
        return (int)e->code;
    *value = pg_rows(res) == 1 ? pg_get_int8(res, 0, 0) : 0;
    pg_result_free(res);
    return 0;
}

/* The epoch in force; with `number` also one that no other batch gets. */
static int read_epoch(struct worker *w, int64_t *epoch, int64_t *number, struct err *e)
{
    const struct pg_param param = pg_int8(number != NULL ? 1 : 0);
    struct pg_result *res;

    if (pg_exec(w->pg, SQL_POOL_READ_EPOCH, &param, 1, &res, e) != 0)
        return (int)e->code;
    *epoch = pg_get_int8(res, 0, 0);
    if (number != NULL)
        *number = pg_get_int8(res, 0, 1);
    pg_result_free(res);
    return 0;
}

int epoch_token_without_locks(struct worker *w, int64_t *token, struct err *e)
{
    int64_t epoch = 0, number = 0;

    if (read_epoch(w, &epoch, &number, e) != 0)
        return (int)e->code;
    *token = epoch * counters_per_epoch + counters_per_epoch / 2 + number;
    return 0;
}

int epoch_catch_up(struct worker *w, struct err *e)
{
    int64_t in_redis, epoch = 0;
    int code;

    if (w->locks == NULL || w->caught_up)
        return 0;
    code = ll_check_epoch(w->locks, &in_redis);
    if (code != LL_OK && code != LL_E_EPOCH)
        return 0; /* the first batch will meet the same trouble and say so */
    w->caught_up = true;
    if (read_epoch(w, &epoch, NULL, e) != 0)
        return (int)e->code;
    if (in_redis <= epoch)
        return 0;
    return epoch_raise(w, in_redis, "Redis was ahead of this database", e);
}

static int redis_error(struct worker *w, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "%s: %s", ll_strerror(code), ll_error(w->locks));
}

/* Commits an epoch above the floor and above the one in force. */
static int commit_higher(struct worker *w, int64_t floor, int64_t *epoch, struct err *e)
{
    const struct pg_param param = pg_int8(floor);

    if (query_int8(w, SQL_POOL_RAISE_EPOCH, &param, 1, epoch, e) != 0) {
        if (e->code == ERR_CONSTRAINT)
            return err_set(
                e, ERR_REFUSED,
                "every epoch up to %d is used up; docs/decisions.md tells how to "
                "begin again",
                LL_EPOCH_MAX);
        return err_wrap(e, "raise the epoch");
    }
    worker_count(w, METRIC_epoch_bumps, 1);
    return 0;
}

static void journal_epoch(struct worker *w, int64_t epoch, const char *why)
{
    char detail[200];

    (void)snprintf(detail, sizeof detail, "epoch %" PRId64 ": %s", epoch, why);
    journal(w, "epoch_bump", "acquire", "epoch", epoch * counters_per_epoch, 0, detail);
}

/* When it is our turn: looks whether it is still needed, commits, installs. */
static int raise_one(struct worker *w, int64_t floor, const char *why, struct err *e)
{
    int64_t in_redis, epoch = 0;
    int code = ll_check_epoch(w->locks, &in_redis);

    if (code == LL_OK && in_redis > floor)
        return 0; /* another worker was faster */
    if (code != LL_OK && code != LL_E_EPOCH)
        return redis_error(w, code, e);
    if (commit_higher(w, in_redis > floor ? in_redis : floor, &epoch, e) != 0)
        return (int)e->code;
    journal_epoch(w, epoch, why); /* it is raised, whatever comes */
    code = ll_install_epoch(w->locks, epoch, &in_redis);
    return code == LL_OK ? 0 : redis_error(w, code, e);
}

/* Without Redis the epoch in force is the token itself. */
static int
raise_without_locks(struct worker *w, int64_t floor, const char *why, struct err *e)
{
    int64_t epoch = 0;

    if (read_epoch(w, &epoch, NULL, e) != 0)
        return (int)e->code;
    if (epoch > floor)
        return 0;
    if (commit_higher(w, floor, &epoch, e) != 0)
        return (int)e->code;
    journal_epoch(w, epoch, why);
    return 0;
}

/* Raising again and again means that two sources of tokens work on one database. Epochs
 * are few: step back and say it, rather than use them up. */
static bool is_too_often(struct worker *w)
{
    int64_t now = clk_ms();

    if (now - w->raised_since_ms > RAISE_WINDOW_MS) {
        w->raised_since_ms = now;
        w->raised_ct = 0;
    }
    if (++w->raised_ct == RAISES_MAX + 1)
        log_error(
            "epoch.too_often",
            "reason=\"two Redis servers, prefixes or lock modes work on this database; "
            "no more epochs for a minute\"");
    return w->raised_ct > RAISES_MAX;
}

static int take_turn(struct worker *w, struct err *e)
{
    const struct pg_param params[] = {pg_text(w->name), pg_int8(TURN_MS)};
    int64_t deadline = clk_ms() + w->config->lease_ms / 4;
    int64_t ours;

    for (;;) {
        if (query_int8(w, SQL_POOL_LOCK_EPOCH, params, 2, &ours, e) != 0)
            return (int)e->code;
        if (ours != 0)
            return 0;
        if (clk_ms() > deadline)
            return err_set(e, ERR_CONFLICT, "another worker raises the epoch");
        clk_pause_ms(TURN_LOOK_MS);
    }
}

int epoch_raise(struct worker *w, int64_t floor, const char *why, struct err *e)
{
    const struct pg_param name = pg_text(w->name);
    struct err ignored = {0};
    int code;

    if (floor > 0 &&
        is_too_often(w)) /* with no record in Redis there is no other way */
        return err_set(e, ERR_CONFLICT, "the epoch was raised too often");
    if (take_turn(w, e) != 0)
        return err_wrap(e, "wait for the turn to raise the epoch");
    code = w->locks == NULL ? raise_without_locks(w, floor, why, e)
                            : raise_one(w, floor, why, e);
    if (pg_exec(w->pg, SQL_POOL_UNLOCK_EPOCH, &name, 1, NULL, &ignored) != 0)
        log_debug("epoch.turn_left", "err=\"%s\"", ignored.msg); /* it ends by itself */
    return code;
}
