/* page: the process that serves it. A button is a POST of a form that has the token of
 * this process and the word that the person confirmed it, from a page of this very
 * address. */
#define _DEFAULT_SOURCE
#include "labs/shop/page.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "labs/shop/cards.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/http.h"
#include "page_gen.h"
#include "shop_page_gen.h"

enum { BODY_MAX = 256, IDLE_S = 15, CONNECTIONS = 64 };

static const char form_type[] = "application/x-www-form-urlencoded";

/* The body of a POST as it comes. */
struct post {
    char body[BODY_MAX + 1];
    size_t n;
    bool is_long;
};

/* ---- who may press ---- */

/* The value of a field, which has no character that a form would encode. */
static bool has_field(const char *body, const char *name, const char *value)
{
    size_t n = strlen(name), length = strlen(value);

    for (const char *p = body; p != NULL; p = strchr(p, '&')) {
        unsigned different = 0;

        p += *p == '&' ? 1 : 0;
        if (strncmp(p, name, n) != 0 || p[n] != '=' ||
            strcspn(p + n + 1, "&") != length)
            continue;
        for (size_t i = 0; i < length;
             i++) /* as long for a wrong one as for the right */
            different |= (unsigned)(p[n + 1 + i] ^ value[i]);
        return different == 0;
    }
    return false;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    return value != NULL ? value : "";
}

/* A browser names the page that sends a form; it must be one of ours. */
static bool is_of_our_page(struct MHD_Connection *connection)
{
    static const char *const schemes[] = {"http://", "https://"}; /* by a proxy */
    const char *origin = header(connection, "Origin");

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i]);

        if (strncmp(origin, schemes[i], n) == 0 &&
            strcmp(origin + n, header(connection, "Host")) == 0)
            return true;
    }
    return false;
}

static bool is_a_form(struct MHD_Connection *connection)
{
    const char *type = header(connection, "Content-Type");

    return strncmp(type, form_type, sizeof form_type - 1) == 0 &&
           strchr("; ", type[sizeof form_type - 1]) != NULL; /* or its end */
}

/* ---- POST ---- */

/* The browser is to GET this path next. */
static enum MHD_Result see_other(struct MHD_Connection *connection, const char *path)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

    if (response != NULL)
        (void)MHD_add_response_header(response, "Location", path);
    return answer_with(connection, 303, answer_text, response);
}

static const struct action *find_action(const char *url)
{
    static const char before[] = "/press/";

    for (size_t i = 0; i < action_ct; i++) {
        if (strncmp(url, before, sizeof before - 1) == 0 &&
            strcmp(url + sizeof before - 1, actions[i].name) == 0)
            return &actions[i];
    }
    return NULL;
}

static enum MHD_Result begin(struct MHD_Connection *connection, void **con_cls)
{
    if (!is_of_our_page(connection))
        return answer_words(connection, 403, "only this page starts a fault\n");
    if (!is_a_form(connection))
        return answer_words(connection, 415, "a form is expected\n");
    *con_cls = calloc(1, sizeof(struct post));
    return *con_cls != NULL ? MHD_YES : MHD_NO;
}

static void append(struct post *post, const char *data, size_t size)
{
    post->is_long = post->is_long || size > BODY_MAX - post->n;
    if (post->is_long)
        return;
    memcpy(post->body + post->n, data, size);
    post->n += size;
}

static enum MHD_Result finish(struct page *p,
                              struct MHD_Connection *connection,
                              const char *url,
                              const struct post *post)
{
    if (post->is_long)
        return answer_words(connection, 413, "the form is too long\n");
    if (!has_field(post->body, "token", p->token))
        return answer_words(connection, 403, "the token is not that of this page\n");
    if (!has_field(post->body, "confirm", "yes"))
        return answer_words(connection, 400, "confirm it\n");
    if (!chaos_start(p, find_action(url)))
        return answer_words(connection, 409, "another fault is under way\n");
    return see_other(connection, "/");
}

static enum MHD_Result press(struct page *p,
                             struct MHD_Connection *connection,
                             const char *url,
                             const char *data,
                             size_t *size,
                             void **con_cls)
{
    if (*con_cls == NULL)
        return begin(connection, con_cls);
    if (*size == 0)
        return finish(p, connection, url, *con_cls);
    append(*con_cls, data, *size);
    *size = 0;
    return MHD_YES;
}

static void completed(void *cls,
                      struct MHD_Connection *connection,
                      void **con_cls,
                      enum MHD_RequestTerminationCode why)
{
    (void)cls;
    (void)connection;
    (void)why;
    free(*con_cls);
    *con_cls = NULL;
}

/* ---- GET ---- */

static enum MHD_Result send_state(struct page *p, struct MHD_Connection *connection)
{
    json_t *doc = json_pack("{s:I}", "at_ms", (json_int_t)view_now_ms());
    char *text;

