/* endless: one memory of what was said, shared by the workers of a pool. */
#include "worker/endless.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/batch.h"

enum { PATIENCE_LEASES = 3 };

/* FNV-1a; never 0, which is an empty place. */
static unsigned long long hash_of(const char *name)
{
    unsigned long long hash = 14695981039346656037ULL;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
    return hash | 1;
}

/* With all places taken the pool has said enough. */
static bool is_news(atomic_ullong *said, unsigned long long hash)
{
    for (size_t i = 0; i < SLOT_ENDLESS; i++) {
        unsigned long long there = 0;

        if (atomic_compare_exchange_strong(&said[i], &there, hash))
            return true;
        if (there == hash)
            return false;
    }
    return false;
}

void endless_note(struct worker *w)
{
    for (size_t i = 0; i < w->batch->key_ct; i++) {
        const char *name = w->batch->keys[i].name;

        if (ll_key_code(w->lock, i) != LL_BUSY || ll_key_busy_ms(w->lock, i) != -1)
            continue;
        w->met_endless = true;
        if (is_news(w->endless, hash_of(name)))
            log_warn("lock.endless",
                     "key=%s reason=\"it has no time to live, so no pool set it and "
                     "nothing ends it\" remedy=\"ledgerlock locks release %s\"",
                     name, name);
    }
}

bool endless_is_all(struct worker *w, bool worked)
{
    if (worked || w->idle_since_ms == 0) {
        endless_restart(w);
        return false;
    }
    return w->met_endless &&
           clk_ms() - w->idle_since_ms >= PATIENCE_LEASES * w->config->lease_ms;
}

void endless_restart(struct worker *w)
{
    w->idle_since_ms = clk_ms();
    w->met_endless = false;
}
