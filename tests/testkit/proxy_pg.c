/* proxy: in front of the PostgreSQL that a URL names. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "tests/testkit/proxy.h"

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
