/* handshake: the commands of a new connection, in one round trip: AUTH, SELECT,
 * identity, role and policy of the server, its clock, and in a cluster the node of our
 * slot. A later handshake detects changes of these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

/* Commands for a node of a quorum. Scripts are loaded into it: one that does not know a
 * script would miss the commands whose answers nobody waits for. */
enum { QUORUM_CT = 2 + LUA_COUNT };

enum { REDIRECTS_MAX = 5 };

static size_t head_ct(const struct rlock_client *c)
{
    return (c->o.password != NULL ? 1U : 0U) + (c->db != 0 ? 1U : 0U);
}

static void put_auth(struct rlock_text *t, const char *user, const char *password)
{
    rlock_put_command(t, user != NULL ? 3 : 2);
    rlock_put_word(t, "AUTH");
    if (user != NULL)
        rlock_put_word(t, user);
    rlock_put_word(t, password);
}

static void put_quorum(struct rlock_client *c, struct rlock_text *t)
{
    char key[RLOCK_PREFIX_MAX + 16];

    (void)snprintf(key, sizeof key, "%s!max_lease", c->prefix);
    rlock_put_command(t, 3);
    rlock_put_word(t, "SETNX");
    rlock_put_word(t, key);
    rlock_put_number(t, c->o.max_lease_ms);
    rlock_put_words(t, (const char *[]){"GET", key, NULL});
    for (int i = 0; i < LUA_COUNT; i++)
        rlock_put_words(t, (const char *[]){"SCRIPT", "LOAD",
                                            (const char *)lua_texts[i].text, NULL});
}

static void send_to_server(struct rlock_client *c, struct rlock_node *node)
{
    struct rlock_text *t = &node->out;

    rlock_talk_begin(node, head_ct(c) + (c->kind == RLOCK_QUORUM ? QUORUM_CT : 0) +
                               (node->is_asking ? 4 : 3));
    if (c->o.password != NULL)
        put_auth(t, c->user, c->o.password);
    if (c->db != 0) {
        rlock_put_command(t, 2);
        rlock_put_word(t, "SELECT");
        rlock_put_number(t, c->db);
    }
    rlock_put_words(t, (const char *[]){"INFO", NULL});
    if (c->kind == RLOCK_QUORUM)
        put_quorum(c, t);
    if (node->is_asking)
        rlock_put_words(t, (const char *[]){"ASKING", NULL});
    rlock_put_words(t, (const char *[]){"GET", c->last_key, NULL});
    rlock_put_words(t, (const char *[]){"TIME", NULL});
}

void rlock_handshake_put(struct rlock_client *c, struct rlock_node *node)
{
    bool has_auth = c->o.sentinel_password != NULL;

    node->asked_ms = rlock_now_ms();
    if (!node->is_sentinel) {
        send_to_server(c, node);
        return;
    }
    rlock_talk_begin(node, has_auth ? 2 : 1);
    if (has_auth)
        put_auth(&node->out, c->o.sentinel_user, c->o.sentinel_password);
    rlock_put_words(&node->out, (const char *[]){"SENTINEL", "get-master-addr-by-name",
                                                 c->primary_name, NULL});
}

/* ---- INFO ---- */

