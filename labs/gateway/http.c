/* http: the loop, and the life of a call in it. */
#define _GNU_SOURCE /* strdup */
#include "labs/gateway/gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECTIONS = 60000,
    BACKLOG = 4096,
    BODY_MAX = 65536,
    PEM_MAX = 65536,
    DAY_S = 86400,
    SLOTS = 65536
};

int64_t calls_received, calls_replayed, calls_in_flight;
static struct MHD_Daemon *server;

/* ---- what a call says and is told ---- */

const char *http_header(const struct call *c, const char *name)
{
    const char *value =
        MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);

    return value != NULL ? value : "";
}

const char *call_text(const struct call *c, const char *name)
{
    return json_string_value(json_object_get(c->form, name));
}

int64_t call_number(const struct call *c, const char *name)
{
    const char *text = call_text(c, name);
    char *end;
    long long n;

    if (text == NULL || *text < '1' || *text > '9')
        return 0;
    errno = 0;
    n = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 ? n : 0;
}

void call_answer(struct call *c, int status, json_t *document)
{
    c->status = status;
    c->document = document;
}

void call_refuse(
    struct call *c, int status, const char *type, const char *code, const char *message)
{
    call_answer(c, status,
                json_pack("{s:{s:s, s:s*, s:s}}", "error", "type", type, "code", code,
                          "message", message));
}

/* ---- answers ---- */

/* A reply that ends after half of what its head tells. */
static ssize_t read_half(void *cls, uint64_t at, char *to, size_t room)
{
    const char *text = cls;
    size_t half = strlen(text) / 2, n = half - (size_t)at;

    if (at >= half)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n = n < room ? n : room;
    memcpy(to, text + at, n);
    return (ssize_t)n;
}

static ssize_t read_no_end(void *cls, uint64_t at, char *to, size_t room)
{
    (void)cls;
    memset(to, at == 0 ? '{' : ' ', room);
    return (ssize_t)room;
}

static struct MHD_Response *make_body(struct call *c)
{
    char *text = c->spoil == HTML  ? strdup("<html><body>Back soon.</body></html>")
                 : c->text != NULL ? c->text
                                   : json_dumps(c->document, JSON_COMPACT);

    c->text = NULL; /* the library frees it */
    if (c->spoil == HALF)
        return MHD_create_response_from_callback(strlen(text), 4096, read_half, text,
                                                 free);
    if (c->spoil != NO_END)
        return MHD_create_response_from_buffer(strlen(text), text,
                                               MHD_RESPMEM_MUST_FREE);
    free(text);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536, read_no_end, NULL,
                                             NULL);
}

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    if (value != NULL)
        (void)MHD_add_response_header(response, name, value);
}

/* A connection is closed by saying no to the library. */
static enum MHD_Result answer(struct call *c)
{
    static int64_t requests;
    time_t now = (time_t)(store_now() - (c->spoil == DATE_OFF ? DAY_S : 0));
    unsigned status = c->spoil == HTML ? 200 : (unsigned)c->status;
    struct MHD_Response *response;
    enum MHD_Result result;
    char date[64], id[32], seconds[32];
    struct tm tm;

