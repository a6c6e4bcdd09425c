/* reading: the tables of a database, once a second, and whole audits now and then. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cells.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "ops/audit/audit.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/http.h"

enum {
    STALE_MS = 10000, /* a reading, and its pause, may take so much longer */
    AUDIT_REST = 200  /* no audit for so many times as long as the last took */
};

static bool is_ending(struct http *h)
{
    bool is_ending;

    (void)pthread_mutex_lock(&h->mutex);
    is_ending = h->is_ending;
    (void)pthread_mutex_unlock(&h->mutex);
    return is_ending;
}

/* ---- tables ---- */

/* Members of a reading that the page tells elsewhere. */
static const char *const not_shown[] = {"audit", "now", "workers", "working",
                                        "counted"};

/* Reads the tables on its own connection, which is opened again when it broke. Returns
 * how long to leave them alone then: a wait for a lock has cost nobody anything. */
static int64_t read_tables(struct reading *r, struct pg **pg)
{
    struct http *h = r->http;
    json_t *tables = NULL;
    struct err e = {0};
    int64_t begun_ms, pause_ms;
    bool is_first = !pg_is_usable(*pg);

    (void)!view_connect(&r->config, "http", pg, &e);
    begun_ms = clk_ms();
    if (e.code == 0)
        (void)!view_read_tables(*pg, h->order->now, &tables, &e);
    pause_ms = view_pause_ms(VIEW_REST, is_first,
                             e.code != ERR_CONFLICT ? clk_ms() - begun_ms : 0);
    view_drop(pg, &e);
    (void)pthread_mutex_lock(&h->mutex);
    if (e.code == 0) {
        json_decref(r->tables);
        r->tables = json_incref(tables);
        json_decref(r->audit);
        r->audit = json_incref(json_object_get(tables, "audit"));
        for (size_t i = 0; i < sizeof not_shown / sizeof not_shown[0]; i++)
            (void)json_object_del(tables, not_shown[i]);
        r->tables_ms = clk_ms();
        r->stale_ms = STALE_MS + 2 * (clk_ms() + pause_ms - begun_ms);
        r->trouble[0] = '\0';
        r->is_cut = false;
    } else {
        (void)snprintf(r->trouble, sizeof r->trouble, "%.299s", e.msg);
        r->is_cut = e.code == ERR_CONN;
    }
    if (h->document == NULL)
        document_publish(h);
    (void)pthread_mutex_unlock(&h->mutex);
    json_decref(tables);
    return pause_ms;
}

static void *read_now_and_then(void *arg)
{
    struct reading *r = arg;
    struct pg *pg = NULL;

    while (!is_ending(r->http))
        clk_pause_ms(read_tables(r, &pg));
    return NULL;
}

/* ---- audits ---- */

static int
report_audit(struct pg *pg, const json_t *audit, int64_t took_ms, struct err *e)
{
    json_t *rows = json_object_get(audit, "invariants"), *broken = json_array(), *row;
    struct pg_param params[] = {
        pg_int8(took_ms), pg_int8((int64_t)json_array_size(rows)), {0}};
    char *text = NULL;
    size_t i;
    int code = 0;

    json_array_foreach(rows, i, row)
    {
        if (code == 0 && !json_is_true(json_object_get(row, "holds")) &&
            !audit_is_work_left(doc_text(row, "name")))
            code = doc_append(broken, json_incref(json_object_get(row, "name")), e);
    }
    if (code == 0)
        text = json_dumps(broken, JSON_COMPACT);
    json_decref(broken);
    if (text == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    params[2] = pg_text(text);
    if (pg_exec(pg, SQL_HTTP_REPORT_AUDIT, params, 3, NULL, e) != 0)
        code =
            err_wrap(e, "the audit found broken: %s; this could not be written", text);
    free(text);
    return code;
}

/* The page reads the result from the table, as all pools and `status` do. */
static void audit_once(struct reading *r)
{
    const struct audit_order order = {.now = r->http->order->now, .lag_s = 86400};
    json_t *audit = NULL;
    struct pg *pg = NULL;
    struct err e = {0};
    int64_t begun_ms = clk_ms();

    if (cli_open(&r->config, "http audit", &pg, &e) != 0 ||
        audit_gather(pg, &order, &audit, &e) != 0 ||
        report_audit(pg, audit, clk_ms() - begun_ms, &e) != 0) {
        if (r->config.cell != CELL_NONE)
            (void)!err_wrap(&e, "cell %" PRId64, r->config.cell);
        log_warn("http.no_audit", "code=LL-5007 err=%s", LOG_TEXT(e.msg));
    }
    (void)pthread_mutex_lock(&r->http->mutex);
    (void)snprintf(r->audit_trouble, sizeof r->audit_trouble, "%.299s",
                   e.code == 0 ? "" : e.msg);
    (void)pthread_mutex_unlock(&r->http->mutex);
    json_decref(audit);
    pg_close(pg);
}

int64_t http_audit_pause_ms(int64_t every_ms, int64_t took_ms)
{
    int64_t rest_ms = AUDIT_REST * took_ms;

    return rest_ms > every_ms ? rest_ms : every_ms;
}

static void *audit_now_and_then(void *arg)
{
    struct reading *r = arg;
    int64_t every_ms = r->config.http_audit_every_s * 1000;
    int64_t next_ms = 0;

    while (every_ms > 0 && !is_ending(r->http)) {
        int64_t begun_ms = clk_ms();

        if (begun_ms >= next_ms) {
            audit_once(r);
            next_ms = clk_ms() + http_audit_pause_ms(every_ms, clk_ms() - begun_ms);
        }
        clk_pause_ms(200);
    }
    return NULL;
}

/* ---- the threads ---- */

static bool start_thread(void *(*work)(void *arg), struct reading *r)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, work, r) == 0;
}

bool readings_start(struct http *h)
{
    const struct cells *cells = h->order->shared->cells.list;
    size_t n = cells->n > 0 ? cells->n : 1;

    h->readings = calloc(n, sizeof *h->readings);
    if (h->readings == NULL)
        return false;
    h->reading_ct = n;
    for (size_t i = 0; i < n; i++) {
        struct reading *r = &h->readings[i];

        r->http = h;
        r->config = *h->order->config;
        if (cells->n > 0)
            cells_enter(h->order->config, &cells->of[i], &r->config);
    }
    for (size_t i = 0; i < n; i++) {
        if (!start_thread(read_now_and_then, &h->readings[i]) ||
            !start_thread(audit_now_and_then, &h->readings[i]))
            return false;
    }
    return true;
}
