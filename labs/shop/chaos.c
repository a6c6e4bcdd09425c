/* chaos: the thread that starts a fault and waits until the pool has caught up. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "labs/shop/page.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"

enum { TICK_MS = 20, AGAIN_MS = 1000, RECOVERY_MS = 120000 };

/* ---- what others read ---- */

void chaos_document(const struct page *p, json_t *doc)
{
    json_t *buttons = json_array(), *faults = json_array();

    for (size_t i = 0; i < action_ct; i++) {
        if (!actions[i].of_gateway || p->config->gateway_url[0] != '\0')
            (void)json_array_append_new(
                buttons,
                json_pack("{s:s,s:s,s:s,s:b}", "name", actions[i].name, "title",
                          actions[i].title, "sentence", actions[i].sentence,
                          "breaks_plain", (int)actions[i].breaks_plain));
    }
    for (size_t i = 0; i < FAULTS_KEPT; i++) {
        const struct fault *f =
            &p->faults[(p->next + FAULTS_KEPT - 1 - i) % FAULTS_KEPT];

        if (f->action != NULL)
            (void)json_array_append_new(
                faults,
                json_pack("{s:s,s:o,s:I,s:I,s:I,s:b}", "fault", f->action->title,
                          "what", doc_string(f->what), "at_ms",
                          (json_int_t)f->at_unix_ms, "lasts_ms",
                          (json_int_t)f->lasts_ms, "recovered_ms",
                          (json_int_t)f->recovered_ms, "is_over", (int)f->is_over));
    }
    (void)json_object_set_new(doc, "token", json_string(p->token));
    (void)json_object_set_new(doc, "actions", buttons);
    (void)json_object_set_new(doc, "faults", faults);
    (void)json_object_set_new(doc, "is_busy", json_boolean(p->wanted != NULL));
}

bool chaos_start(struct page *p, const struct action *action)
{
    bool is_free;

    (void)pthread_mutex_lock(&p->mutex);
    is_free = p->wanted == NULL;
    if (is_free)
        p->wanted = action;
    (void)pthread_cond_signal(&p->wanted_came);
    (void)pthread_mutex_unlock(&p->mutex);
    return is_free;
}

/* ---- a fault ---- */

static void
note(struct page *p, const struct hit *h, int64_t recovered_ms, bool is_over)
{
    struct fault *f = &p->faults[(p->next + FAULTS_KEPT - 1) % FAULTS_KEPT];

    (void)pthread_mutex_lock(&p->mutex);
    (void)snprintf(f->what, sizeof f->what, "%s", h->what);
    f->lasts_ms = h->lasts_ms;
    f->recovered_ms = recovered_ms;
    f->is_over = is_over;
    (void)pthread_mutex_unlock(&p->mutex);
}

static void note_begin(struct page *p, const struct action *action)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->faults[p->next] = (struct fault){
        .action = action, .at_unix_ms = view_now_ms(), .recovered_ms = -1};
    p->next = (p->next + 1) % FAULTS_KEPT;
    (void)pthread_mutex_unlock(&p->mutex);
}

/* A server that was cut off or restarted meanwhile is asked again. */
static int keep_connected(const struct page *p, struct pg **pg, struct err *e)
{
    if (pg_is_usable(*pg))
        return 0;
    pg_close(*pg);
    *pg = NULL;
    return shop_connect(p->config, "chaos", pg, e);
}

/* The pool has caught up when nothing is left of what was there as the fault ended. */
static int64_t await_recovery(struct page *p, struct pg **pg, int64_t begun_ms)
{
    int64_t until_ms = clk_ms() + RECOVERY_MS;
    struct pg_param last[2];
    bool is_known = false;

    for (; clk_ms() < until_ms; clk_pause_ms(TICK_MS)) {
        struct pg_result *res;
        struct err e = {0};
        int64_t left = 1;

        if (keep_connected(p, pg, &e) != 0)
            continue;
        if (!is_known && pg_exec(*pg, SQL_SHOP_LAST_WORK, NULL, 0, &res, &e) == 0) {
            last[0] = pg_int8(pg_get_int8(res, 0, 0));
            last[1] = pg_int8(pg_get_int8(res, 0, 1));
            is_known = true;
            pg_result_free(res);
        }
        if (is_known && pg_ask(*pg, SQL_SHOP_IS_LEFT, last, 2, &left, &e) == 0 &&
            left == 0)
            return clk_ms() - begun_ms;
    }
    return -1;
}

/* The workers under the plain lock get the same fault. */
static void tell_shop(struct pg *pg, const struct action *action, const struct hit *h)
{
    const struct pg_param params[] = {pg_text(action->name), pg_int8(h->lasts_ms)};
    struct err e = {0};

    if (pg_exec(pg, SQL_SHOP_TELL_FAULT, params, 2, NULL, &e) != 0)
        log_warn("shop.untold", "fault=%s err=%s", action->name, LOG_TEXT(e.msg));
}

static void set_lasting(struct page *p, struct hit *h)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->hit = h;
    (void)pthread_mutex_unlock(&p->mutex);
}

static void run(struct page *p, const struct action *action, struct pg **pg)
{
    struct hit h = {.config = p->config};
    struct err e = {0};
    int64_t begun_ms;

    note_begin(p, action);
    if (keep_connected(p, pg, &e) != 0 || action->begin(&h, *pg, &e) != 0) {
        (void)snprintf(h.what, sizeof h.what, "failed: %.180s", e.msg);
        pg_close(h.pg);
        note(p, &h, -1, true);
        return;
    }
    begun_ms = clk_ms(); /* a worker or a row may have been looked for until now */
    log_warn("shop.chaos", "fault=%s what=\"%s\" lasts_ms=%lld", action->name, h.what,
             (long long)h.lasts_ms);
    set_lasting(p, action->end != NULL ? &h : NULL);
    tell_shop(*pg, action, &h);
    note(p, &h, -1, false);
    while (clk_ms() < begun_ms + h.lasts_ms)
        clk_pause_ms(TICK_MS);
    set_lasting(p, NULL);
    if (action->end != NULL)
        action->end(&h);
    pg_close(h.pg);
    note(p, &h, await_recovery(p, pg, begun_ms), true);
}

static void *live(void *arg)
{
    struct page *p = arg;
    struct pg *pg = NULL;
    struct err e = {0};

    while (keep_connected(p, &pg, &e) != 0 || hits_wake(pg, &e) != 0) {
        e = (struct err){0};
        clk_pause_ms(AGAIN_MS);
    }
    hits_answer(&(struct hit){.config = p->config});
    (void)pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (p->wanted == NULL)
            (void)pthread_cond_wait(&p->wanted_came, &p->mutex);
        (void)pthread_mutex_unlock(&p->mutex);
        run(p, p->wanted, &pg);
        (void)pthread_mutex_lock(&p->mutex);
        p->wanted = NULL;
    }
    return NULL;
}

int chaos_open(struct page *p, struct err *e)
{
    unsigned char raw[PAGE_TOKEN / 2];
    pthread_t thread;

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return err_set(e, ERR_CONFIG, "no random bytes");
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(p->token + 2 * i, 3, "%02x", raw[i]);
    (void)pthread_cond_init(&p->wanted_came, NULL);
    return pthread_create(&thread, NULL, live, p) == 0
               ? 0
               : err_set(e, ERR_NOMEM, "no thread");
}
