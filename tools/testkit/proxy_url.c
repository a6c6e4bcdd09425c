/* proxy: in front of the servers that a URL names. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "tools/testkit/proxy.h"

static void option(PQconninfoOption *options, const char *name, char *buf, size_t size)
{
    buf[0] = '\0';
    for (PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, name) == 0 && o->val != NULL)
            (void)snprintf(buf, size, "%s", o->val);
    }
}

void proxy_open_pg(struct proxy *p, const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    char host[96], port[8], database[64], user[64], password[64], behind[128];

    if (options == NULL)
        kit_fail("%s is no address of a PostgreSQL", url);
    option(options, "host", host, sizeof host);
    option(options, "port", port, sizeof port);
    option(options, "dbname", database, sizeof database);
    option(options, "user", user, sizeof user);
    option(options, "password", password, sizeof password);
    PQconninfoFree(options);
    if (port[0] == '\0')
        (void)strcpy(port, "5432");
    (void)snprintf(behind, sizeof behind, host[0] == '/' ? "%s/.s.PGSQL.%s" : "%s:%s",
                   host, port);
    proxy_open(p, behind, ".s.PGSQL.5432");
    (void)snprintf(p->url, sizeof p->url, "postgresql:///%s?user=%s&host=%s&port=5432",
                   database, user, p->dir);
    if (password[0] != '\0') {
        size_t n = strlen(p->url);

        (void)snprintf(p->url + n, sizeof p->url - n, "&password=%s", password);
    }
}

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
