/* places: finds the node that has the slot of a cluster. */
#define _DEFAULT_SOURCE /* strdup */
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

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
