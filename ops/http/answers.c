/* answers: one request, which reads. Requests that a stranger's page makes a browser
 * send are refused by their Host or their Sec-Fetch-Site. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ops/http/http.h"
#include "page_gen.h"

/* ---- who may ask ---- */

/* The name in a Host header without its port. */
static size_t host_length(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;

    return end != NULL ? (size_t)(end + 1 - host) : strcspn(host, ":");
}

/* A name of the list http.hosts. */
static bool is_listed(const char *names, const char *host, size_t n)
{
    static const char between[] = ", ";

    for (names += strspn(names, between); *names != '\0';
         names += strspn(names, between)) {
        size_t length = strcspn(names, between);

        if (length == n && strncasecmp(names, host, n) == 0)
            return true;
        names += length;
    }
    return false;
}

/* A page of a stranger whose name was made to lead to our address sends that name. An
 * address, or a name without a dot, as in a network of containers, is nobody's on the
 * Internet; other names are ours if the settings say so. */
static bool is_our_host(const char *hosts, const char *host)
{
    size_t n = host != NULL ? host_length(host) : 0;

    if (n == 0)
        return false;
    return host[0] == '[' || strspn(host, "0123456789.") >= n ||
           memchr(host, '.', n) == NULL || is_listed(hosts, host, n);
}

static bool
is_header(struct MHD_Connection *connection, const char *name, const char *value)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    return text != NULL && strcmp(text, value) == 0;
}

/* A page of a stranger may link to ours, which a person then sees in a window of its
 * own; it may not read it, show it in a frame, or send anything. */
static bool is_of_a_stranger(struct MHD_Connection *connection, bool is_post)
{
    bool is_link = !is_post && is_header(connection, "Sec-Fetch-Mode", "navigate") &&
                   is_header(connection, "Sec-Fetch-Dest", "document");

    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site") !=
               NULL &&
           !is_header(connection, "Sec-Fetch-Site", "same-origin") &&
           !is_header(connection, "Sec-Fetch-Site", "none") && !is_link;
}

const char *answer_refusal(struct MHD_Connection *connection,
                           const char *hosts,
                           bool is_for_any_host,
                           bool is_post)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

    if (!is_for_any_host && !is_our_host(hosts, host))
        return "ask by address, by a name without a dot, or by a name of http.hosts\n";
    return is_of_a_stranger(connection, is_post) ? "pages of others may not read this\n"
                                                 : NULL;
}

/* ---- answers ---- */

static const char html[] = "text/html; charset=utf-8";

static bool write_state(const struct http *h, FILE *out)
{
    (void)fputs(h->document != NULL ? h->document : "nothing was read yet, try again\n",
                out);
    return h->document != NULL;
}

/* Files of the page, and texts about the document and the memory of the pool; false:
 * 503, with words. The mutex is held. */
static const struct route {
    const char *url, *type;
    bool (*write)(const struct http *h, FILE *out); /* NULL: a file */
    enum page_id file;
    bool is_for_any_host;
} routes[] = {
    {"/", html, NULL, PAGE_INDEX, false},
    {"/style.css", "text/css; charset=utf-8", NULL, PAGE_STYLE, false},
    {"/icon.svg", "image/svg+xml", NULL, PAGE_ICON, false},
    {"/common.js", "text/javascript; charset=utf-8", NULL, PAGE_COMMON, false},
    {"/page.js", "text/javascript; charset=utf-8", NULL, PAGE_PAGE, false},
    {"/livez", answer_text, health_is_alive, 0, true},
    {"/readyz", answer_text, health_is_ready, 0, true},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics_write, 0, true},
    {"/state", "application/json", write_state, 0, false},
};

static const struct route *find_route(const char *url)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(url, routes[i].url) == 0)
            return &routes[i];
    }
    return NULL;
}

static enum MHD_Result
send_route(struct http *h, struct MHD_Connection *connection, const struct route *r)
{
    const struct page_text *file = &page_texts[r->file];
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    bool is_well = true;

    if (f == NULL)
        return MHD_NO;
    if (r->write != NULL) {
        (void)pthread_mutex_lock(&h->mutex);
        is_well = r->write(h, f);
        (void)pthread_mutex_unlock(&h->mutex);
    } else {
        (void)fwrite(file->text, 1, file->len, f);
    }
    if (fclose(f) != 0) {
        free(text);
        return MHD_NO;
    }
    return answer_with(
        connection, is_well ? 200 : 503, is_well ? r->type : answer_text,
        MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));
}

/* A HEAD listens to nothing. */
static enum MHD_Result
send_events(struct http *h, struct MHD_Connection *connection, bool is_head)
{
    struct MHD_Response *response =
        is_head ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                : events_response(h, connection);

    if (response == NULL)
        return answer_words(connection, 503, "too many pages are open\n");
    return answer_with(connection, 200, "text/event-stream", response);
}

static enum MHD_Result
route(struct http *h, struct MHD_Connection *connection, const char *url, bool is_head)
{
    const struct route *r = find_route(url);

    if (strcmp(url, "/events") == 0)
        return send_events(h, connection, is_head);
    if (r != NULL)
        return send_route(h, connection, r);
    return answer_words(connection, 404,
                        "there are /, /metrics, /livez, /readyz, /state and "
                        "/events\n");
}

/* ---- methods ---- */

enum MHD_Result answer(void *cls,
                       struct MHD_Connection *connection,
                       const char *url,
                       const char *method,
                       const char *version,
                       const char *upload_data,
                       size_t *upload_data_size,
                       void **con_cls)
{
    bool is_head = strcmp(method, "HEAD") == 0;
    const struct route *r = find_route(url);
    struct http *h = cls;
    const char *refusal = answer_refusal(connection, h->order->config->http_hosts,
                                         r != NULL && r->is_for_any_host, false);

    (void)version;
    (void)upload_data;
    (void)con_cls;
    if (strcmp(method, "OPTIONS") == 0)
        return answer_methods(connection, 204, false);
    if ((!is_head && strcmp(method, "GET") != 0) || *upload_data_size > 0)
        return answer_methods(connection, 405, false);
    if (refusal != NULL)
        return answer_words(connection, 403, refusal);
    return route(h, connection, url, is_head);
}
