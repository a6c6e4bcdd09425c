/* trouble: whose an error of a worker is. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/pool/worker_inside.h"

void worker_note_trouble(struct worker *w, enum slot_state state, const char *why)
{
    (void)snprintf(w->slot->trouble, sizeof w->slot->trouble, "%.699s", why);
    w->slot->trouble_ms = clk_ms();
    w->slot->state = state;
}

/* A server that is full or sick answers with an error: it is no outage. A password file
 * that cannot be read now, or a pooler that was put before the server, is waited for.
 */
bool worker_is_outage(const struct worker *w, const struct err *e)
{
    if (pg_is_usable(w->session.pg))
        return false;
    if (e->code == ERR_TIMEOUT || e->code == ERR_CONFIG)
        return true;
    return e->code == ERR_CONN && strncmp(e->sqlstate, "58", 2) != 0 &&
           (strncmp(e->sqlstate, "53", 2) != 0 || strcmp(e->sqlstate, "53300") == 0);
}

/* A collision or a timeout is none, unless they let nothing be committed for a lease.
 */
bool worker_is_fault(struct worker *w, const struct err *e)
{
    if (e->code != ERR_CONFLICT && e->code != ERR_TIMEOUT && e->code != ERR_UNKNOWN)
        return true;
    session_count(&w->session, COUNT_conflicts, 1);
    pool_progress_note(&w->progress, &w->session, false);
    return pool_progress_age_ms(&w->progress) > w->session.config->lease_ms;
}

/* Rights and tables were there when the pool started: they may come back, as after a
 * restore. */
bool worker_is_refusal(const struct err *e)
{
    return e->code == ERR_DENIED || e->code == ERR_SCHEMA;
}
