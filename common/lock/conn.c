/* conn: commands on one or several nodes at once, with their own deadlines. A
 * connection that failed is thrown away. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/lock/internal.h"
#include "common/lock/tls.h"

int64_t ll_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void ll_node_disconnect(struct ll_node *node)
{
    if (node->conn == NULL)
        return;
    redisFree(node->conn); /* closes our descriptor only: nothing is sent */
    node->conn = NULL;
}

/* ---- one call ---- */

static void finish(struct ll_call *call, int code)
{
    if (call->command != NULL && call->replies == NULL)
        free(call->command);
    call->command = NULL;
    call->is_open = false;
    call->code = code;
}

/* Throws the connection away: what comes late must not answer the next question. */
static void drop(struct ll_client *c, struct ll_call *call, const char *why)
{
    /* why may live in the context: say it before that is freed */
    (void)ll_fail(c, 0, "Redis at %s: %s", call->node->address.host, why);
    ll_node_disconnect(call->node);
    finish(call, call->sent > 0 ? LL_E_UNCERTAIN : LL_E_UNAVAILABLE);
}

static bool write_command(struct ll_call *call)
{
    call->command = malloc(ll_command_room(call->argc, call->lens));
    if (call->command == NULL)
        return false;
    call->size = ll_write_command(call->command, call->argc, call->argv, call->lens);
    return true;
}

static void start(struct ll_client *c, struct ll_call *call)
{
    call->reply = NULL;
    call->sent = 0;
    call->is_flushing = false;
    if (call->replies == NULL && !write_command(call)) {
        (void)ll_fail(c, 0, "out of memory");
        finish(call, LL_E_NOMEM);
        return;
    }
    call->is_open = true;
}

static void write_some(struct ll_client *c, struct ll_call *call)
{
    redisContext *conn = call->node->conn;
    const char *data = call->command + call->sent;
    size_t left = call->size - call->sent;
    ssize_t n;

    if (call->node->address.is_tls) {
        call->sent = call->size; /* some of it may have left whatever comes */
        if (ll_tls_write(conn, data, left, &call->is_flushing) != REDIS_OK)
            drop(c, call, conn->errstr);
        return;
    }
    n = send(conn->fd, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        call->sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        drop(c, call, strerror(errno));
}

static void take_reply(struct ll_client *c, struct ll_call *call)
{
    void *got = NULL;

    do {
        if (redisReaderGetReply(call->node->conn->reader, &got) != REDIS_OK) {
            drop(c, call, call->node->conn->reader->errstr);
        } else if (got != NULL && call->replies == NULL) {
            call->reply = got;
            finish(call, LL_OK);
        } else if (got != NULL) {
            call->replies[call->reply_ct++] = got;
            if (call->reply_ct == call->wanted)
                finish(call, LL_OK);
        }
    } while (got != NULL && call->is_open);
}

static void read_some(struct ll_client *c, struct ll_call *call)
{
    redisContext *conn = call->node->conn;
    bool is_tls = call->node->address.is_tls;
    size_t before;

    do { /* poll does not see what waits inside the TLS layer: until nothing comes */
        before = conn->reader->len;
        if ((is_tls ? ll_tls_read(conn) : redisBufferRead(conn)) != REDIS_OK) {
            drop(c, call, conn->errstr);
            return;
        }
        is_tls = is_tls && conn->reader->len > before;
        take_reply(c, call);
    } while (is_tls && call->is_open);
}

/* ---- all calls ---- */

static bool is_writing(const struct ll_call *call)
{
    return call->sent < call->size || call->is_flushing;
}

static nfds_t collect(struct ll_call *calls, size_t n, struct pollfd *fds)
{
    nfds_t open = 0;

    for (size_t i = 0; i < n; i++) {
        fds[i].fd = calls[i].is_open ? calls[i].node->conn->fd : -1;
        fds[i].events = is_writing(&calls[i]) ? POLLOUT : POLLIN;
        fds[i].revents = 0;
        open += calls[i].is_open ? 1 : 0;
    }
    return open;
}

static void step(struct ll_client *c,
                 struct ll_call *calls,
                 size_t n,
                 struct pollfd *fds,
                 int64_t deadline_ms)
{
    int64_t left = deadline_ms - ll_now_ms();
    int ready = left <= 0 ? 0 : poll(fds, (nfds_t)n, left > 60000 ? 60000 : (int)left);

    for (size_t i = 0; i < n; i++) {
        if (!calls[i].is_open)
            continue;
        if (left <= 0)
            drop(c, &calls[i], "no answer in time");
        else if (ready > 0 && fds[i].revents != 0 && is_writing(&calls[i]))
            write_some(c, &calls[i]);
        else if (ready > 0 && fds[i].revents != 0)
            read_some(c, &calls[i]);
    }
}

/* One call alone waits in its read, which the socket itself ends after LL_TICK_MS:
 * asking poll first costs a fifth of a short round trip. */
static void read_at_once(struct ll_client *c, struct ll_call *call, int64_t deadline_ms)
{
    if (call->is_open && call->sent == call->size && !call->node->address.is_tls &&
        ll_now_ms() + LL_TICK_MS < deadline_ms)
        read_some(c, call);
}

void ll_exchange(struct ll_client *c,
                 struct ll_call *calls,
                 size_t n,
                 int64_t deadline_ms)
{
    struct pollfd fds[LL_NODES_MAX];

    c->exchanges++;
    for (size_t i = 0; i < n; i++) {
        start(c, &calls[i]);
        if (calls[i].is_open)
            write_some(c, &calls[i]); /* it nearly always fits: no need to ask first */
    }
    if (n == 1)
        read_at_once(c, &calls[0], deadline_ms);
    while (collect(calls, n, fds) > 0)
        step(c, calls, n, fds, deadline_ms);
}

int ll_command(struct ll_client *c,
               struct ll_node *node,
               int argc,
               const char **argv,
               const size_t *lens,
               int64_t deadline_ms,
               redisReply **reply)
{
    struct ll_call call = {.node = node, .argc = argc, .argv = argv, .lens = lens};

    ll_exchange(c, &call, 1, deadline_ms);
    *reply = call.reply;
    return call.code;
}

/* ---- answers ---- */

int ll_reply_code(struct ll_client *c, struct ll_node *node, const redisReply *reply)
{
    static const struct {
        const char *part;
        bool anywhere; /* errors out of a script carry the word further on */
        int code;
    } table[] = {
        {"READONLY", true, LL_E_READONLY},
        {"OOM command not allowed", true, LL_E_OOM},
        {"LOADING", false, LL_E_UNAVAILABLE},
        {"BUSY ", false, LL_E_UNAVAILABLE},
        {"MASTERDOWN", false, LL_E_UNAVAILABLE},
        {"MISCONF", true, LL_E_UNAVAILABLE},
        {"NOREPLICAS", true, LL_E_UNAVAILABLE},
        {"NOSCRIPT", false, LL_E_UNAVAILABLE},
        {"ERR SELECT is not allowed in cluster mode", false, LL_E_CLUSTER},
        {"NOAUTH", false, LL_E_AUTH},
        {"WRONGPASS", false, LL_E_AUTH},
        {"NOPERM", true, LL_E_AUTH},
        {"The user executing the script can't run", true, LL_E_AUTH}, /* Redis 7.0 */
        {"ERR invalid password", false, LL_E_AUTH},
        {"ERR AUTH", false, LL_E_AUTH},
        {"ERR Client sent AUTH", false, LL_E_AUTH},
    };

    int code = LL_E_PROTO;

    if (reply->type != REDIS_REPLY_ERROR)
        return ll_fail(c, code, "Redis at %s gave an answer of the wrong type (%d)",
                       node->address.host, reply->type);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *at = strstr(reply->str, table[i].part);

        if (at != NULL && (table[i].anywhere || at == reply->str)) {
            code = table[i].code;
            break;
        }
    }
    (void)ll_fail(c, code, "Redis at %s: %s", node->address.host, reply->str);
    if (code == LL_E_READONLY)
        ll_node_disconnect(node); /* it was a primary when we connected: look again */
    return code;
}

