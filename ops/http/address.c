/* address: http.listen as a socket that listens. */
#define _DEFAULT_SOURCE
#include "ops/http/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct addrinfo *find(const char *listen)
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

static int listen_at(const struct addrinfo *info, int *fd)
{
    static const int on = 1;

    *fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(*fd, info->ai_addr, info->ai_addrlen) == 0 && listen(*fd, 128) == 0)
        return 0;
    return errno;
}

int address_listen(const struct config *c, int *fd, struct err *e)
{
    struct addrinfo *info;
    int code;

    *fd = -1;
    if (c->http_listen[0] == '\0')
        return 0;
    info = find(c->http_listen);
    if (info == NULL) {
        (void)err_set(e, ERR_CONFIG,
                      "LL-2018 http.listen \"%s\" is no [address:]port, as in 9464 or "
                      "127.0.0.1:9464",
                      c->http_listen);
        return config_refuse(c, "http.listen", e);
    }
    code = listen_at(info, fd);
    freeaddrinfo(info);
    if (code == 0)
        return 0;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    return err_set(e, ERR_CONFIG,
                   "LL-5006 http.listen %s: %s; set another port, or \"\" for no page",
                   c->http_listen, strerror(code));
}