/* Copies the value of "name:value\r\n". */
static bool info_field(const redisReply *info, const char *name, char *buf, size_t size)
{
    size_t n = strlen(name);

    buf[0] = '\0';
    for (const char *p = info->str; p != NULL && (p = strstr(p, name)) != NULL;
         p += n) {
        if ((p != info->str && p[-1] != '\n') || p[n] != ':')
            continue;
        (void)snprintf(buf, size, "%.*s", (int)strcspn(p + n + 1, "\r\n"), p + n + 1);
        return true;
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

static int
check_info(struct rlock_client *c, struct rlock_node *node, const redisReply *info)
{
    char field[48];

    if (info_field(info, "redis_version", field, sizeof field) && is_too_old(field))
        return rlock_fail_at(c, node, RLOCK_E_VERSION,
                             " is %s, and the scripts need 6.2 or newer", field);
    if (!info_field(info, "role", field, sizeof field))
        return rlock_fail_at(c, node, RLOCK_E_PROTO, ": INFO names no role");
    if (strcmp(field, "master") != 0)
        return rlock_fail_at(c, node, RLOCK_E_READONLY,
                             " is a replica (role:%s): connect to the primary", field);
    if (!c->o.allow_eviction &&
        info_field(info, "maxmemory_policy", field, sizeof field) &&
        strcmp(field, "noeviction") != 0)
        return rlock_fail_at(c, node, RLOCK_E_EVICTING,
                             " has maxmemory-policy %s and may throw locks away: "
                             "set maxmemory-policy noeviction",
                             field);
    if ((info_field(info, "redis_mode", field, sizeof field) ||
         info_field(info, "server_mode", field, sizeof field)) && /* Valkey */
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
static int check_member(struct rlock_client *c, struct rlock_node *node)
{
    redisReply *const *replies = node->replies + head_ct(c);
    const redisReply *info = replies[0], *set = replies[1], *max_lease = replies[2];
    const struct rlock_node *twin = rlock_twin_of(c, node);
    int64_t most_ms = 0, up_s = -1;
    char uptime[24];

    if (info_field(info, "uptime_in_seconds", uptime, sizeof uptime))
        up_s = strtoll(uptime, NULL, 10);
    if (up_s < 0 || up_s > RLOCK_TOKEN_END / 1000000)
        return rlock_fail_at(c, node, RLOCK_E_PROTO, ": INFO names no uptime");
    /* its uptime at the answer, which may be as late as now */
    node->grants_at_ms = rlock_now_ms() - (up_s - 1) * 1000 + c->o.max_lease_ms;
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

/* ---- answers ---- */

/* Offset between the server's wall clock and our boot clock, with an error of half the
 * round trip; it is used only to refuse commands that run far too late. */
static int
read_clock(struct rlock_client *c, struct rlock_node *node, const redisReply *time)
{
    int64_t seconds, us;

    if (time->type != REDIS_REPLY_ARRAY || time->elements != 2 ||
        !rlock_reply_number(time->element[0], &seconds) ||
        !rlock_reply_number(time->element[1], &us) || seconds < 0 ||
        seconds > RLOCK_TOKEN_END / 1000000)
        return rlock_fail_at(c, node, RLOCK_E_PROTO, ": TIME answered nonsense");
    node->server_ahead_ms =
        seconds * 1000 + us / 1000 - (node->asked_ms + rlock_now_ms()) / 2;
    return RLOCK_OK;
}

/* Code of the first error among n answers. The text of an answer to AUTH is never used:
 * it may contain the password. */
static int
first_error(struct rlock_client *c, struct rlock_node *node, size_t n, bool has_auth)
{
    for (size_t i = 0; i < n; i++) {
        int code;

        if (node->replies[i]->type != REDIS_REPLY_ERROR)
            continue;
        code = rlock_reply_code(c, node, node->replies[i]);
        if (i == 0 && has_auth)
            (void)rlock_fail_at(c, node, 0, ": AUTH: %s", rlock_strerror(code));
        return code;
    }
    return RLOCK_OK;
}

static int read_sentinel(struct rlock_client *c, struct rlock_node *node)
{
    const redisReply *address = node->replies[node->wanted - 1];
    struct rlock_address *a = &c->nodes[0].address;
    int code = first_error(c, node, node->wanted, c->o.sentinel_password != NULL);
    int64_t port;

    if (code != RLOCK_OK)
        return code;
    if (address->type == REDIS_REPLY_NIL)
        return rlock_fail(c, RLOCK_E_UNAVAILABLE,
                          "the Sentinel at %s knows no primary called %s",
                          node->address.host, c->primary_name);
    if (address->type != REDIS_REPLY_ARRAY || address->elements != 2 ||
        address->element[0]->type != REDIS_REPLY_STRING ||
        address->element[0]->len > RLOCK_HOST_MAX ||
        !rlock_reply_number(address->element[1], &port) || port < 1 || port > 65535)
        return rlock_fail(c, RLOCK_E_PROTO, "the Sentinel at %s named no address",
                          node->address.host);
    *a = (struct rlock_address){.port = (int)port, .is_tls = node->address.is_tls};
    memcpy(a->host, address->element[0]->str, address->element[0]->len + 1);
    return RLOCK_OK;
}

static int read_server(struct rlock_client *c, struct rlock_node *node)
{
    size_t head = head_ct(c);
    const redisReply *info = node->replies[head];
    const redisReply *last = node->replies[node->wanted - 2];
    int code = first_error(c, node, head + 1, c->o.password != NULL);

    if (code != RLOCK_OK)
        return code;
    if (c->node_ct == 1 && rlock_is_error(last, "MOVED "))
        return node->redirects++ < REDIRECTS_MAX &&
                       rlock_place_follow(c, node, last->str)
                   ? RLOCK_BUSY
                   : rlock_reply_code(c, node, last);
    code = check_info(c, node, info);
    if (code == RLOCK_OK && last->type == REDIS_REPLY_ERROR &&
        !rlock_is_error(last, "ASK "))
        code = rlock_reply_code(c, node, last);
    if (code != RLOCK_OK)
        return code;
    (void)info_field(info, "run_id", node->run_id, sizeof node->run_id);
    if (c->kind == RLOCK_QUORUM)
        code = check_member(c, node);
    return code == RLOCK_OK ? read_clock(c, node, node->replies[node->wanted - 1])
                            : code;
}

int rlock_handshake_read(struct rlock_client *c, struct rlock_node *node)
{
    return node->is_sentinel ? read_sentinel(c, node) : read_server(c, node);
}
