/* rescue: what the dead one left in the slot is put in order by its successor. */
#include "worker/rescue.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/batch.h"
#include "worker/park.h"

void rescue_note_death(struct slot *slot, int status, bool was_told)
{
    if (!hold_is_set(&slot->hold) || slot->hold.incarnation != slot->incarnation)
        return; /* it held nothing, or died before it had cleared up after another */
    (void)snprintf(slot->death, sizeof slot->death, "%s %d",
                   WIFSIGNALED(status) ? "signal" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    slot->died_at_ms = clk_ms();
    slot->is_guiltless = was_told;
    slot->is_charged = false;
}

/* ---- PostgreSQL ---- */

static void name_dead(const struct worker *w, char name[WORKER_NAME])
{
    (void)snprintf(name, WORKER_NAME, "%s.%d.%" PRId64, w->pool, w->index,
                   w->slot->hold.incarnation);
}

static int end_session(struct worker *w, const char *dead, struct err *e)
{
    char session[WORKER_NAME + 24];
    const struct pg_param param = pg_text(session);

    (void)snprintf(session, sizeof session, "ledgerlock worker %s", dead);
    return pg_exec(w->pg, SQL_POOL_END_SESSION, &param, 1, NULL, e);
}

static int park_guilty(struct worker *w,
                       const struct job_type *job,
                       const struct pg_result *charged,
                       struct err *e)
{
    char why[120];

    if (w->slot->hold.n > 1)
        return 0; /* it was one of many, nobody knows which */
    for (size_t row = 0; row < pg_rows(charged); row++) {
        int64_t crashes = pg_get_int8(charged, row, 1);

        if (crashes < w->config->quarantine_after)
            continue;
        (void)snprintf(why, sizeof why,
                       "its worker died %" PRId64
                       " times while working it, the last time of %s",
                       crashes, w->slot->death);
        if (park_item(w, job, pg_get_int8(charged, row, 0), 0, why, e) != 0)
            return (int)e->code;
    }
    return 0;
}

static int charge_rows(struct worker *w, const char *dead, struct err *e)
{
    const struct hold *h = &w->slot->hold;
    const struct job_type *job = job_types[h->job];
    const struct pg_param params[] = {
        pg_int8_array(h->items, h->n),
        pg_text(w->now),
        pg_text(dead),
    };
    struct pg_result *charged;
    int code;

    if (w->slot->is_guiltless || w->config->quarantine_after == 0)
        return 0;
    if (pg_exec(w->pg, job->crash, params, 3, &charged, e) != 0)
        return (int)e->code;
    if (pg_rows(charged) > 0) {
        atomic_fetch_add(&w->accusals[h->job], 1);
        log_warn("worker.suspects", "dead=%s job=%s rows=%zu", dead, job->name,
                 pg_rows(charged));
    }
    code = park_guilty(w, job, charged, e);
    pg_result_free(charged);
    return code;
}

/* ---- Redis ---- */

static int free_keys(struct worker *w, const char *dead, struct err *e)
{
    const struct hold *h = &w->slot->hold;
    bool is_over = clk_ms() > w->slot->died_at_ms + w->config->lease_ms;
    size_t freed;
    int code;

    if (w->locks == NULL || h->nonce[0] == '\0' || h->key_ct == 0 || is_over)
        return 0;
    batch_take_keys(w->batch, h->key_ids, h->key_kinds, h->key_ct);
    code = ll_release_dead(w->locks, h->nonce, w->batch->names, h->key_ct, &freed);
    if (code == LL_E_INVAL)
        return 0; /* it died while it wrote its nonce, so it had not asked for a key */
    if (code != LL_OK)
        return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), ll_error(w->locks));
    log_info("worker.rescued", "dead=%s keys_freed=%zu after_ms=%" PRId64, dead, freed,
             clk_ms() - w->slot->died_at_ms);
    return 0;
}

int rescue_predecessor(struct worker *w, struct err *e)
{
    struct slot *slot = w->slot;
    char dead[WORKER_NAME];

    if (!hold_is_set(&slot->hold) || slot->hold.incarnation == slot->incarnation)
        return 0;
    name_dead(w, dead);
    if (!slot->is_charged &&
        (end_session(w, dead, e) != 0 || charge_rows(w, dead, e) != 0))
        return err_wrap(e, "clearing up after %s", dead);
    slot->is_charged = true;
    if (free_keys(w, dead, e) != 0)
        return err_wrap(e, "freeing the keys of %s", dead);
    hold_clear(&slot->hold);
    return 0;
}
