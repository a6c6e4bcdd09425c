/* health: is the pool alive, and can it work; both are answered from memory. A worker
 * that has nothing to do asks Redis for nothing, so a thread of this process takes a
 * lock now and then, with a connection of its own; another one reads the tables.
 * Nothing that was seen long ago is taken for well: the supervisor, each worker and
 * both threads leave the time when they last came round. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "ops/http/http.h"
#include "worker/batch/batch.h"
#include "worker/pool/visit.h"

enum { SILENT_MS = 10000 }; /* the supervisor goes round five times a second */

static bool goes_round(const struct http *h, FILE *out)
{
    int64_t silent_ms = clk_ms() - h->order->shared->tick_ms;
    char silent[AGE_TEXT];

    if (silent_ms > SILENT_MS)
        (void)fprintf(out, "the supervisor has not gone round for %s\n",
                      age_text(silent_ms, silent));
    return silent_ms <= SILENT_MS;
}

static bool say_ok(bool is_ok, FILE *out)
{
    if (is_ok)
        (void)fputs("ok\n", out);
    return is_ok;
}

bool health_is_alive(const struct http *h, FILE *out)
{
    return say_ok(goes_round(h, out), out);
}

/* ---- how is a worker? ---- */

unsigned health_of(const struct http *h, size_t i)
{
    const struct slot *slot = &h->order->shared->slots[i];
    enum slot_state state = slot->state;

    if (slot->pid == 0 || state >= SLOT_STATES)
        return HEALTH_GONE;
    if (clk_ms() - slot->back_ms > SILENT_MS + h->order->config->lease_ms)
        return HEALTH_SILENT;
    return (unsigned)state;
}

const char *health_name(unsigned health)
{
    static const char *const names[HEALTH_STATES] = {
        [SLOT_STARTS] = "starts",       [SLOT_POSTGRES_DOWN] = "postgres_down",
        [SLOT_CONNECTED] = "connected", [SLOT_REFUSED] = "refused",
        [SLOT_FAULT] = "fault",         [SLOT_REDIS_DOWN] = "redis_down",
        [SLOT_WORKS] = "works",         [SLOT_REDIS_WAITS] = "redis_waits",
        [HEALTH_GONE] = "gone",         [HEALTH_SILENT] = "silent",
    };

    return names[health];
}

bool health_is_well(unsigned health)
{
    return health == SLOT_CONNECTED || health == SLOT_WORKS;
}

const char *health_trouble(const struct http *h, size_t i)
{
    unsigned health = health_of(h, i);

    return health < SLOT_STATES && !health_is_well(health)
               ? h->order->shared->slots[i].trouble
               : "";
}

/* ---- can it work? ---- */

/* Workers of cells leave one that they cannot work for another: such trouble is of the
 * cell, and the pool can work while it works any. */
static bool is_of_its_cell(const struct http *h, unsigned health)
{
    const struct shared *shared = h->order->shared;
    bool works_one = false;

    if (h->reading_ct < 2 || health == SLOT_STARTS || health == SLOT_REDIS_DOWN ||
        health == SLOT_REDIS_WAITS || health == HEALTH_SILENT)
        return false;
    for (size_t i = 0; i < h->reading_ct; i++)
        works_one = works_one || (shared->cells.of[i].is_checked &&
                                  visit_away_since(&shared->cells.of[i]) == 0);
    return works_one;
}

static bool are_workers_ready(const struct http *h, FILE *out)
{
    bool are_all = true;

    for (size_t i = 0; i < h->order->slot_ct; i++) {
        unsigned health = health_of(h, i);
        const char *trouble = health_trouble(h, i);

        if (health_is_well(health) || is_of_its_cell(h, health))
            continue;
        are_all = false;
        (void)fprintf(out, "worker %zu of %s: %s%s%s\n", i,
                      h->order->shared->slots[i].job->name, health_name(health),
                      trouble[0] != '\0' ? ": " : "", trouble);
    }
    return are_all;
}

static int64_t redis_silent_ms(const struct http *h)
{
    return clk_ms() - (h->redis_ms != 0 ? h->redis_ms : h->begun_ms);
}

bool health_has_redis(const struct http *h)
{
    return h->redis_trouble[0] == '\0' && redis_silent_ms(h) <= SILENT_MS;
}

static bool is_redis_there(const struct http *h, FILE *out)
{
    char silent[AGE_TEXT];

    if (h->redis_trouble[0] != '\0')
        (void)fprintf(out, "Redis grants no lock: %s\n", h->redis_trouble);
    else if (!health_has_redis(h))
        (void)fprintf(out, "Redis has not answered for %s\n",
                      age_text(redis_silent_ms(h), silent));
    return health_has_redis(h);
}

bool health_is_read(const struct reading *r)
{
    return r->tables_ms != 0 ? clk_ms() - r->tables_ms <= r->stale_ms
                             : clk_ms() - r->http->begun_ms <= SILENT_MS;
}

static void say_unread(const struct reading *r, FILE *out)
{
    const char *before = r->trouble[0] != '\0' ? ": " : "";
    char ago[AGE_TEXT];

    if (r->config.cell != CELL_NONE)
        (void)fprintf(out, "cell %" PRId64 ": ", r->config.cell);
    if (r->is_cut)
        (void)fprintf(out, "PostgreSQL does not answer: %s\n", r->trouble);
    else if (r->tables_ms == 0)
        (void)fprintf(out, "the tables have not been read yet%s%s\n", before,
                      r->trouble);
    else
        (void)fprintf(out, "the tables were last read %s ago%s%s\n",
                      age_text(clk_ms() - r->tables_ms, ago), before, r->trouble);
}

/* Of one database; a cell that cannot be read stops no other. */
static bool are_tables_read(const struct http *h, FILE *out)
{
    size_t n = 0;

    for (size_t i = 0; i < h->reading_ct; i++)
        n += !h->readings[i].is_cut && health_is_read(&h->readings[i]);
    for (size_t i = 0; n == 0 && i < h->reading_ct; i++)
        say_unread(&h->readings[i], out);
    return n > 0;
}

/* Each says what is wrong with it. */
bool health_is_ready(const struct http *h, FILE *out)
{
    bool is_ok = goes_round(h, out);

    is_ok = are_workers_ready(h, out) && is_ok;
    is_ok = is_redis_there(h, out) && is_ok;
    is_ok = are_tables_read(h, out) && is_ok;
    return say_ok(is_ok, out);
}

/* ---- does Redis grant locks? ---- */

enum { PING_MS = 2000, AGAIN_MS = 500 };

void health_note_redis(struct http *h, int failures, const struct err *e)
{
    (void)pthread_mutex_lock(&h->mutex);
    if (failures != 1)
        (void)snprintf(h->redis_trouble, sizeof h->redis_trouble, "%.299s", e->msg);
    h->redis_ms = clk_ms();
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
        health_note_redis(h, failures, &e);
        clk_pause_ms(failures == 0 ? PING_MS : AGAIN_MS);
    }
    return NULL;
}
