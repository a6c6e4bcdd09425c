/* crash: end its session, park what kills, free its keys, work its rows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ledgerlock/lock_held.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"

static int end_session(struct session *s, struct err *e)
{
    char name[WORKER_NAME + 48];
    const struct pg_param param = pg_text(name);

    (void)snprintf(name, sizeof name, "ledgerlock worker %s.%d.%" PRId64, s->pool,
                   s->slot, s->inflight->incarnation);
    return pg_exec(s->pg, SQL_POOL_END_SESSION, &param, 1, NULL, e);
}

/* Not before something was committed: the program or the machine may be at fault. */
static bool is_to_be_parked(const struct session *s, const struct death_count *row)
{
    return s->config->park_after > 0 && row->deaths >= s->config->park_after &&
           *s->commits != row->commits;
}

static int park_counted(struct session *s, struct err *e)
{
    const struct inflight *f = s->inflight;
    char why[160];

    for (size_t i = 0; i < f->n; i++) {
        struct death_count *row = death_count_find(s->deaths, s->job, f->items[i]);

        if (row == NULL || !is_to_be_parked(s, row))
            continue;
        (void)snprintf(why, sizeof why,
                       "its worker died %lld times while it worked it alone, the last "
                       "time of %s",
                       row->deaths, f->death);
        if (park_items(s, &row->item, 1, why, e) != 0)
            return (int)e->code;
        row->deaths = 0;
    }
    return 0;
}

static int free_keys(struct session *s, struct err *e)
{
    const struct inflight *f = s->inflight;
    struct rlock_key *keys = s->batch->names;
    bool is_over = clk_ms() > f->died_at_ms + s->config->lease_ms;
    size_t freed;
    int code;

    if (s->locks == NULL || f->nonce[0] == '\0' || f->key_ct == 0 || is_over)
        return 0;
    for (size_t i = 0; i < f->key_ct; i++)
        keys[i] = (struct rlock_key){f->names[i], strlen(f->names[i])};
    code = rlock_release_dead(s->locks, f->nonce, keys, f->key_ct, &freed);
    if (code == RLOCK_E_INVAL)
        return 0; /* it died while it wrote its nonce, so it had not asked for a key */
    if (code != RLOCK_OK)
        return batch_redis_fault(s, code, e);
    log_info("worker.recovers",
             "dead=%s.%d.%" PRId64 " rows=%zu keys_freed=%zu after_ms=%" PRId64,
             s->pool, s->slot, f->incarnation, f->n, freed, clk_ms() - f->died_at_ms);
    return 0;
}

/* Items with deaths come last, so that the others are done when one takes this worker
 * too. */
static int work_again(struct session *s, struct err *e)
{
    static int64_t items[BATCH_MAX];
    const struct inflight *f = s->inflight;
    struct batch_order order = {.limit = BATCH_MAX, .items = items, .item_ct = f->n};
    size_t first = 0, last = f->n;

    for (size_t i = 0; i < f->n; i++) {
        bool has_deaths = death_count_find(s->deaths, s->job, f->items[i]) != NULL;

        items[has_deaths ? --last : first++] = f->items[i];
    }
    return batch_run(s, &order, e);
}

int crash_recover(struct session *s, struct err *e)
{
    struct inflight *f = s->inflight;

    if (!inflight_is_set(f) || f->incarnation == s->incarnation)
        return 0;
    if (end_session(s, e) != 0 || park_counted(s, e) != 0 || free_keys(s, e) != 0 ||
        work_again(s, e) != 0)
        return err_wrap(e, "clearing up after a dead worker");
    inflight_clear(f); /* when none of its rows was due any more */
    return 0;
}
