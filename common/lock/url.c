/* url: addresses of servers: those of a URL (one server, a quorum, Sentinels, nodes of
 * a cluster), and the one to which a cluster redirects. */
#define _DEFAULT_SOURCE /* strdup */
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

const char ll_no_memory[] = "out of memory";

static const char not_same[] =
    "user, password and db must be the same for all servers of a quorum";
static const char no_port[] = "the port is no number from 1 to 65535";
static const char no_db[] = "the database is no number";

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379, SOCKET_PATH_MAX = 107 };

/* A piece of text that is not terminated. */
struct piece {
    const char *at;
    size_t n;
};

/* The part before ://. */
struct scheme {
    const char *name;
    enum ll_kind kind;
    bool is_tls, is_unix;
};

static const struct scheme schemes[] = {
    {"redis://", LL_ONE_SERVER, false, false},
    {"rediss://", LL_ONE_SERVER, true, false},
    {"unix://", LL_ONE_SERVER, false, true},
    {"redis+sentinel://", LL_SENTINELS, false, false},
    {"rediss+sentinel://", LL_SENTINELS, true, false},
    {"redis+cluster://", LL_CLUSTER, false, false},
    {"rediss+cluster://", LL_CLUSTER, true, false},
};

static int hex_digit(char ch)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = ch == '\0' ? NULL : strchr(digits, ch);

    return at == NULL ? -1 : (int)(at - digits) - (at - digits > 15 ? 6 : 0);
}

/* Copies and decodes %XX. */
static const char *keep(char **field, struct piece p)
{
    char *out = malloc(p.n + 1);
    size_t k = 0;

    free(*field);
    *field = out;
    if (out == NULL)
        return ll_no_memory;
    for (size_t i = 0; i < p.n; i++) {
        bool is_code = p.at[i] == '%' && i + 2 < p.n && hex_digit(p.at[i + 1]) >= 0 &&
                       hex_digit(p.at[i + 2]) >= 0;

        out[k] = is_code ? (char)(hex_digit(p.at[i + 1]) * 16 + hex_digit(p.at[i + 2]))
                         : p.at[i];
        if (out[k++] == '\0')
            return "%00 can stand nowhere";
        i += is_code ? 2 : 0;
    }
    out[k] = '\0';
    return NULL;
}

