/* handshake: from an address to a connection that may be used: socket, TLS, AUTH,
 * SELECT, who the server is, how its clock stands, the scripts. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/lock/internal.h"
#include "common/lock/tls.h"

static int unavailable(struct ll_client *c, struct ll_node *node, const char *why)
{
    return ll_fail(c, LL_E_UNAVAILABLE, "Redis at %s: %s", node->address.host, why);
}

/* Nothing that the handshake asks changes anything: no answer means not available. */
static int words(struct ll_client *c,
                 struct ll_node *node,
                 int64_t deadline_ms,
                 redisReply **reply,
                 int argc,
                 const char **argv)
{
    int code = ll_words(c, node, deadline_ms, reply, argc, argv);

    return code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code;
}

static int run(struct ll_client *c,
               struct ll_node *node,
               int64_t deadline_ms,
               int argc,
               const char **argv)
{
    redisReply *reply;
    int code = words(c, node, deadline_ms, &reply, argc, argv);

    if (code == LL_OK)
        freeReplyObject(reply);
    return code;
}

static int authenticate(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    char number[16];
    int code = LL_OK;

    if (c->password != NULL && c->user != NULL)
        code = run(c, node, deadline_ms, 3,
                   (const char *[]){"AUTH", c->user, c->password});
    else if (c->password != NULL)
        code = run(c, node, deadline_ms, 2, (const char *[]){"AUTH", c->password});
    if (code == LL_OK && c->db != 0) {
        (void)snprintf(number, sizeof number, "%d", c->db);
        code = run(c, node, deadline_ms, 2, (const char *[]){"SELECT", number});
    }
    return code;
}

/* Copies the value of "name:value\r\n" of an INFO text. */
static bool info_field(const char *info, const char *name, char *buf, size_t size)
{
    const char *p = info;
    size_t n = strlen(name);

    while ((p = strstr(p, name)) != NULL) {
        if ((p == info || p[-1] == '\n') && p[n] == ':') {
            size_t len = strcspn(p + n + 1, "\r\n");

            (void)snprintf(buf, size, "%.*s", (int)len, p + n + 1);
            return true;
        }
        p += n;
    }
    return false;
}

/* The keys of one tenure would lie on several servers, and no script reaches them all.
 */
static bool is_cluster(const char *info)
{
    char mode[16];

    return info_field(info, "redis_mode", mode, sizeof mode) &&
           strcmp(mode, "cluster") == 0;
}

/* The acquire script of one server uses COPY. A server that does not say what it is, is
 * taken as it is. */
static bool
is_too_old(const struct ll_client *c, const char *info, char *version, size_t size)
{
    long major, minor = 0;
    char *dot;

    if (c->no_scripts || c->node_ct > 1 ||
        !info_field(info, "redis_version", version, size))
        return false;
    major = strtol(version, &dot, 10);
    if (dot == version)
        return false;
    if (*dot == '.')
        minor = strtol(dot + 1, NULL, 10);
    return major < 6 || (major == 6 && minor < 2);
}

static int read_info(struct ll_client *c, struct ll_node *node, const char *info)
{
    char run_id[48], replid[48], role[16], policy[32], version[32];
    const char *host = node->address.host;

    if (is_cluster(info))
        return ll_fail(c, LL_E_CLUSTER,
                       "Redis at %s runs in cluster mode, which spreads the keys of a "
                       "tenure over servers: use one server or a quorum",
                       host);
    if (!info_field(info, "run_id", run_id, sizeof run_id) ||
        !info_field(info, "master_replid", replid, sizeof replid) ||
        !info_field(info, "role", role, sizeof role))
        return ll_fail(c, LL_E_PROTO,
                       "Redis at %s: INFO names no run_id, master_replid or role",
                       host);
    if (is_too_old(c, info, version, sizeof version))
        return ll_fail(c, LL_E_VERSION,
                       "Redis at %s is %s, and the scripts need 6.2 or newer", host,
                       version);
    if (strcmp(role, "master") != 0)
        return ll_fail(c, LL_E_READONLY,
                       "Redis at %s is a replica (role:%s): connect to the primary",
                       host, role);
    if (info_field(info, "maxmemory_policy", policy, sizeof policy) &&
        strcmp(policy, "noeviction") != 0)
        return ll_fail(c, LL_E_EVICTING,
                       "Redis at %s has maxmemory-policy %s and may throw locks away: "
                       "set maxmemory-policy noeviction",
                       host, policy);
    (void)snprintf(node->ident, sizeof node->ident, "%s:%s", run_id, replid);
    return LL_OK;
}

static int identify(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    redisReply *reply;
    int code = words(c, node, deadline_ms, &reply, 1, (const char *[]){"INFO"});

    if (code != LL_OK)
        return code;
    code = reply->str != NULL ? read_info(c, node, reply->str)
                              : ll_reply_code(c, node, reply);
    freeReplyObject(reply);
    return code;
}

/* Server wall clock against our boot clock. Half the round trip stays as an error; the
 * clock is only used to refuse commands that run far too late. */
static int read_clock(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    redisReply *reply;
    int64_t before = ll_now_ms();
    int code = words(c, node, deadline_ms, &reply, 1, (const char *[]){"TIME"});

    if (code != LL_OK)
        return code;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        int64_t server = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
                         strtoll(reply->element[1]->str, NULL, 10) / 1000;

        node->server_ahead_ms = server - (before + ll_now_ms()) / 2;
    } else {
        code = ll_reply_code(c, node, reply);
    }
    freeReplyObject(reply);
    return code;
}

static int load_scripts(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    int code = LL_OK;

    for (int id = 0; code == LL_OK && !c->no_scripts && id < LUA_COUNT; id++)
        code = ll_load_script(c, node, (enum lua_id)id, deadline_ms);
    return code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code;
}

static int wait_connected(int fd, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;

    for (;;) {
        int64_t left = deadline_ms - ll_now_ms();
        int n;

        if (left <= 0)
            return ETIMEDOUT;
        n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error
                                                                            : errno;
    }
}

/* Reads wait, but never longer than a tick; writes are told not to, one by one. */
static int let_reads_wait(int fd)
{
    static const struct timeval tick = {0, LL_TICK_MS * 1000};
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return -1;
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
}

int ll_node_open(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    const struct ll_address *a = &node->address;
    int e;

    node->conn = a->is_unix ? redisConnectUnixNonBlock(a->host)
                            : redisConnectNonBlock(a->host, a->port);
    if (node->conn == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    if (node->conn->err != 0)
        return unavailable(c, node, node->conn->errstr);
    e = wait_connected(node->conn->fd, deadline_ms);
    if (e != 0)
        return unavailable(c, node,
                           e == ETIMEDOUT ? "no connection in time" : strerror(e));
    if (a->is_tls)
        return ll_tls_start(c, node, deadline_ms);
    return let_reads_wait(node->conn->fd) == 0 ? LL_OK
                                               : unavailable(c, node, strerror(errno));
}

int ll_node_shake(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    int code = authenticate(c, node, deadline_ms);

    if (code == LL_OK)
        code = identify(c, node, deadline_ms);
    if (code == LL_OK)
        code = read_clock(c, node, deadline_ms);
    if (code == LL_OK)
        code = load_scripts(c, node, deadline_ms);
    if (code != LL_OK)
        ll_node_disconnect(node);
    return code;
}

int ll_node_connect(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    int code;

    if (node->conn != NULL)
        return LL_OK;
    code = ll_node_open(c, node, deadline_ms);
    if (code == LL_OK)
        return ll_node_shake(c, node, deadline_ms);
    ll_node_disconnect(node);
    return code;
}