int ll_words(struct ll_client *c,
             struct ll_node *node,
             int64_t deadline_ms,
             redisReply **reply,
             int argc,
             const char **argv)
{
    size_t lens[8];
    int code;

    for (int i = 0; i < argc; i++)
        lens[i] = strlen(argv[i]);
    code = ll_command(c, node, argc, argv, lens, deadline_ms, reply);
    if (code == LL_OK && (*reply)->type == REDIS_REPLY_ERROR) {
        code = ll_reply_code(c, node, *reply);
        freeReplyObject(*reply);
        *reply = NULL;
    }
    return code;
}

/* ---- scripts ---- */

int ll_load_script(struct ll_client *c,
                   struct ll_node *node,
                   enum lua_id id,
                   int64_t deadline_ms)
{
    redisReply *reply;
    int code =
        ll_words(c, node, deadline_ms, &reply, 3,
                 (const char *[]){"SCRIPT", "LOAD", (const char *)lua_texts[id].text});

    if (code != LL_OK)
        return code;
    if (reply->str != NULL && reply->len == 40)
        (void)snprintf(node->sha[id], sizeof node->sha[id], "%s", reply->str);
    else
        code = ll_reply_code(c, node, reply);
    freeReplyObject(reply);
    return code;
}

/* A connection that the server closed while it was idle is noticed only now: nothing of
 * the command has left, so it may go over a new one. */
static int command_once_more(struct ll_client *c,
                             int argc,
                             const char **argv,
                             const size_t *lens,
                             int64_t deadline_ms,
                             redisReply **reply)
{
    int code = ll_command(c, &c->nodes[0], argc, argv, lens, deadline_ms, reply);

    if (code != LL_E_UNAVAILABLE)
        return code;
    code = ll_connect(c);
    if (code != LL_OK)
        return code;
    return ll_command(c, &c->nodes[0], argc, argv, lens, deadline_ms, reply);
}

int ll_script(struct ll_client *c,
              enum lua_id id,
              int keys,
              int argc,
              const char **argv,
              size_t *lens,
              redisReply **reply)
{
    struct ll_node *node = &c->nodes[0];
    int64_t deadline_ms = ll_now_ms() + c->reply_ms;
    char count[16];
    int code = LL_OK;

    lens[2] = (size_t)snprintf(count, sizeof count, "%d", keys);
    argv[2] = count;
    argv[0] = "EVALSHA";
    lens[0] = 7;
    argv[1] = node->sha[id];
    lens[1] = 40;
    for (;;) { /* somebody may flush the scripts between the loading and the call */
        code = command_once_more(c, argc, argv, lens, deadline_ms, reply);
        if (code != LL_OK || (*reply)->type != REDIS_REPLY_ERROR)
            return code;
        if (strncmp((*reply)->str, "NOSCRIPT", 8) != 0 || ll_now_ms() >= deadline_ms)
            break;
        freeReplyObject(*reply);
        *reply = NULL;
        code = ll_load_script(c, node, id, deadline_ms);
        if (code != LL_OK)
            return code;
    }
    code = ll_reply_code(c, node, *reply);
    freeReplyObject(*reply);
    *reply = NULL;
    return code;
}
