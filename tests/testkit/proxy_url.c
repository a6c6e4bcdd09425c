/* proxy: in front of the Redis that a URL names. */
#include <stdio.h>
#include <string.h>

#include "tests/testkit/proxy.h"

/* redis://[user[:password]@]address[:port][/db] */
static void open_redis_tcp(struct proxy *p, const char *url)
{
    const char *authority = url + strlen("redis://");
    const char *end = authority + strcspn(authority, "/");
    const char *host = authority;
    char behind[64];

    for (const char *c = authority; c < end; c++) {
        if (*c == '@')
            host = c + 1;
    }
    (void)snprintf(behind, sizeof behind, "%.*s%s", (int)(end - host), host,
                   memchr(host, ':', (size_t)(end - host)) != NULL ? "" : ":6379");
    proxy_open(p, behind, NULL);
    (void)snprintf(p->url, sizeof p->url, "redis://%.*s127.0.0.1:%d%s",
                   (int)(host - authority), authority, p->port, end);
}

void proxy_open_redis(struct proxy *p, const char *url)
{
    const char *path = url + strlen("unix://");
    char behind[128];
    size_t n = strcspn(path, "?");

    if (strncmp(url, "unix://", 7) != 0) {
        open_redis_tcp(p, url);
        return;
    }
    (void)snprintf(behind, sizeof behind, "%.*s", (int)n, path);
    proxy_open(p, behind, "redis.sock");
    (void)snprintf(p->url, sizeof p->url, "unix://%s%s", p->path, path + n);
}
