/* health: is the pool alive, and can it work; both are answered from memory. A worker
 * that has nothing to do asks Redis for nothing, so a thread of this process takes a
 * lock now and then, with a connection of its own. */
#include <stdio.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "worker/batch/batch.h"
#include "worker/http/http.h"

enum { SILENT_MS = 10000 }; /* the supervisor goes round five times a second */

bool health_is_alive(const struct http *h, FILE *out)
{
    int64_t silent_ms = clk_ms() - h->order->shared->tick_ms;
    char silent[AGE_TEXT];

    if (silent_ms > SILENT_MS) {
        (void)fprintf(out, "the supervisor has not gone round for %s\n",
                      age_text(silent_ms, silent));
        return false;
    }
    (void)fputs("ok\n", out);
    return true;
}

/* ---- can it work? ---- */

const char *health_state(enum slot_state state)
{
    static const char *const names[SLOT_STATES] = {
        [SLOT_STARTS] = "starts",       [SLOT_POSTGRES_DOWN] = "postgres_down",
        [SLOT_CONNECTED] = "connected", [SLOT_REFUSED] = "refused",
        [SLOT_FAULT] = "fault",         [SLOT_REDIS_DOWN] = "redis_down",
        [SLOT_WORKS] = "works",         [SLOT_REDIS_WAITS] = "redis_waits",
    };

    return state < SLOT_STATES ? names[state] : "unknown";
}

static bool is_ready(enum slot_state state)
{
    return state == SLOT_CONNECTED || state == SLOT_WORKS;
}

bool health_is_ready(const struct http *h, FILE *out)
{
    bool is_ok = true;

    for (size_t i = 0; i < h->order->slot_ct; i++) {
        const struct slot *slot = &h->order->shared->slots[i];
        enum slot_state state = slot->state;

        if (slot->pid != 0 && is_ready(state))
            continue;
        is_ok = false;
        (void)fprintf(out, "worker %zu of %s: %s%s%s\n", i, slot->job->name,
                      slot->pid == 0 ? "does not run" : health_state(state),
                      slot->trouble[0] != '\0' ? ": " : "", slot->trouble);
    }
    if (h->redis_trouble[0] != '\0')
        (void)fprintf(out, "Redis grants no lock: %s\n", h->redis_trouble);
    else if (is_ok)
        (void)fputs("ok\n", out);
    return is_ok && h->redis_trouble[0] == '\0';
}

/* ---- does Redis grant locks? ---- */

enum { PING_MS = 2000, AGAIN_MS = 500 };

/* A first failure may be a server that was slow once: the second one counts. */
static void note(struct http *h, int failures, const struct err *e)
{
    (void)pthread_mutex_lock(&h->mutex);
    if (failures != 1)
        (void)snprintf(h->redis_trouble, sizeof h->redis_trouble, "%.299s", e->msg);
    (void)pthread_mutex_unlock(&h->mutex);
}

static int ping(struct session *s, struct err *e)
{
    int code = session_open_locks(s, e);

    if (code != 0 || s->locks == NULL) /* no locks in Redis are wanted */
        return code;
    if (batch_try_lock(s, e) != 0)
        session_forget_secret(s);
    return (int)e->code;
}

void *ping_redis(void *arg)
{
    struct http *h = arg;
    struct session s = {.config = h->order->config};
    int failures = 0;

    for (;;) {
        struct err e = {0};

        failures = ping(&s, &e) == 0 ? 0 : failures + 1;
        note(h, failures, &e);
        clk_pause_ms(failures == 0 ? PING_MS : AGAIN_MS);
    }
    return NULL;
}
