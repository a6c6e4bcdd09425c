/* chaos: the thread that starts a fault and waits for the recovery. */
#include "worker/http/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/cli/cli.h"
#include "worker/cli/json.h"

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
                json_pack("{s:s,s:o,s:I,s:I,s:I,s:b}", "fault", f->action->name, "what",
                          doc_string(f->what), "at_ms", (json_int_t)f->at_unix_ms,
                          "lasts_ms", (json_int_t)f->lasts_ms, "recovered_ms",
                          (json_int_t)f->recovered_ms, "is_over", (int)f->is_over));
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "token", c->token, "actions", actions,
                     "faults", faults, "is_busy", (int)(c->wanted != NULL));
}

int chaos_read_plain(struct pg *pg, json_t *doc, struct err *e)
{
    if (doc_first(doc, "plain", pg, SQL_CHAOS_READ_PLAIN, NULL, 0, e) != 0 &&
        (e->code == ERR_SCHEMA || e->code == ERR_DENIED)) /* no shop is here */
        *e = (struct err){0};
    return (int)e->code;
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
    struct pg *pg = NULL;

    if (cli_connect(r->order->config, "chaos", &pg, &ignored) == 0)
        (void)!pg_exec(pg, SQL_CHAOS_TELL_SHOP, params, 2, NULL, &ignored);
    pg_close(pg);
}

/* Each worker is ready, the one that died has a successor, and since the fault ended a
 * batch was committed. */
static bool has_recovered(const struct chaos_run *r, long long commits)
{
    char text[2048];
    FILE *out = fmemopen(text, sizeof text, "w");
    struct http h = {.order = r->order};
    bool is_ready;

    if (out == NULL)
        return false;
    is_ready = health_is_ready(&h, out);
    (void)fclose(out);
    return is_ready && r->order->shared->commits > commits;
}

static void run(struct chaos *c, const struct chaos_action *action)
{
    struct chaos_run r = {.order = c->h->order};
    struct err e = {0};
    int64_t begun_ms;
    long long commits;

    note_begin(c, action);
    if (action->begin(&r, &e) != 0) {
        (void)snprintf(r.what, sizeof r.what, "failed: %.180s", e.msg);
        pg_close(r.pg);
        note(c, &r, -1, true);
        return;
    }
    begun_ms = clk_ms(); /* a worker or a row may have been looked for until now */
    log_warn("http.chaos", "code=LL-5021 fault=%s what=\"%s\" lasts_ms=%lld",
             action->name, r.what, (long long)r.lasts_ms);
    tell_shop(action, &r);
    note(c, &r, -1, false);
    while (clk_ms() < begun_ms + r.lasts_ms)
        clk_pause_ms(TICK_MS);
    if (action->end != NULL)
        action->end(&r);
    pg_close(r.pg);
    commits = r.order->shared->commits;
    while ((r.pid != 0 && action->end == NULL &&
            r.order->shared->slots[r.slot].pid == r.pid) ||
           !has_recovered(&r, commits)) {
        if (clk_ms() > begun_ms + r.lasts_ms + RECOVERY_MS) {
            note(c, &r, -1, true);
            return;
        }
        clk_pause_ms(TICK_MS);
    }
    note(c, &r, clk_ms() - begun_ms, true);
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
