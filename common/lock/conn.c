/* conn: one connection to Redis with its own deadlines; a context that failed is thrown
 * away. Also the handshake: AUTH, SELECT, scripts, who the server is. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/lock/internal.h"

int64_t ll_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- I/O ---- */

/* Waits for the socket: 0, or an errno (ETIMEDOUT when the deadline passes). */
static int wait_socket(int fd, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = deadline_ms - ll_now_ms();
        int n;

        if (left <= 0)
            return ETIMEDOUT;
        n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return errno;
    }
}

/* Writes what is buffered without dying of SIGPIPE, whatever the program does with that
 * signal: it is blocked here, and taken back if our write raised it. */
static int write_some(redisContext *conn, int *done)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe, before, pending;
    int code;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    code = redisBufferWrite(conn, done);
    if (code != REDIS_OK && sigismember(&pending, SIGPIPE) == 0)
        (void)sigtimedwait(&pipe, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Throws the connection away. sent: whether the server may have seen the command. */
static int drop(struct ll_client *c, bool sent, const char *why)
{
    /* why may live in the context: say it before that is freed */
    (void)ll_fail(c, 0, "Redis at %s: %s", c->host, why);
    ll_disconnect(c);
    return sent ? LL_E_UNCERTAIN : LL_E_UNAVAILABLE;
}

int ll_command(struct ll_client *c,
               int argc,
               const char **argv,
               const size_t *lens,
               int64_t deadline_ms,
               redisReply **reply)
{
    int done = 0;
    void *got = NULL;
    bool sent = false;

    *reply = NULL;
    if (redisAppendCommandArgv(c->conn, argc, argv, lens) != REDIS_OK)
        return drop(c, false, c->conn->errstr);
    while (done == 0) {
        int e = wait_socket(c->conn->fd, POLLOUT, deadline_ms);

        if (e != 0)
            return drop(c, sent, e == ETIMEDOUT ? "no answer in time" : strerror(e));
        sent = true;
        if (write_some(c->conn, &done) != REDIS_OK)
            return drop(c, true, c->conn->errstr);
    }
    while (got == NULL) {
        int e;

        if (redisGetReplyFromReader(c->conn, &got) != REDIS_OK)
            return drop(c, true, c->conn->errstr);
        if (got != NULL)
            break;
        e = wait_socket(c->conn->fd, POLLIN, deadline_ms);
        if (e != 0)
            return drop(c, true, e == ETIMEDOUT ? "no answer in time" : strerror(e));
        if (redisBufferRead(c->conn) != REDIS_OK)
            return drop(c, true, c->conn->errstr);
    }
    *reply = got;
    return LL_OK;
}

int ll_reply_code(struct ll_client *c, const redisReply *reply)
{
    static const struct {
        const char *prefix;
        int code;
    } table[] = {
        {"READONLY", LL_E_READONLY},
        {"LOADING", LL_E_UNAVAILABLE},
        {"BUSY ", LL_E_UNAVAILABLE},
        {"MASTERDOWN", LL_E_UNAVAILABLE},
        {"MISCONF", LL_E_UNAVAILABLE},
        {"NOREPLICAS", LL_E_UNAVAILABLE},
        {"CLUSTERDOWN", LL_E_UNAVAILABLE},
        {"NOAUTH", LL_E_AUTH},
        {"WRONGPASS", LL_E_AUTH},
        {"NOPERM", LL_E_AUTH},
        {"ERR invalid password", LL_E_AUTH},
        {"ERR Client sent AUTH", LL_E_AUTH},
        {"ERR AUTH", LL_E_AUTH},
        {"OOM", LL_E_OOM},
    };

    int code = LL_E_PROTO;

    if (reply->type != REDIS_REPLY_ERROR)
        return ll_fail(c, code, "Redis gave an answer of the wrong type (%d)",
                       reply->type);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strncmp(reply->str, table[i].prefix, strlen(table[i].prefix)) == 0)
            code = table[i].code;
    }
    if (strstr(reply->str, "-READONLY") != NULL ||
        strstr(reply->str, "READONLY You") != NULL)
        code = LL_E_READONLY;
    if (strstr(reply->str, "OOM command not allowed") != NULL)
        code = LL_E_OOM;
    (void)ll_fail(c, code, "Redis: %s", reply->str);
    if (code == LL_E_READONLY)
        ll_disconnect(c); /* it was a primary when we connected: ask who is one now */
    return code;
}

/* ---- handshake ---- */

static int simple(struct ll_client *c,
                  int64_t deadline_ms,
                  redisReply **reply,
                  int argc,
                  const char **argv)
{
    size_t lens[4];
    int code;

    for (int i = 0; i < argc; i++)
        lens[i] = strlen(argv[i]);
    code = ll_command(c, argc, argv, lens, deadline_ms, reply);
    if (code == LL_OK && (*reply)->type == REDIS_REPLY_ERROR) {
        code = ll_reply_code(c, *reply);
        freeReplyObject(*reply);
        *reply = NULL;
    }
    return code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code;
}

static int run(struct ll_client *c, int64_t deadline_ms, int argc, const char **argv)
{
    redisReply *reply;
    int code = simple(c, deadline_ms, &reply, argc, argv);

    if (code == LL_OK)
        freeReplyObject(reply);
    return code;
}

