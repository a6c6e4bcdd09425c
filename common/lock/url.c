/* url: addresses of servers: those of a URL (one server, a quorum, Sentinels, nodes of
 * a cluster), and the one to which a cluster redirects. */
#define _DEFAULT_SOURCE /* strdup */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

const char rlock_no_memory[] = "out of memory";

static const char not_same[] =
    "user, password and db must be the same for all servers of a quorum";
static const char three_or_five[] = "a quorum has 3 or 5 servers";

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379, SOCKET_PATH_MAX = 107 };

/* The part before ://. */
struct scheme {
    enum rlock_kind kind;
    bool is_tls, is_unix;
};

/* "redis" or "valkey", "s" for TLS, and then: */
static const struct {
    const char *name;
    enum rlock_kind kind;
} kinds[] = {{"://", RLOCK_ONE_SERVER},
             {"+sentinel://", RLOCK_SENTINELS},
             {"+cluster://", RLOCK_CLUSTER}};

/* ---- pieces; the text is a copy that is cut up ---- */

/* Ends the text at the first `mark`; returns what is behind it, or NULL. */
static char *cut(char *text, char mark)
{
    char *at = strchr(text, mark);

    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + 1;
}

/* Cuts "[user]:password@" off, which ends at the last @; "" if there is none. */
static char *cut_user(char **text)
{
    char *user = *text, *at = strrchr(user, '@');

    if (at == NULL)
        return user + strlen(user);
    *at = '\0';
    *text = at + 1;
    return user;
}

/* Decodes %XX in place; returns NULL, or the reason why not. */
static const char *decode(char *text)
{
    char *out = text;

    for (; *text != '\0'; text++, out++) {
        *out = *text;
        if (*text == '%' && isxdigit((unsigned char)text[1]) &&
            isxdigit((unsigned char)text[2])) {
            *out = (char)strtol((char[]){text[1], text[2], '\0'}, NULL, 16);
            text += 2;
        }
        if (*out == '\0')
            return "%00 can stand nowhere";
    }
    *out = '\0';
    return NULL;
}

static const char *keep(char **out, char *text)
{
    const char *why = decode(text);

    if (why != NULL)
        return why;
    *out = strdup(text);
    return *out == NULL ? rlock_no_memory : NULL;
}

static bool read_number(const char *text, int *out)
{
    size_t n = strspn(text, "0123456789");

    *out = (int)strtol(text, NULL, 10);
    return n > 0 && n <= 5 && text[n] == '\0' && *out <= 65535;
}

static const char *take_user(struct rlock_client *c, char *user)
{
    char *password = cut(user, ':');
    const char *why = password == NULL ? NULL : keep(&c->password, password);

    return why != NULL || user[0] == '\0' ? why : keep(&c->user, user);
}

/* host[:port]; a host in brackets is an IPv6 address. */
static const char *take_host(struct rlock_address *a, char *host, int port)
{
    bool is_v6 = host[0] == '[';
    char *rest = cut(host, is_v6 ? ']' : ':');

    if (is_v6) {
        if (rest == NULL)
            return "the [ of the address is not closed";
        if (rest[0] != '\0' && rest[0] != ':')
            return "behind the ] only :PORT may stand";
        host++;
        rest = rest[0] == ':' ? rest + 1 : NULL;
    }
    a->port = port;
    if (rest != NULL && (!read_number(rest, &a->port) || a->port == 0))
        return "the port is no number from 1 to 65535";
    if (host[0] == '\0' || strpbrk(host, " %") != NULL || strlen(host) > RLOCK_HOST_MAX)
        return "a server has no name, or a blank in it, or more than 255 bytes";
    (void)strcpy(a->host, host);
    return NULL;
}

static const char *take_db(struct rlock_client *c, const char *text)
{
    int db = 0;

    if (text != NULL && text[0] != '\0' && !read_number(text, &db))
        return "the database is no number";
    if (c->node_ct > 1 && db != c->db)
        return not_same;
    c->db = db;
    return NULL;
}

/* ---- whole URLs, without their scheme ---- */

/* [[user]:password@]host[:port][/db], or [[user]:password@]/path[?db=n] */
static const char *parse_server(struct rlock_client *c,
                                const struct scheme *scheme,
                                char *text,
                                char **user)
{
    struct rlock_address *a = &c->nodes[c->node_ct++].address;
    char *db = cut(text, scheme->is_unix ? '?' : '/');
    const char *why;

    a->is_tls = scheme->is_tls;
    a->is_unix = scheme->is_unix;
    *user = text + strlen(text);
    if (text[0] != '/')
        *user = cut_user(&text);
    if (a->is_unix && (text[0] != '/' || strlen(text) > SOCKET_PATH_MAX))
        return "the path of the socket begins with / and has at most 107 bytes";
    if (a->is_unix && db != NULL && (strncmp(db, "db=", 3) != 0 || db[3] == '\0'))
        return "behind the path only ?db=NUMBER is known";
    if (!a->is_unix &&
        (strchr(text, '?') != NULL || (db != NULL && strchr(db, '?') != NULL)))
        return "options behind ? are not known here";
    if (a->is_unix && db != NULL)
        db += strlen("db=");
    why = a->is_unix ? decode(text) : take_host(a, text, REDIS_PORT);
    if (a->is_unix)
        (void)strcpy(a->host, text);
    return why != NULL ? why : take_db(c, db);
}