static bool number(struct piece p, int *out)
{
    int v = 0;

    for (size_t i = 0; i < p.n && p.n <= 5; i++) {
        if (p.at[i] < '0' || p.at[i] > '9')
            return false;
        v = v * 10 + (p.at[i] - '0');
    }
    *out = v;
    return p.n > 0 && p.n <= 5 && v <= 65535;
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

/* The URLs of several servers must agree. */
static const char *keep_same(char **field, bool is_there, struct piece p, bool is_first)
{
    char *had = *field;
    const char *why = NULL;

    *field = NULL;
    if (is_there)
        why = keep(field, p);
    if (why == NULL && !is_first &&
        ((had == NULL) != (*field == NULL) ||
         (had != NULL && *field != NULL && strcmp(had, *field) != 0)))
        why = not_same;
    free(had);
    return why;
}

/* [[user]:password@] in front of hosts; the last @ ends it. */
static const char *take_user(struct ll_client *c, struct piece *p)
{
    struct piece user = {p->at, 0}, password = {p->at, 0};
    bool is_first = c->node_ct <= 1, has_password = false;
    const char *why;
    size_t i = p->n;

    while (i > 0 && p->at[i - 1] != '@')
        i--;
    if (i > 0) {
        user = (struct piece){p->at, i - 1};
        *p = (struct piece){p->at + i, p->n - i};
        has_password = cut(&user, ':', &password);
    }
    why = keep_same(&c->password, has_password, password, is_first);
    return why != NULL ? why : keep_same(&c->user, user.n > 0, user, is_first);
}

/* host[:port]; a host in brackets is an IPv6 address. */
static const char *take_host(struct ll_address *a, struct piece p, int port)
{
    bool is_v6 = p.n > 0 && p.at[0] == '[';
    struct piece rest;
    bool has_port;

    a->port = port;
    if (is_v6) {
        p = (struct piece){p.at + 1, p.n - 1};
        if (!cut(&p, ']', &rest))
            return "the [ of the address is not closed";
        has_port = rest.n > 0;
        if (has_port && rest.at[0] != ':')
            return "behind the ] only :PORT may stand";
        rest = has_port ? (struct piece){rest.at + 1, rest.n - 1} : rest;
    } else {
        has_port = cut(&p, ':', &rest);
    }
    if (has_port && (!number(rest, &a->port) || a->port == 0))
        return no_port;
    if (p.n == 0 || memchr(p.at, ' ', p.n) != NULL || memchr(p.at, '%', p.n) != NULL)
        return "a server has no name, or a blank in it";
    return keep(&a->host, p);
}

static const char *take_db(struct ll_client *c, bool is_there, struct piece p)
{
    int db = 0;

    if (is_there && p.n > 0 && !number(p, &db))
        return no_db;
    if (c->node_ct > 1 && db != c->db)
        return not_same;
    c->db = db;
    return NULL;
}

/* ---- schemes ---- */

/* [[user]:password@]/path[?db=n] */
static const char *parse_unix(struct ll_client *c, struct ll_address *a, struct piece p)
{
    struct piece query;
    bool has_query = cut(&p, '?', &query);
    const char *why = p.n > 0 && p.at[0] == '/' ? NULL : take_user(c, &p);

    a->is_unix = true;
    if (why == NULL && (p.n == 0 || p.at[0] != '/' || p.n > SOCKET_PATH_MAX))
        why = "the path of the socket begins with / and has at most 107 bytes";
    if (why == NULL && has_query && (query.n < 4 || strncmp(query.at, "db=", 3) != 0))
        why = "behind the path only ?db=NUMBER is known";
    if (why == NULL)
        why = take_db(c, has_query,
                      has_query ? (struct piece){query.at + 3, query.n - 3} : query);
    return why != NULL ? why : keep(&a->host, p);
}

/* [[user]:password@]host[:port][/db] */
static const char *parse_tcp(struct ll_client *c, struct ll_address *a, struct piece p)
{
    struct piece db;
    bool has_db = cut(&p, '/', &db);
    const char *why = take_user(c, &p);

    if (why == NULL &&
        (memchr(p.at, '?', p.n) != NULL || memchr(db.at, '?', db.n) != NULL))
        why = "options behind ? are not known here";
    if (why == NULL)
        why = take_host(a, p, REDIS_PORT);
    return why != NULL ? why : take_db(c, has_db, db);
}

/* [[user]:password@]host[:port],host[:port]... and for Sentinels /name[/db] */
static const char *
parse_places(struct ll_client *c, const struct scheme *scheme, struct piece p)
{
    bool is_sentinel = scheme->kind == LL_SENTINELS;
    struct piece name, db, rest;
    const char *why = NULL;
    bool has_name = cut(&p, '/', &name), has_db = cut(&name, '/', &db), has_more = true;

    c->kind = scheme->kind;
    c->node_ct = 1;
    if (has_name != is_sentinel || (is_sentinel && name.n == 0))
        return is_sentinel
                   ? "behind the Sentinels stands /NAME, what they call the primary"
                   : "a cluster has no databases";
    why = take_user(c, &p);
    for (; why == NULL && has_more; p = rest) {
        struct ll_address *a = &c->places[c->place_ct];

        has_more = cut(&p, ',', &rest);
        if (c->place_ct++ == LL_PLACES_MAX)
            return "at most 8 servers can be named";
        a->is_tls = scheme->is_tls;
        why = take_host(a, p, is_sentinel ? SENTINEL_PORT : REDIS_PORT);
    }
    if (why == NULL && is_sentinel)
        why = keep(&c->primary_name, name);
    if (why == NULL && !is_sentinel)
        why = keep(&c->nodes[0].address.host, (struct piece){"", 0});
    return why != NULL ? why : take_db(c, has_db, db);
}

static const struct scheme *scheme_of(struct piece *p)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i].name);

        if (p->n < n || strncmp(p->at, schemes[i].name, n) != 0)
            continue;
        *p = (struct piece){p->at + n, p->n - n};
        return &schemes[i];
    }
    return NULL;
}

