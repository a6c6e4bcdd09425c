/* chaos: the thread that starts a fault and waits for the recovery. */
#include "ops/http/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"

enum { TICK_MS = 20, RECOVERY_MS = 120000 };

/* ---- what others read ---- */

json_t *chaos_document(const struct chaos *c)
{
    json_t *actions = json_array(), *faults = json_array();

    for (size_t i = 0; i < chaos_action_ct; i++)
        (void)json_array_append_new(
            actions,
            json_pack("{s:s,s:s,s:s,s:b}", "name", chaos_actions[i].name, "title",
                      chaos_actions[i].title, "sentence", chaos_actions[i].sentence,
                      "breaks_plain", (int)chaos_actions[i].breaks_plain));
    for (size_t i = 0; i < CHAOS_KEPT; i++) {
        const struct chaos_fault *f =
            &c->faults[(c->next + CHAOS_KEPT - 1 - i) % CHAOS_KEPT];

        if (f->action != NULL)
            (void)json_array_append_new(
                faults,
                json_pack("{s:s,s:o,s:I,s:I,s:I,s:b}", "fault", f->action->title,
                          "what", doc_string(f->what), "at_ms",
                          (json_int_t)f->at_unix_ms, "lasts_ms",
                          (json_int_t)f->lasts_ms, "recovered_ms",
                          (json_int_t)f->recovered_ms, "is_over", (int)f->is_over));
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "token", c->token, "actions", actions,
                     "faults", faults, "is_busy", (int)(c->wanted != NULL));
}

int chaos_read_plain(struct pg *pg, json_t *doc, struct err *e)
{
    int64_t has_shop = 0;

    if (pg_ask(pg, SQL_CHAOS_HAS_SHOP, NULL, 0, &has_shop, e) != 0 || has_shop == 0)
        return (int)e->code;
    return doc_first(doc, "plain", pg, SQL_CHAOS_READ_PLAIN, NULL, 0, e);
}

bool chaos_start(struct chaos *c, const struct chaos_action *action)
{
    bool is_free;

    (void)pthread_mutex_lock(&c->h->mutex);
    is_free = c->wanted == NULL;
    if (is_free)
        c->wanted = action;
    (void)pthread_cond_signal(&c->wanted_came);
    (void)pthread_mutex_unlock(&c->h->mutex);
    return is_free;
}

/* ---- a fault ---- */

static void
note(struct chaos *c, const struct chaos_run *r, int64_t recovered_ms, bool is_over)
{
    struct chaos_fault *f = &c->faults[(c->next + CHAOS_KEPT - 1) % CHAOS_KEPT];

    (void)pthread_mutex_lock(&c->h->mutex);
    (void)snprintf(f->what, sizeof f->what, "%s", r->what);
    f->lasts_ms = r->lasts_ms;
    f->recovered_ms = recovered_ms;
    f->is_over = is_over;
    (void)pthread_mutex_unlock(&c->h->mutex);
}

static void note_begin(struct chaos *c, const struct chaos_action *action)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)pthread_mutex_lock(&c->h->mutex);
    c->faults[c->next] = (struct chaos_fault){.action = action,
                                              .at_unix_ms = (int64_t)ts.tv_sec * 1000 +
                                                            ts.tv_nsec / 1000000,
                                              .recovered_ms = -1};
    c->next = (c->next + 1) % CHAOS_KEPT;
    (void)pthread_mutex_unlock(&c->h->mutex);
}

/* The workers of a shop that knows no guard get the same fault. Without a shop nobody
 * is told. */
static void tell_shop(const struct chaos_action *action, const struct chaos_run *r)
{
    const struct pg_param params[] = {pg_text(action->name), pg_int8(r->lasts_ms)};
    struct err ignored = {0};
    int64_t has_shop = 0;
    struct pg *pg = NULL;

    if (cli_connect(r->order->config, "chaos", &pg, &ignored) == 0 &&
        pg_ask(pg, SQL_CHAOS_HAS_SHOP, NULL, 0, &has_shop, &ignored) == 0 &&
        has_shop != 0)
        (void)!pg_exec(pg, SQL_CHAOS_TELL_SHOP, params, 2, NULL, &ignored);
    pg_close(pg);
}

/* Of the worker that the fault befell, or of all. */
static int64_t rounds(const struct chaos_run *r)
{
    int64_t sum = 0;

    for (size_t i = 0; i < r->order->slot_ct; i++) {
        if (r->pid == 0 || i == r->slot)
            sum += r->order->shared->slots[i].rounds;
    }
    return sum;
}