/* [[user]:password@]host[:port],host[:port]... and for Sentinels /name[/db] */
static const char *
parse_places(struct rlock_client *c, const struct scheme *scheme, char *text)
{
    bool is_sentinel = scheme->kind == RLOCK_SENTINELS;
    char *name = cut(text, '/');
    char *db = name == NULL ? NULL : cut(name, '/');
    char *user = cut_user(&text), *rest;
    const char *why = NULL;

    c->kind = scheme->kind;
    c->node_ct = 1;
    if (is_sentinel && (name == NULL || name[0] == '\0'))
        return "behind the Sentinels stands /NAME, what they call the primary";
    if (!is_sentinel && name != NULL)
        return "a cluster has no databases";
    for (; why == NULL && text != NULL; text = rest) {
        struct rlock_address *a = &c->places[c->place_ct];

        rest = cut(text, ',');
        if (c->place_ct++ == RLOCK_PLACES_MAX)
            return "at most 8 servers can be named";
        a->is_tls = scheme->is_tls;
        why = take_host(a, text, is_sentinel ? SENTINEL_PORT : REDIS_PORT);
    }
    if (why == NULL && is_sentinel)
        why = keep(&c->primary_name, name);
    if (why == NULL)
        why = take_db(c, db);
    if (!is_sentinel)
        rlock_next_seed(c);
    return why != NULL ? why : take_user(c, user);
}

static bool cut_begin(char **text, const char *begin)
{
    size_t n = strlen(begin);
    bool is_there = strncmp(*text, begin, n) == 0;

    *text += is_there ? n : 0;
    return is_there;
}

/* False: none that is known. */
static bool read_scheme(struct scheme *scheme, char **text)
{
    *scheme = (struct scheme){.kind = RLOCK_ONE_SERVER};
    scheme->is_unix = cut_begin(text, "unix://");
    if (scheme->is_unix)
        return true;
    if (!cut_begin(text, "redis") && !cut_begin(text, "valkey"))
        return false;
    scheme->is_tls = cut_begin(text, "s");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        scheme->kind = kinds[i].kind;
        if (cut_begin(text, kinds[i].name))
            return true;
    }
    return false;
}

static const char *parse(struct rlock_client *c, char *text)
{
    char *first = NULL, *user, *rest;
    const char *why;

    for (; text != NULL; text = rest) {
        struct scheme scheme;
        bool is_known = read_scheme(&scheme, &text);

        if (is_known && scheme.kind != RLOCK_ONE_SERVER && c->node_ct == 0)
            return parse_places(c, &scheme, text);
        if (!is_known || scheme.kind != RLOCK_ONE_SERVER)
            return "a Redis URL begins with redis://, rediss://, unix://, "
                   "redis+sentinel:// or redis+cluster://";
        if (c->node_ct == RLOCK_NODES_MAX)
            return three_or_five;
        rest = cut(text, ',');
        why = parse_server(c, &scheme, text, &user);
        if (why != NULL)
            return why;
        first = first == NULL ? user : first;
        if (strcmp(first, user) != 0)
            return not_same;
    }
    if (c->node_ct != 1 && c->node_ct != 3 && c->node_ct != 5)
        return three_or_five;
    c->kind = c->node_ct > 1 ? RLOCK_QUORUM : RLOCK_ONE_SERVER;
    return take_user(c, first);
}

const char *rlock_parse_url(struct rlock_client *c, const char *url)
{
    char *text = strdup(url);
    const char *why = text == NULL ? rlock_no_memory : parse(c, text);

    if (text != NULL)
        rlock_wipe(text, strlen(url)); /* the password */
    free(text);
    return why;
}

/* ---- cluster: the node that has our slot ---- */

bool rlock_has_tag(const char *prefix)
{
    const char *open = prefix == NULL ? NULL : strchr(prefix, '{');

    return open != NULL && open[1] != '}' && strchr(open, '}') != NULL;
}

/* The known nodes, one after another. */
void rlock_next_seed(struct rlock_client *c)
{
    c->nodes[0].address = c->places[c->place_at];
    c->place_at = (c->place_at + 1) % c->place_ct;
}

/* An empty host means the node that answered. */
bool rlock_place_follow(struct rlock_client *c,
                        struct rlock_node *node,
                        const char *error)
{
    struct rlock_address target = node->address;
    bool is_ask = strncmp(error, "ASK ", 4) == 0;
    const char *host, *colon;

    if (!is_ask && strncmp(error, "MOVED ", 6) != 0)
        return false;
    host = strrchr(error, ' ') + 1;
    colon = strrchr(host, ':');
    if (colon == NULL || colon - host > RLOCK_HOST_MAX ||
        !read_number(colon + 1, &target.port) || target.port == 0)
        return false;
    target.is_unix = false;
    if (colon > host)
        (void)snprintf(target.host, sizeof target.host, "%.*s", (int)(colon - host),
                       host);
    if (c->place_ct == 0)
        c->places[c->place_ct++] = node->address; /* to come back to */
    node->is_stale = true;
    c->kind = RLOCK_CLUSTER;
    node->address = target;
    node->is_asking = is_ask;
    return true;
}
