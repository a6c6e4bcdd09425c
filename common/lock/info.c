/* info: what INFO tells of a server: its role, its policy of eviction, its version, and
 * of a node of a quorum its age. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

/* Copies the value of "name:value\r\n" in the answers of INFO. */
bool rlock_info_field(const struct rlock_node *node,
                      const char *name,
                      char *buf,
                      size_t size)
{
    redisReply *const *info = node->shake.replies + node->head_ct;
    size_t n = strlen(name);

    buf[0] = '\0';
    for (size_t i = 0; i < node->info_ct; i++) {
        for (const char *p = info[i]->str; p != NULL && (p = strstr(p, name)) != NULL;
             p += n) {
            if ((p != info[i]->str && p[-1] != '\n') || p[n] != ':')
                continue;
            (void)snprintf(buf, size, "%.*s", (int)strcspn(p + n + 1, "\r\n"),
                           p + n + 1);
            return true;
        }
    }
    return false;
}

static bool is_too_old(const char *version)
{
    char *dot;
    long major = strtol(version, &dot, 10);
    long minor = *dot == '.' ? strtol(dot + 1, NULL, 10) : 0;

    return dot != version && (major < 6 || (major == 6 && minor < 2));
}

/* A server without a limit of memory evicts nothing, whatever its policy. */
static bool may_evict(const struct rlock_node *node, char *policy, size_t size)
{
    char limit[24];
    bool is_unlimited = rlock_info_field(node, "maxmemory", limit, sizeof limit) &&
                        strcmp(limit, "0") == 0;

    return !is_unlimited && rlock_info_field(node, "maxmemory_policy", policy, size) &&
           strcmp(policy, "noeviction") != 0;
}

int rlock_info_check(struct rlock_client *c, struct rlock_node *node)
{
    char field[48];

    if (rlock_info_field(node, "redis_version", field, sizeof field) &&
        is_too_old(field))
        return rlock_fail_at(c, node, RLOCK_E_VERSION,
                             " is %s, and the scripts need 6.2 or newer", field);
    if (!rlock_info_field(node, "role", field, sizeof field)) {
        if (!c->o.allow_no_role)
            return rlock_fail_at(c, node, RLOCK_E_PROTO, ": INFO names no role");
    } else if (strcmp(field, "master") != 0) {
        return rlock_fail_at(c, node, RLOCK_E_READONLY,
                             " is a replica (role:%s): connect to the primary", field);
    }
    if (!c->o.allow_eviction && may_evict(node, field, sizeof field))
        return rlock_fail_at(c, node, RLOCK_E_EVICTING,
                             " has maxmemory-policy %s and may throw locks away: "
                             "set maxmemory-policy noeviction",
                             field);
    if ((rlock_info_field(node, "redis_mode", field, sizeof field) ||
         rlock_info_field(node, "server_mode", field, sizeof field)) && /* Valkey */
        strcmp(field, "cluster") == 0 &&
        (c->node_ct > 1 || !rlock_has_tag(c->prefix)))
        return rlock_fail_at(c, node, RLOCK_E_CLUSTER,
                             " is a node of a cluster: the prefix needs one hash tag, "
                             "such as {locks}:, and a quorum is not for it");
    return RLOCK_OK;
}

/* ---- quorum ---- */

const struct rlock_node *rlock_twin_of(const struct rlock_client *c,
                                       const struct rlock_node *node)
{
    unsigned up = node->run_id[0] != '\0' ? rlock_up_nodes(c) : 0;

    for (size_t i = 0; (i = rlock_next(c, up, i)) < c->node_ct; i++) {
        if (&c->nodes[i] != node && strcmp(c->nodes[i].run_id, node->run_id) == 0)
            return &c->nodes[i];
    }
    return NULL;
}

/* A node that was restarted may have lost locks that are still held: it may not grant
 * until the longest lease has ended. Its uptime is in whole seconds. */
static int read_age(struct rlock_client *c, struct rlock_node *node)
{
    int64_t up_s = -1;
    char uptime[24];

    if (rlock_info_field(node, "uptime_in_seconds", uptime, sizeof uptime))
        up_s = strtoll(uptime, NULL, 10);
    if (up_s < 0 || up_s > RLOCK_TOKEN_END / 1000000)
        return rlock_fail_at(c, node, RLOCK_E_PROTO, ": INFO names no uptime");
    /* its uptime at the answer, which may be as late as now */
    node->grants_at_ms = rlock_now_ms() - (up_s - 1) * 1000 + c->o.max_lease_ms;
    return RLOCK_OK;
}

int rlock_info_join(struct rlock_client *c, struct rlock_node *node)
{
    int code = read_age(c, node);
    redisReply *const *replies = node->shake.replies + node->head_ct + node->info_ct;
    const redisReply *set = replies[0], *max_lease = replies[1];
    const struct rlock_node *twin = rlock_twin_of(c, node);
    int64_t most_ms = 0;

    if (code != RLOCK_OK)
        return code;
    if (max_lease->type != REDIS_REPLY_STRING && set->type == REDIS_REPLY_ERROR)
        return rlock_reply_code(c, node, set); /* its memory may be full */
    if (!rlock_reply_number(max_lease, &most_ms) || most_ms != c->o.max_lease_ms)
        return rlock_fail_at(
            c, node, RLOCK_E_INVAL,
            ": max_lease_ms is %lld there and %lld here; it must be the "
            "same for all (delete %s!max_lease to change it)",
            (long long)most_ms, (long long)c->o.max_lease_ms, c->prefix);
    return twin == NULL ? RLOCK_OK
                        : rlock_fail(c, RLOCK_E_INVAL, "%s:%d and %s:%d are one server",
                                     node->address.host, node->address.port,
                                     twin->address.host, twin->address.port);
}