    if (c->spoil == DROP_BEFORE || c->spoil == DROP_AFTER || c->spoil == HANG)
        return MHD_NO;
    response = make_body(c);
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
    (void)snprintf(id, sizeof id, "req_%014lld", (long long)++requests);
    (void)snprintf(seconds, sizeof seconds, "%.0f", behaviour.values[RETRY_AFTER_S]);
    add(response, "Date", date);
    add(response, "Content-Type", c->spoil == HTML ? "text/html" : "application/json");
    add(response, "Request-Id", id);
    add(response, "Idempotent-Replayed", c->is_replayed ? "true" : NULL);
    add(response, "Stripe-Should-Retry", c->should_retry);
    add(response, "Location", status == 302 ? "/elsewhere" : NULL);
    add(response, "Retry-After", status == 429 ? seconds : NULL);
    result = MHD_queue_response(c->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- as the library calls ---- */

/* A value may come in parts. */
static enum MHD_Result add_part(void *cls,
                                enum MHD_ValueKind kind,
                                const char *name,
                                const char *filename,
                                const char *type,
                                const char *encoding,
                                const char *data,
                                uint64_t at,
                                size_t size)
{
    json_t *form = cls;
    const char *before = at > 0 ? json_string_value(json_object_get(form, name)) : "";

    (void)kind, (void)filename, (void)type, (void)encoding;
    (void)json_object_set_new(form, name,
                              json_sprintf("%s%.*s", before != NULL ? before : "",
                                           (int)size, data != NULL ? data : ""));
    return MHD_YES;
}

static enum MHD_Result
add_pair(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)json_object_set_new(cls, name, json_string(value != NULL ? value : ""));
    return MHD_YES;
}

static void hash_in(struct call *c, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        c->hash = (c->hash ^ (unsigned char)data[i]) * 0x100000001b3U;
}

static struct call *
begin(struct MHD_Connection *connection, const char *url, const char *method)
{
    struct call *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->connection = connection;
    c->is_post = strcmp(method, "POST") == 0;
    c->url = strdup(c->is_post || strcmp(method, "GET") == 0 ? url : "");
    c->form = json_object();
    c->spoil = NO_FAULT;
    hash_in(c, url, strlen(url) + 1);
    if (!c->is_post)
        (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_pair,
                                        c->form);
    calls_in_flight++;
    return c;
}

static void append(struct call *c, const char *data, size_t n)
{
    if (c->body_n == 0)
        c->post = MHD_create_post_processor(c->connection, 4096, add_part, c->form);
    c->body_n += n;
    hash_in(c, data, n);
    if (c->post == NULL || c->body_n > BODY_MAX ||
        MHD_post_process(c->post, data, n) != MHD_YES)
        c->is_bad_body = true;
}

static enum MHD_Result arrive(struct call *c)
{
    c->is_begun = true;
    c->run_at_ms = c->answer_at_ms = loop_now_ms();
    if (c->post != NULL && MHD_destroy_post_processor(c->post) != MHD_YES)
        c->is_bad_body = true;
    c->post = NULL;
    if (strncmp(c->url, "/_/", 3) == 0)
        control_arrive(c);
    else
        api_arrive(c);
    if (loop_step(c))
        return answer(c);
    MHD_suspend_connection(c->connection);
    return MHD_YES;
}

static enum MHD_Result handle(void *cls,
                              struct MHD_Connection *connection,
                              const char *url,
                              const char *method,
                              const char *version,
                              const char *data,
                              size_t *size,
                              void **con_cls)
{
    struct call *c = *con_cls;

    (void)cls, (void)version;
    if (c == NULL)
        return (*con_cls = begin(connection, url, method)) != NULL ? MHD_YES : MHD_NO;
    if (*size == 0)
        return c->is_begun ? answer(c) : arrive(c);
    append(c, data, *size);
    *size = 0;
    return MHD_YES;
}

static void completed(void *cls,
                      struct MHD_Connection *connection,
                      void **con_cls,
                      enum MHD_RequestTerminationCode why)
{
    struct call *c = *con_cls;

    (void)cls, (void)connection, (void)why;
    if (c == NULL)
        return;
    calls_in_flight--;
    if (c->post != NULL)
        (void)MHD_destroy_post_processor(c->post);
    json_decref(c->document);
    json_decref(c->form);
    free(c->url);
    free(c->line);
    free(c->text);
    free(c);
    *con_cls = NULL;
}

/* ---- the server ---- */

/* The text of a file; NULL: there is none. The server keeps it. */
static char *read_pem(const char *path, const char *suffix)
{
    char name[256], *text = calloc(1, PEM_MAX);
    FILE *file;

    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    file = fopen(name, "re");
    if (file == NULL || text == NULL || fread(text, 1, PEM_MAX - 1, file) == 0) {
        free(text);
        text = NULL;
    }
    if (file != NULL)
        (void)fclose(file);
    return text;
}

bool http_start(const char *address, unsigned *port, const char *tls, char *why)
{
    struct MHD_OptionItem secrets[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, NULL},
                                       {MHD_OPTION_HTTPS_MEM_KEY, 0, NULL},
                                       {MHD_OPTION_END, 0, NULL}};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};

    (void)snprintf(why, WHY_SIZE, "cannot listen on %.64s:%u", address, *port);
    if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
        return false;
    if (tls != NULL) {
        secrets[0].ptr_value = read_pem(tls, ".crt");
        secrets[1].ptr_value = read_pem(tls, ".key");
    }
    server = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls != NULL ? MHD_USE_TLS : 0U), 0,
        NULL, NULL, handle, NULL, MHD_OPTION_SOCK_ADDR, &in,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U, MHD_OPTION_LISTEN_BACKLOG_SIZE,
        (unsigned)BACKLOG, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_ARRAY,
        tls != NULL ? secrets : secrets + 2, MHD_OPTION_END);
    if (server == NULL)
        return false;
    *port = MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT)->port;
    return true;
}

void http_serve(int wait_ms)
{
    (void)MHD_run_wait(server, wait_ms);
}

void http_resume(struct call *c)
{
    MHD_resume_connection(c->connection);
}

void http_stop(void)
{
    (void)MHD_run(server);
    MHD_stop_daemon(server);
}
