/* ask: GET /state, by a client that waits for nobody. */
#define _DEFAULT_SOURCE
#include "ops/http/ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "ops/cli/json.h"

enum { WAIT_MS = 200, ANSWER_MAX = 1 << 20, STALE_S = 3 };

struct addrinfo *ask_addresses(const char *listen)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *colon = strrchr(listen, ':');
    const char *port = colon != NULL ? colon + 1 : listen;
    struct addrinfo *info = NULL;
    char host[64] = "127.0.0.1";
    size_t n = colon != NULL ? (size_t)(colon - listen) : 0;

    if (n > 1 && listen[0] == '[' && listen[n - 1] == ']') { /* of IPv6 */
        listen++;
        n -= 2;
    }
    if (colon != NULL)
        (void)snprintf(host, sizeof host, "%.*s", (int)n, listen);
    if (host[0] == '\0' || n >= sizeof host || *port == '\0' ||
        getaddrinfo(host, port, &hints, &info) != 0)
        return NULL;
    return info;
}

/* False: that did not come in time. */
static bool await(int fd, short event, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = event};
    int64_t left_ms = until_ms - clk_ms();

    return left_ms > 0 && poll(&p, 1, (int)left_ms) > 0;
}

static int dial(const char *listen, int64_t until_ms)
{
    struct addrinfo *info = ask_addresses(listen);
    int fd = -1;

    if (info == NULL)
        return -1;
    fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        ((connect(fd, info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) ||
         !await(fd, POLLOUT, until_ms))) {
        (void)close(fd);
        fd = -1;
    }
    freeaddrinfo(info);
    return fd;
}

/* The answer until its end; its length, 0 when it is not whole. */
static size_t exchange(int fd, char *answer, size_t size, int64_t until_ms)
{
    static const char request[] = "GET /state HTTP/1.0\r\nHost: localhost\r\n\r\n";
    size_t n = 0;
    ssize_t got;

    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0)
        return 0;
    while (n < size && await(fd, POLLIN, until_ms)) {
        got = recv(fd, answer + n, size - n, 0);
        if (got <= 0)
            return got == 0 ? n : 0;
        n += (size_t)got;
    }
    return 0;
}

json_t *ask_page(const struct config *c)
{
    static char answer[ANSWER_MAX + 1];
    int64_t until_ms = clk_ms() + WAIT_MS;
    int fd = c->http_listen[0] != '\0' ? dial(c->http_listen, until_ms) : -1;
    const char *body;
    json_t *page;

    if (fd < 0)
        return NULL;
    answer[exchange(fd, answer, ANSWER_MAX, until_ms)] = '\0';
    (void)close(fd);
    body = strstr(answer, "\r\n\r\n");
    if (strncmp(answer, "HTTP/1.", 7) != 0 || body == NULL)
        return NULL;
    page = json_loads(body, 0, NULL);
    if (time(NULL) - doc_int(page, "at_ms") / 1000 <= STALE_S)
        return page;
    json_decref(page);
    return NULL;
}
