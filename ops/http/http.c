/* http: the threads, the end. */
#define _DEFAULT_SOURCE
#include "ops/http/http.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "ops/audit/audit.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/address.h"

enum {
    REFRESH_MS = 1000,
    STALE_MS = 10000,       /* a reading, and its pause, may take so much longer */
    AUDIT_REST = 200,       /* no audit for so many times as long as the last took */
    IDLE_S = 15,            /* a client that does not read its answer */
    MEMORY_MAX = 16 * 1024, /* of one connection: its headers must fit */
    CONNECTIONS_MAX = 512
};

/* ---- what is read ---- */

static void publish(struct http *h)
{
    size_t length;
    char *document = document_compose(h, &length);

    if (document == NULL)
        return;
    free(h->document);
    h->document = document;
    h->length = length;
    h->version++;
    events_wake(h);
}

/* Members of a reading that the page tells elsewhere. */
static const char *const not_shown[] = {"audit", "now", "workers", "working",
                                        "counted"};

/* Reads the tables on its own connection, which is opened again when it broke. Returns
 * how long to leave them alone then: a wait for a lock has cost nobody anything. */
static int64_t read_tables(struct http *h, struct pg **pg)
{
    json_t *tables = NULL;
    struct err e = {0};
    int64_t begun_ms, pause_ms;
    bool is_first = !pg_is_usable(*pg);

    (void)!view_connect(h->order->config, "http", pg, &e);
    begun_ms = clk_ms();
    if (e.code == 0)
        (void)!view_read_tables(*pg, h->order->now, &tables, &e);
    pause_ms = view_pause_ms(VIEW_REST, is_first,
                             e.code != ERR_CONFLICT ? clk_ms() - begun_ms : 0);
    (void)pthread_mutex_lock(&h->mutex);
    if (e.code == 0) {
        json_decref(h->tables);
        h->tables = json_incref(tables);
        json_decref(h->audit);
        h->audit = json_incref(json_object_get(tables, "audit"));
        for (size_t i = 0; i < sizeof not_shown / sizeof not_shown[0]; i++)
            (void)json_object_del(tables, not_shown[i]);
        h->tables_ms = clk_ms();
        h->stale_ms = STALE_MS + 2 * (clk_ms() + pause_ms - begun_ms);
        h->trouble[0] = '\0';
        h->is_cut = false;
    } else {
        (void)snprintf(h->trouble, sizeof h->trouble, "%.299s", e.msg);
        h->is_cut = e.code == ERR_CONN;
    }
    if (h->document == NULL)
        publish(h);
    (void)pthread_mutex_unlock(&h->mutex);
    json_decref(tables);
    return pause_ms;
}

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
static void audit_once(struct http *h)
{
    const struct audit_order order = {.now = h->order->now, .lag_s = 86400};
    json_t *audit = NULL;
    struct pg *pg = NULL;
    struct err e = {0};
    int64_t begun_ms = clk_ms();

    if (cli_open(h->order->config, "http audit", &pg, &e) != 0 ||
        audit_gather(pg, &order, &audit, &e) != 0 ||
        report_audit(pg, audit, clk_ms() - begun_ms, &e) != 0)
        log_warn("http.no_audit", "code=LL-5007 err=%s", LOG_TEXT(e.msg));
    (void)pthread_mutex_lock(&h->mutex);
    (void)snprintf(h->audit_trouble, sizeof h->audit_trouble, "%.299s",
                   e.code == 0 ? "" : e.msg);
    (void)pthread_mutex_unlock(&h->mutex);
    json_decref(audit);
    pg_close(pg);
}

static bool is_ending(struct http *h)
{
    bool is_ending;

    (void)pthread_mutex_lock(&h->mutex);
    is_ending = h->is_ending;
    (void)pthread_mutex_unlock(&h->mutex);
    return is_ending;
}

int64_t http_audit_pause_ms(int64_t every_ms, int64_t took_ms)
{
    int64_t rest_ms = AUDIT_REST * took_ms;

    return rest_ms > every_ms ? rest_ms : every_ms;
}

static void *read_now_and_then(void *arg)
{
    struct http *h = arg;
    struct pg *pg = NULL;

    while (!is_ending(h))
        clk_pause_ms(read_tables(h, &pg));
    return NULL;
}

static void *audit_now_and_then(void *arg)
{
    struct http *h = arg;
    int64_t every_ms = h->order->config->http_audit_every_s * 1000;
    int64_t next_ms = 0;

    while (every_ms > 0 && !is_ending(h)) {
        int64_t begun_ms = clk_ms();

        if (begun_ms >= next_ms) {
            audit_once(h);
            next_ms = clk_ms() + http_audit_pause_ms(every_ms, clk_ms() - begun_ms);
        }
        clk_pause_ms(200);
    }
    return NULL;
}

/* ---- the process ---- */

static struct MHD_Daemon *start(struct http *h)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL,
        NULL, answer, h, MHD_OPTION_LISTEN_SOCKET, h->order->fd,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_END);
}

/* The memory of the pool changes also while no table can be read. */
static void publish_until_told(struct http *h, const sigset_t *stops)
{
    static const struct timespec pause = {REFRESH_MS / 1000,
                                          REFRESH_MS % 1000 * 1000000L};

    while (sigtimedwait(stops, NULL, &pause) < 0) {
        (void)pthread_mutex_lock(&h->mutex);
        if (h->document != NULL) /* the first one has the tables, or why it has none */
            publish(h);
        (void)pthread_mutex_unlock(&h->mutex);
    }
}

static void serve(const struct companion_order *order)
{
    static void *(*const threads[])(void *) = {read_now_and_then, audit_now_and_then,
                                               ping_redis};
    struct http h = {
        .order = order, .begun_ms = clk_ms(), .mutex = PTHREAD_MUTEX_INITIALIZER};
    sigset_t stops;

    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    h.daemon = start(&h);
    if (h.daemon == NULL) {
        log_error("http.failed",
                  "code=LL-5008 err=\"the listening socket could not be used\"");
        return;
    }
    log_info("http.listening", "at=%s", order->config->http_listen);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, threads[i], &h) != 0) {
            log_error("http.failed", "code=LL-5008 err=\"no thread\"");
            return;
        }
    }
    publish_until_told(&h, &stops);
    (void)pthread_mutex_lock(&h.mutex);
    h.is_ending = true;
    events_wake(&h);
    (void)pthread_mutex_unlock(&h.mutex);
    _exit(EXIT_OK); /* nothing of it outlives the process; an audit may still run */
}

const struct companion companion_http = {.open = address_listen, .serve = serve};
