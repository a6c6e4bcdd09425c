/* address: http.listen as addresses. */
#define _DEFAULT_SOURCE
#include "ops/http/address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

struct addrinfo *address_find(const char *listen)
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
