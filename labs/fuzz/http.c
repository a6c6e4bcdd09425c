/* http: whatever a client sends, it gets an answer of HTTP or none; what is answered
 * with 200 was a GET or a HEAD for a host of ours, or for health and metrics, and says
 * to the browser what it may do. The documents are those of this file. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "labs/fuzz/fuzz.h"
#include "ops/http/http.h"

enum { ANSWERS_MAX = 1 << 18, QUIET = 3, HOSTS_MAX = 16 };

static struct config config = {.http_hosts = "ops.example.com"};
static const struct companion_order order = {.config = &config};
static struct http http = {.order = &order,
                           .mutex = PTHREAD_MUTEX_INITIALIZER,
                           .document = (char[]){"{}"},
                           .length = 2,
                           .version = 1};
static char answers[ANSWERS_MAX];

/* ---- documents ---- */

bool health_is_alive(const struct http *h, FILE *out)
{
    (void)fputs("ok\n", out);
    return h != NULL;
}

bool health_is_ready(const struct http *h, FILE *out)
{
    (void)fputs("worker 0 of billing: redis_down\n", out);
    return h == NULL;
}

bool metrics_write(const struct http *h, FILE *out)
{
    (void)fputs("ledgerlock_up 1\n", out);
    return h != NULL;
}

static bool has(const uint8_t *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

/* ---- one conversation ---- */

/* Answers arrive until the connection ends, or nothing moves any more; then those that
 * listen for events are told of the end. */
static size_t converse(int fd)
{
    size_t n = 0;

    for (int quiet = 0; quiet < 2 * QUIET; quiet++) {
        ssize_t got;

        (void)MHD_run(http.daemon);
        got = recv(fd, answers + n, sizeof answers - 1 - n, MSG_DONTWAIT);
        if (got == 0)
            break;
        if (got > 0) {
            n += (size_t)got;
            quiet = 0;
        }
        if (quiet == QUIET) {
            http.is_ending = true;
            events_wake(&http);
        }
    }
    answers[n] = '\0';
    return n;
}

static size_t ask(const uint8_t *data, size_t size)
{
    struct sockaddr_storage nobody = {.ss_family = AF_UNIX};
    int fds[2];
    size_t n;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        abort();
    http.is_ending = false;
    if (send(fds[1], data, size, MSG_NOSIGNAL) != (ssize_t)size ||
        shutdown(fds[1], SHUT_WR) != 0 ||
        MHD_add_connection(http.daemon, fds[0], (struct sockaddr *)&nobody,
                           sizeof nobody) != MHD_YES)
        abort();
    n = converse(fds[1]);
    (void)close(fds[1]);
    for (int i = 0; i < QUIET; i++)
        (void)MHD_run(http.daemon);
    if (http.listener_ct != 0)
        fuzz_found("%zu listeners are left", http.listener_ct);
    return n;
}

/* ---- what it may be ---- */

/* The next value of a header among lines, without blanks; NULL: there is none. */
static const char *header(const char **at, const char *end, const char *name, size_t *n)
{
    size_t length = strlen(name);

    while (*at < end) {
        const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

        stop = stop != NULL ? stop : end;
        *at = stop + 1;
        if ((size_t)(stop - line) <= length || strncasecmp(line, name, length) != 0 ||
            line[length] != ':')
            continue;
        line += length + 1;
        while (line < stop && strchr(" \t\r", *line) != NULL && *line != '\0')
            line++;
        while (stop > line && strchr(" \t\r", stop[-1]) != NULL && stop[-1] != '\0')
            stop--;
        *n = (size_t)(stop - line);
        return line;
    }
    return NULL;
}

/* An address, a name without a dot, or the name of the settings. */
static bool is_ours(const char *host, size_t n)
{
    static const char listed[] = "ops.example.com";
    size_t length = 0;
    bool has_dot = false, has_letter = false;

    if (n > 0 && host[0] == '[')
        return true;
    for (; length < n && host[length] != ':'; length++) {
        has_dot = has_dot || host[length] == '.';
        has_letter = has_letter || (host[length] != '.' &&
                                    (host[length] < '0' || host[length] > '9'));
    }
    return length > 0 &&
           (!has_dot || !has_letter ||
            (length == sizeof listed - 1 && strncasecmp(host, listed, length) == 0));
}

/* Lines as browsers send them: the library also takes a CR alone for the end of one, a
 * blank at its beginning for more of the one before, and a zero byte for the end of a
 * value. */
static bool has_plain_lines(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char next = i + 1 < size ? text[i + 1] : '\n';

        if (text[i] == '\0' || (text[i] == '\r' && next != '\n') ||
            (text[i] == '\n' && (next == ' ' || next == '\t')))
            return false;
    }
    return true;
}

/* The request may have been one of several: then all of them must be bad. */
static void check_asked(const char *text, size_t size)
{
    static const char *const any[] = {"/livez", "/readyz", "/metrics"};
    const char *at = text, *host;
    bool may = false;
    size_t n;

    if (!has((const uint8_t *)text, size, "GET ") &&
        !has((const uint8_t *)text, size, "HEAD "))
        fuzz_found("200 without a GET");
    for (size_t i = 0; i < FUZZ_COUNT(any); i++)
        may = may || has((const uint8_t *)text, size, any[i]);
    while ((host = header(&at, text + size, "Host", &n)) != NULL)
        may = may || is_ours(host, n);
    if (!may)
        fuzz_found("200 for a host of nobody");
}

static void check_headers(void)
{
    static const char *const wanted[][2] = {
        {"Content-Security-Policy", "default-src 'none'; script-src 'self'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    const char *end = strstr(answers, "\r\n\r\n");

    if (end == NULL)
        fuzz_found("no end of the headers: %.200s", answers);
    for (size_t i = 0; i < FUZZ_COUNT(wanted); i++) {
        const char *at = answers, *value;
        size_t n = 0, length = strlen(wanted[i][1]);

        value = header(&at, end, wanted[i][0], &n);
        if (value == NULL || n < length || strncmp(value, wanted[i][1], length) != 0)
            fuzz_found("no %s: %.400s", wanted[i][0], answers);
    }
}

static bool is_one_of(int status, const int *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == status)
            return true;
    return false;
}

static void start(void)
{
    http.daemon = MHD_start_daemon(
        MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer,
        &http, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16 * 1024, MHD_OPTION_END);
    if (http.daemon == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int ours[] = {200, 204, 403, 404, 405, 503},
                     library[] = {400, 408, 411, 413, 414, 417, 431, 500, 501, 505};
    int status = 0;
    size_t n;

    fuzz_call = "answer";
    if (http.daemon == NULL)
        start();
    if (size == 0)
        return 0;
    n = ask(data, size);
    if (n == 0)
        return 0;
    if (strncmp(answers, "HTTP/1.1 100", 12) == 0)
        return 0; /* the client asked whether it may go on, and did not */
    if (sscanf(answers, "HTTP/1.%*1[01] %3d ", &status) != 1)
        fuzz_found("no answer of HTTP: %.100s", answers);
    if (is_one_of(status, ours, FUZZ_COUNT(ours)))
        check_headers();
    else if (!is_one_of(status, library, FUZZ_COUNT(library)))
        fuzz_found("status %d", status);
    if (status == 200 && has_plain_lines((const char *)data, size))
        check_asked((const char *)data, size);
    return 0;
}