const char *ll_parse_url(struct ll_client *c, const char *url)
{
    struct piece p = {url, strlen(url)}, rest;
    const struct scheme *scheme = scheme_of(&p);
    const char *why = NULL;
    bool has_more = true;

    if (scheme != NULL && scheme->kind != LL_ONE_SERVER)
        return parse_places(c, scheme, p);
    for (p = (struct piece){url, strlen(url)}; why == NULL && has_more; p = rest) {
        struct ll_address *a;

        has_more = cut(&p, ',', &rest);
        scheme = scheme_of(&p);
        if (scheme == NULL || scheme->kind != LL_ONE_SERVER)
            return "a Redis URL begins with redis://, rediss://, unix://, "
                   "redis+sentinel:// or redis+cluster://";
        if (c->node_ct == LL_NODES_MAX)
            return "a quorum has 3 or 5 servers";
        a = &c->nodes[c->node_ct++].address;
        a->is_tls = scheme->is_tls;
        why = scheme->is_unix ? parse_unix(c, a, p) : parse_tcp(c, a, p);
    }
    if (why == NULL && c->node_ct != 1 && c->node_ct != 3 && c->node_ct != 5)
        why = "a quorum has 3 or 5 servers";
    c->kind = c->node_ct > 1 ? LL_QUORUM : LL_ONE_SERVER;
    return why;
}

/* ---- cluster: the node that has our slot ---- */

static bool copy_address(struct ll_address *to, const struct ll_address *from)
{
    char *host = strdup(from->host);

    if (host == NULL)
        return false;
    free(to->host);
    *to = *from;
    to->host = host;
    return true;
}

bool ll_has_tag(const char *prefix)
{
    const char *open = prefix == NULL ? NULL : strchr(prefix, '{');

    return open != NULL && open[1] != '}' && strchr(open, '}') != NULL;
}

/* The known nodes, one after another. */
int ll_next_seed(struct ll_client *c)
{
    const struct ll_address *seed = &c->places[c->place_at];

    c->place_at = (c->place_at + 1) % c->place_ct;
    return copy_address(&c->nodes[0].address, seed) ? LL_OK : ll_fail_as(c, LL_E_NOMEM);
}

/* "host:port"; an empty host means the node that answered. */
static bool
read_address(struct ll_address *a, const struct ll_address *from, const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port = colon == NULL ? 0 : strtol(colon + 1, &end, 10);

    if (port < 1 || port > 65535 || *end != '\0')
        return false;
    *a = (struct ll_address){.port = (int)port, .is_tls = from->is_tls};
    a->host =
        colon == text ? strdup(from->host) : strndup(text, (size_t)(colon - text));
    return a->host != NULL;
}

bool ll_place_follow(struct ll_client *c, struct ll_node *node, const char *error)
{
    struct ll_address target;
    bool is_ask = strncmp(error, "ASK ", 4) == 0;
    const char *at;

    if (!is_ask && strncmp(error, "MOVED ", 6) != 0)
        return false;
    at = strchr(error + (is_ask ? 4 : 6), ' ');
    if (at == NULL || !read_address(&target, &node->address, at + 1))
        return false;
    if (c->place_ct == 0 && !copy_address(&c->places[0], &node->address)) {
        free(target.host);
        return false;
    }
    c->place_ct = c->place_ct == 0 ? 1 : c->place_ct;
    c->kind = LL_CLUSTER;
    ll_node_close(node);
    free(node->address.host);
    node->address = target;
    node->is_asking = is_ask;
    return true;
}