    (void)pthread_mutex_lock(&p->mutex);
    (void)json_object_set(doc, "tables", p->tables != NULL ? p->tables : json_null());
    (void)json_object_set_new(
        doc, "tables_age_ms",
        json_integer(p->tables != NULL ? clk_ms() - p->tables_ms : -1));
    (void)json_object_set_new(doc, "trouble", doc_string(p->trouble));
    chaos_document(p, doc);
    text = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
    (void)pthread_mutex_unlock(&p->mutex);
    if (text == NULL)
        return MHD_NO;
    return answer_with(
        connection, 200, "application/json",
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result
route(struct page *p, struct MHD_Connection *connection, const char *url)
{
    static const char script[] = "text/javascript; charset=utf-8";
    const struct shop_page_text *own = shop_page_texts;
    const struct page_text *of_pool = page_texts;

    const struct {
        const char *url, *type;
        const void *text;
        size_t n;
    } files[] = {
        {"/", "text/html; charset=utf-8", own[SHOP_PAGE_INDEX].text,
         own[SHOP_PAGE_INDEX].len},
        {"/shop.js", script, own[SHOP_PAGE_SHOP].text, own[SHOP_PAGE_SHOP].len},
        {"/common.js", script, of_pool[PAGE_COMMON].text, of_pool[PAGE_COMMON].len},
        {"/style.css", "text/css; charset=utf-8", of_pool[PAGE_STYLE].text,
         of_pool[PAGE_STYLE].len},
        {"/icon.svg", "image/svg+xml", of_pool[PAGE_ICON].text, of_pool[PAGE_ICON].len},
    };

    if (strcmp(url, "/state") == 0)
        return send_state(p, connection);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        union {
            const void *text;
            void *buffer;
        } copied = {files[i].text}; /* it is only read, whatever the type says */

        if (strcmp(url, files[i].url) == 0)
            return answer_with(connection, 200, files[i].type,
                               MHD_create_response_from_buffer(
                                   files[i].n, copied.buffer, MHD_RESPMEM_PERSISTENT));
    }
    return answer_words(connection, 404, "there are / and /state\n");
}

static enum MHD_Result answer_press(void *cls,
                                    struct MHD_Connection *connection,
                                    const char *url,
                                    const char *method,
                                    const char *version,
                                    const char *upload_data,
                                    size_t *upload_data_size,
                                    void **con_cls)
{
    bool is_button = find_action(url) != NULL;
    bool is_post = strcmp(method, "POST") == 0 && is_button;
    struct page *p = cls;
    const char *refusal =
        answer_refusal(connection, p->config->http_hosts, false, is_post);

    (void)version;
    if (strcmp(method, "OPTIONS") == 0)
        return answer_methods(connection, 204, is_button);
    if (!is_post && ((strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) ||
                     *upload_data_size > 0))
        return answer_methods(connection, 405, is_button);
    if (refusal != NULL)
        return answer_words(connection, 403, refusal);
    if (is_post)
        return press(p, connection, url, upload_data, upload_data_size, con_cls);
    return route(p, connection, url);
}

/* ---- the process ---- */

/* Both sides. Returns how long to leave the tables alone. */
static int64_t read_sides(struct page *p, struct pg **pg, struct cards *cards)
{
    bool is_first = !pg_is_usable(*pg);
    int64_t begun_ms = clk_ms();
    json_t *tables = NULL;
    struct err e = {0};

    if (view_connect(p->config, "shop page", pg, &e) == 0 &&
        view_read_tables(*pg, NULL, &tables, &e) == 0)
        (void)!doc_first(tables, "plain", *pg, SQL_SHOP_READ_PLAIN, NULL, 0, &e);
    if (cards != NULL && tables != NULL)
        (void)json_object_set_new(tables, "cards", cards_count(cards));
    (void)pthread_mutex_lock(&p->mutex);
    (void)snprintf(p->trouble, sizeof p->trouble, "%.299s", e.code == 0 ? "" : e.msg);
    if (e.code == 0) {
        json_decref(p->tables);
        p->tables = json_incref(tables);
        p->tables_ms = begun_ms;
    }
    (void)pthread_mutex_unlock(&p->mutex);
    json_decref(tables);
    return view_pause_ms(VIEW_REST_WATCHED, is_first, clk_ms() - begun_ms);
}

/* A worker that stands still goes on: nobody else would tell it to. */
static void __attribute__((noreturn)) end(struct page *p)
{
    (void)pthread_mutex_lock(&p->mutex);
    if (p->hit != NULL && p->hit->pid != 0)
        hits_thaw(p->hit);
    _exit(EXIT_OK);
}

void page_run(const struct config *c, int fd)
{
    static struct page page = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct timespec pause;
    struct cards *cards;
    struct pg *pg = NULL;
    struct err e = {0};
    sigset_t stops;

    page.config = c;
    cards = cards_open(c); /* the first use of libcurl, before there are threads */
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* not KILL: see end */
    if (chaos_open(&page, &e) != 0 ||
        MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer_press, &page,
            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)IDLE_S, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
            MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END) == NULL) {
        log_error("shop.page_failed", "err=%s",
                  LOG_TEXT(e.code != 0 ? e.msg : "the socket could not be used"));
        _exit(EXIT_BUG);
    }
    log_info("shop.page", "at=%s", c->http_listen);
    do {
        int64_t ms = read_sides(&page, &pg, cards);

        pause = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    } while (sigtimedwait(&stops, NULL, &pause) < 0);
    end(&page);
}