static int authenticate(struct ll_client *c, int64_t deadline_ms)
{
    char number[16];
    int code = LL_OK;

    if (c->password != NULL && c->user != NULL)
        code = run(c, deadline_ms, 3, (const char *[]){"AUTH", c->user, c->password});
    else if (c->password != NULL)
        code = run(c, deadline_ms, 2, (const char *[]){"AUTH", c->password});
    if (code == LL_OK && c->db != 0) {
        (void)snprintf(number, sizeof number, "%d", c->db);
        code = run(c, deadline_ms, 2, (const char *[]){"SELECT", number});
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

static int read_info(struct ll_client *c, const char *info)
{
    char run_id[48], replid[48], role[16], policy[32];

    if (!info_field(info, "run_id", run_id, sizeof run_id) ||
        !info_field(info, "master_replid", replid, sizeof replid) ||
        !info_field(info, "role", role, sizeof role))
        return ll_fail(c, LL_E_PROTO,
                       "Redis: INFO names no run_id, master_replid or role");
    if (strcmp(role, "master") != 0)
        return ll_fail(c, LL_E_READONLY,
                       "Redis at %s is a replica (role:%s): connect to the primary",
                       c->host, role);
    if (info_field(info, "maxmemory_policy", policy, sizeof policy) &&
        strcmp(policy, "noeviction") != 0)
        return ll_fail(
            c, LL_E_EVICTING,
            "Redis at %s has maxmemory-policy %s and may throw locks away: set "
            "maxmemory-policy noeviction",
            c->host, policy);
    (void)snprintf(c->ident, sizeof c->ident, "%s:%s", run_id, replid);
    return LL_OK;
}

static int identify(struct ll_client *c, int64_t deadline_ms)
{
    redisReply *reply;
    int code = simple(c, deadline_ms, &reply, 1, (const char *[]){"INFO"});

    if (code != LL_OK)
        return code;
    code = reply->str != NULL ? read_info(c, reply->str) : ll_reply_code(c, reply);
    freeReplyObject(reply);
    return code;
}

/* Server wall clock against our boot clock. Half the round trip stays as an error; the
 * clock is only used to refuse commands that run far too late. */
static int read_clock(struct ll_client *c, int64_t deadline_ms)
{
    redisReply *reply;
    int64_t before = ll_now_ms();
    int code = simple(c, deadline_ms, &reply, 1, (const char *[]){"TIME"});

    if (code != LL_OK)
        return code;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        int64_t server = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
                         strtoll(reply->element[1]->str, NULL, 10) / 1000;

        c->server_ahead_ms = server - (before + ll_now_ms()) / 2;
    } else {
        code = ll_reply_code(c, reply);
    }
    freeReplyObject(reply);
    return code;
}

static int load_script(struct ll_client *c, enum lua_id id, int64_t deadline_ms)
{
    redisReply *reply;
    int code =
        simple(c, deadline_ms, &reply, 3,
               (const char *[]){"SCRIPT", "LOAD", (const char *)lua_texts[id].text});

    if (code != LL_OK)
        return code;
    if (reply->str != NULL && reply->len == 40)
        (void)snprintf(c->sha[id], sizeof c->sha[id], "%s", reply->str);
    else
        code = ll_reply_code(c, reply);
    freeReplyObject(reply);
    return code;
}

static int socket_ready(struct ll_client *c, int64_t deadline_ms)
{
    int error = 0;
    socklen_t size = sizeof error;
    int e;

    if (c->conn == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    if (c->conn->err != 0)
        return drop(c, false, c->conn->errstr);
    e = wait_socket(c->conn->fd, POLLOUT, deadline_ms);
    if (e == 0 && getsockopt(c->conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
        e = error;
    if (e != 0)
        return drop(c, false, e == ETIMEDOUT ? "no connection in time" : strerror(e));
    return LL_OK;
}

int ll_connect(struct ll_client *c)
{
    int64_t deadline_ms = ll_now_ms() + c->connect_ms;
    int code;

    if (c->owner != getpid())
        return ll_fail(c, LL_E_FORKED, "%s", ll_strerror(LL_E_FORKED));
    if (c->conn != NULL)
        return LL_OK;
    c->conn = c->is_unix ? redisConnectUnixNonBlock(c->host)
                         : redisConnectNonBlock(c->host, c->port);
    code = socket_ready(c, deadline_ms);
    if (code == LL_OK)
        code = authenticate(c, deadline_ms);
    if (code == LL_OK)
        code = identify(c, deadline_ms);
    if (code == LL_OK)
        code = read_clock(c, deadline_ms);
    for (int id = 0; code == LL_OK && id < LUA_COUNT; id++)
        code = load_script(c, (enum lua_id)id, deadline_ms);
    if (code != LL_OK)
        ll_disconnect(c);
    return code;
}

void ll_disconnect(struct ll_client *c)
{
    if (c->conn == NULL)
        return;
    redisFree(c->conn); /* closes our descriptor only: nothing is sent */
    c->conn = NULL;
}

/* ---- scripts ---- */

int ll_script(struct ll_client *c,
              enum lua_id id,
              int keys,
              int argc,
              const char **argv,
              size_t *lens,
              redisReply **reply)
{
    int64_t deadline_ms = ll_now_ms() + c->reply_ms;
    char count[16];
    int code = LL_OK;

    lens[2] = (size_t)snprintf(count, sizeof count, "%d", keys);
    argv[2] = count;
    argv[0] = "EVALSHA";
    lens[0] = 7;
    for (int attempt = 0; attempt < 2; attempt++) {
        argv[1] = c->sha[id];
        lens[1] = 40;
        code = ll_command(c, argc, argv, lens, deadline_ms, reply);
        if (code != LL_OK || (*reply)->type != REDIS_REPLY_ERROR)
            return code;
        if (attempt == 1 || strncmp((*reply)->str, "NOSCRIPT", 8) != 0)
            break;
        freeReplyObject(*reply);
        *reply = NULL;
        code = load_script(c, id, deadline_ms);
        if (code != LL_OK)
            return code;
    }
    code = ll_reply_code(c, *reply);
    freeReplyObject(*reply);
    *reply = NULL;
    return code;
}