static bool do_all_work(const struct companion_order *order)
{
    for (size_t i = 0; i < order->slot_ct; i++) {
        if (order->shared->slots[i].pid == 0 ||
            order->shared->slots[i].state != SLOT_WORKS)
            return false;
    }
    return true;
}

/* Every worker works; since the fault ended, the one that it befell (or any) has
 * committed a batch, or had nothing to do; and the incidents that came of the fault are
 * over. The time of the recovery is theirs, so the fault and the timeline tell the same
 * one; a fault of which no incident came is over now. Returns -1: not yet. */
static int64_t recovered_ms(const struct chaos_run *r)
{
    struct timeline_span span;
    int64_t begun_ms, ended_ms;

    if (!do_all_work(r->order) || rounds(r) <= r->rounds)
        return -1;
    span = timeline_since(&r->order->shared->timeline, r->incidents);
    if (span.ct > 0 && span.ended_ms == 0)
        return -1;
    begun_ms = span.ct > 0 && r->pid != 0 ? span.begun_ms : r->begun_ms;
    ended_ms = span.ct > 0 ? span.ended_ms : clk_ms();
    if (ended_ms < begun_ms + r->lasts_ms)
        ended_ms = begun_ms + r->lasts_ms;
    return ended_ms - begun_ms;
}

/* The fault ends by itself; then the pool recovers, or the time is over: -1. */
static int64_t await_recovery(struct chaos_run *r, const struct chaos_action *action)
{
    int64_t until_ms = r->begun_ms + r->lasts_ms + RECOVERY_MS, took_ms;
    bool dies = r->pid != 0 && action->end == NULL;

    while (clk_ms() < r->begun_ms + r->lasts_ms)
        clk_pause_ms(TICK_MS);
    r->rounds = rounds(r);
    if (action->end != NULL)
        action->end(r);
    pg_close(r->pg);
    r->pg = NULL;
    for (;;) {
        bool is_dead = dies && r->order->shared->slots[r->slot].pid == r->pid;

        took_ms = is_dead ? -1 : recovered_ms(r);
        if (took_ms >= 0 || clk_ms() > until_ms)
            return took_ms;
        clk_pause_ms(TICK_MS);
    }
}

static void run(struct chaos *c, const struct chaos_action *action)
{
    struct chaos_run r = {.order = c->h->order};
    struct err e = {0};

    r.incidents = r.order->shared->timeline.count;
    note_begin(c, action);
    if (action->begin(&r, &e) != 0) {
        (void)snprintf(r.what, sizeof r.what, "failed: %.180s", e.msg);
        pg_close(r.pg);
        note(c, &r, -1, true);
        return;
    }
    r.begun_ms = clk_ms(); /* a worker or a row may have been looked for until now */
    log_warn("http.chaos", "code=LL-5021 fault=%s what=\"%s\" lasts_ms=%lld",
             action->name, r.what, (long long)r.lasts_ms);
    tell_shop(action, &r);
    note(c, &r, -1, false);
    note(c, &r, await_recovery(&r, action), true);
}

static void *live(void *arg)
{
    struct chaos *c = arg;

    (void)pthread_mutex_lock(&c->h->mutex);
    for (;;) {
        while (c->wanted == NULL)
            (void)pthread_cond_wait(&c->wanted_came, &c->h->mutex);
        (void)pthread_mutex_unlock(&c->h->mutex);
        run(c, c->wanted);
        (void)pthread_mutex_lock(&c->h->mutex);
        c->wanted = NULL;
    }
    return NULL;
}

/* A process before us may have died while a worker stood still. */
static void wake_workers(const struct companion_order *order)
{
    for (size_t i = 0; i < order->slot_ct; i++) {
        pid_t pid = order->shared->slots[i].pid;

        if (pid != 0)
            (void)kill(pid, SIGCONT);
    }
}

struct chaos *chaos_open(struct http *h)
{
    static struct chaos only;
    struct chaos *c = &only;
    unsigned char raw[CHAOS_TOKEN / 2];
    pthread_t thread;

    c->h = h;
    wake_workers(h->order);
    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return NULL;
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(c->token + 2 * i, 3, "%02x", raw[i]);
    (void)pthread_cond_init(&c->wanted_came, NULL);
    log_warn(
        "http.chaos_allowed",
        "code=LL-5020 reason=\"who can open the page can kill workers and wipe Redis\"");
    return pthread_create(&thread, NULL, live, c) == 0 ? c : NULL;
}
