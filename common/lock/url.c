/* url: where the servers are: one, a quorum of several, or Sentinels that know. */
#define _DEFAULT_SOURCE /* strdup, strndup */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

const char ll_no_memory[] = "out of memory";

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379, PARTS_MAX = LL_SENTINELS_MAX };

/* A piece of text that is not terminated. */
struct piece {
    const char *at;
    size_t n;
};

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* Copies with %XX undone; NULL when out of memory. */
static char *unescape(struct piece p)
{
    char *out = malloc(p.n + 1);
    size_t k = 0;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < p.n; i++) {
        if (p.at[i] == '%' && i + 2 < p.n && hex_digit(p.at[i + 1]) >= 0 &&
            hex_digit(p.at[i + 2]) >= 0) {
            out[k++] = (char)(hex_digit(p.at[i + 1]) * 16 + hex_digit(p.at[i + 2]));
            i += 2;
        } else {
            out[k++] = p.at[i];
        }
    }
    out[k] = '\0';
    return out;
}

static bool number(struct piece p, int max, int *out)
{
    int v = 0;

    if (p.n == 0 || p.n > 5)
        return false;
    for (size_t i = 0; i < p.n; i++) {
        if (p.at[i] < '0' || p.at[i] > '9')
            return false;
        v = v * 10 + (p.at[i] - '0');
    }
    *out = v;
    return v <= max;
}

/* Cuts p at the first `mark`: p keeps what is before, *rest gets what is behind. */
static bool cut(struct piece *p, char mark, struct piece *rest)
{
    const char *at = p->n == 0 ? NULL : memchr(p->at, mark, p->n);

    *rest = (struct piece){p->at + p->n, 0};
    if (at == NULL)
        return false;
    *rest = (struct piece){at + 1, p->n - (size_t)(at - p->at) - 1};
    p->n = (size_t)(at - p->at);
    return true;
}

static const char *keep(char **field, struct piece p)
{
    free(*field);
    *field = unescape(p);
    return *field == NULL ? ll_no_memory : NULL;
}

/* [user[:password]@] in front of hosts; the last @ ends it. */
static const char *take_user(struct ll_client *c, struct piece *p)
{
    struct piece user, password;
    size_t i = p->n;

    while (i > 0 && p->at[i - 1] != '@')
        i--;
    if (i == 0)
        return NULL;
    user = (struct piece){p->at, i - 1};
    *p = (struct piece){p->at + i, p->n - i};
    if (cut(&user, ':', &password) && keep(&c->password, password) != NULL)
        return ll_no_memory;
    return user.n == 0 ? NULL : keep(&c->user, user);
}

/* host[:port]; a host in brackets is an IPv6 address; an empty one is this machine. */
static const char *take_host(struct ll_address *a, struct piece p, int port)
{
    struct piece rest;

    a->port = port;
    if (p.n > 0 && p.at[0] == '[') {
        p = (struct piece){p.at + 1, p.n - 1};
        if (!cut(&p, ']', &rest))
            return "the [ of the address is not closed";
        if (rest.n > 0 && rest.at[0] != ':')
            return "behind the ] only :PORT may stand";
        if (rest.n > 0 &&
            !number((struct piece){rest.at + 1, rest.n - 1}, 65535, &a->port))
            return "the port is no number from 1 to 65535";
    } else if (cut(&p, ':', &rest) && !number(rest, 65535, &a->port)) {
        return "the port is no number from 1 to 65535";
    }
    if (a->port == 0)
        return "the port is no number from 1 to 65535";
    return keep(&a->host, p.n > 0 ? p : (struct piece){"127.0.0.1", 9});
}

static const char *take_db(struct ll_client *c, struct piece p)
{
    if (p.n > 0 && !number(p, 65535, &c->db))
        return "the database is no number";
    return NULL;
}

static const char *parse_tcp(struct ll_client *c, struct ll_address *a, struct piece p)
{
    struct piece db, query;
    const char *why;

    if (cut(&p, '?', &query))
        return "options behind ? are not known here";
    (void)cut(&p, '/', &db);
    why = take_user(c, &p);
    if (why == NULL)
        why = take_host(a, p, REDIS_PORT);
    return why != NULL ? why : take_db(c, db);
}

static const char *parse_unix(struct ll_client *c, struct ll_address *a, struct piece p)
{
    struct piece query;
    bool has_query = cut(&p, '?', &query);

    a->is_unix = true;
    if (p.n > 0 && p.at[0] != '/' && take_user(c, &p) != NULL)
        return ll_no_memory;
    if (p.n == 0 || p.at[0] != '/')
        return "the path of the socket must begin with /";
    if (has_query && (query.n < 3 || strncmp(query.at, "db=", 3) != 0))
        return "behind the path only ?db=NUMBER is known";
    if (has_query && take_db(c, (struct piece){query.at + 3, query.n - 3}) != NULL)
        return "the database is no number";
    return keep(&a->host, p);
}

static const char *parse_one(struct ll_client *c, struct ll_address *a, struct piece p)
{
    static const struct {
        const char *scheme;
        bool is_tls, is_unix;
    } schemes[] = {{"redis://", false, false},
                   {"rediss://", true, false},
                   {"unix://", false, true}};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i].scheme);

        if (p.n < n || strncmp(p.at, schemes[i].scheme, n) != 0)
            continue;
        p = (struct piece){p.at + n, p.n - n};
        a->is_tls = schemes[i].is_tls;
        return schemes[i].is_unix ? parse_unix(c, a, p) : parse_tcp(c, a, p);
    }
    return "a Redis URL begins with redis://, rediss://, unix:// or redis+sentinel://";
}

/* [user[:password]@]host[:port],host[:port].../name[/db] */
static const char *parse_sentinels(struct ll_client *c, struct piece p)
{
    struct piece name, db, rest;
    const char *why;

    if (!cut(&p, '/', &name) || name.n == 0)
        return "behind the Sentinels stands /NAME, what they call the primary";
    (void)cut(&name, '/', &db);
    why = take_user(c, &p);
    while (why == NULL && p.n > 0) {
        (void)cut(&p, ',', &rest);
        if (c->sentinel_ct == LL_SENTINELS_MAX)
            return "too many Sentinels";
        why = take_host(&c->sentinels[c->sentinel_ct++], p, SENTINEL_PORT);
        p = rest;
    }
    if (why == NULL && c->sentinel_ct == 0)
        why = "no Sentinel is named";
    if (why == NULL)
        why = keep(&c->primary_name, name);
    c->node_ct = 1;
    return why != NULL ? why : take_db(c, db);
}

const char *ll_parse_url(struct ll_client *c, const char *url)
{
    static const char sentinel[] = "redis+sentinel://";
    struct piece p = {url, strlen(url)};
    struct piece rest;
    const char *why = NULL;

    if (strncmp(url, sentinel, sizeof sentinel - 1) == 0)
        return parse_sentinels(
            c, (struct piece){url + sizeof sentinel - 1, p.n - (sizeof sentinel - 1)});
    do {
        (void)cut(&p, ',', &rest);
        if (c->node_ct == LL_NODES_MAX)
            return "a quorum has 3 or 5 servers";
        why = parse_one(c, &c->nodes[c->node_ct++].address, p);
        p = rest;
    } while (why == NULL && p.n > 0);
    if (why == NULL && c->node_ct != 1 && c->node_ct != 3 && c->node_ct != 5)
        why = "a quorum has 3 or 5 servers";
    return why;
}
