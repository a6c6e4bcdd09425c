/* A server that refuses a connection says why and hangs up, before it has read a byte:
 * the reason is the code and the text of the call, and not that the server is gone. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/lib/lock_world.h"

GROUP(.start = lock_start_server, .stop = lock_stop_server);

enum { TRIES = 50 };

/* ---- a server that refuses everybody ---- */

/* When the server hangs up. Bytes that are not read by then make the end a reset. */
enum moment { AT_ONCE, WHEN_ASKED, WHEN_SOME_IS_READ };

struct refuser {
    pid_t pid;
    char dir[KIT_DIR];
    char url[KIT_URL];
};

static void refuse(int fd, enum moment moment, const char *words)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    if (moment != AT_ONCE)
        (void)poll(&p, 1, LOCK_SOON_MS);
    if (moment == WHEN_SOME_IS_READ)
        (void)!read(fd, &byte, 1);
    (void)send(fd, words, strlen(words), MSG_NOSIGNAL);
    (void)close(fd);
}

static void refuse_all(int listener, enum moment moment, const char *words)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    for (;;) {
        int fd = poll(&p, 1, -1) > 0 ? accept(listener, NULL, NULL) : -1;

        if (fd >= 0)
            refuse(fd, moment, words);
    }
}

static struct refuser start_refuser(bool is_tcp, enum moment moment, const char *words)
{
    struct refuser r = {0};
    struct sockaddr_in at = {0};
    socklen_t size = sizeof at;
    int listener;

    if (is_tcp) {
        listener = kit_listen("127.0.0.1:0");
        assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
        (void)snprintf(r.url, sizeof r.url, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    } else {
        kit_make_folder(r.dir, "refuser");
        (void)snprintf(r.url, sizeof r.url, "unix://%s/redis.sock", r.dir);
        listener = kit_listen(r.url + strlen("unix://"));
    }
    r.pid = kit_fork("refuser");
    if (r.pid == 0)
        refuse_all(listener, moment, words);
    (void)close(listener);
    return r;
}

static void stop_refuser(struct refuser *r)
{
    kit_kill(&r->pid);
    if (r->dir[0] == '\0')
        return;
    (void)unlink(r->url + strlen("unix://"));
    (void)rmdir(r->dir);
}

#define REFUSER OWNED(stop_refuser) struct refuser

/* ---- its reason ---- */

#define DENIED                                                                         \
    "-DENIED Redis is running in protected mode because protected mode is enabled "    \
    "and no password is set for the default user.\r\n"
#define CLIENTS "-ERR max number of clients reached\r\n"

static const struct {
    const char *name, *words, *told;
    int code;
    enum moment moment;
} reasons[] = {
    /* clang-format off */
    {"protected_mode", DENIED, "protected mode", RLOCK_E_AUTH, AT_ONCE},
    {"protected_mode_once_asked", DENIED, "protected mode", RLOCK_E_AUTH, WHEN_ASKED},
    {"protected_mode_in_mid_question", DENIED, "protected mode", RLOCK_E_AUTH, WHEN_SOME_IS_READ},
    {"too_many_clients", CLIENTS, "max number of clients", RLOCK_E_UNAVAILABLE, AT_ONCE},
    {"too_many_clients_once_asked", CLIENTS, "max number of clients", RLOCK_E_UNAVAILABLE, WHEN_ASKED},
    {"too_many_clients_in_mid_question", CLIENTS, "max number of clients", RLOCK_E_UNAVAILABLE, WHEN_SOME_IS_READ},
    /* clang-format on */
};

static void assert_told(struct rlock_client *c, int code, int wanted, const char *words)
{
    if (code != wanted || strstr(rlock_error(c), words) == NULL)
        fail_msg("%d, \"%s\", without \"%s\"", code, rlock_error(c), words);
}

static void ask_often(const struct refuser *r, int code, const char *words)
{
    for (int i = 0; i < TRIES; i++) {
        LONE *l = rlock_new(lock_client(r->url, 2000));

        assert_told(l->client, rlock_connect(l->client), code, words);
        assert_told(l->client, rlock_try(l, "one", 60000), code, words);
        assert_false(rlock_valid(l, 0));
    }
}

/* Guarantee: A server that refuses a connection and hangs up is told with its reason,
 * also when it has read nothing. */
CASE_ROWS(reason_of_a_server_that_hangs_up_is_told_for, reasons)
{
    for (int is_tcp = 0; is_tcp <= 1; is_tcp++) {
        REFUSER r = start_refuser(is_tcp, row->moment, row->words);

        ask_often(&r, row->code, row->told);
    }
}

/* Guarantee: A Redis that has too many clients is told as such. */
CASE(redis_with_too_many_clients_is_told_as_such)
{
    enum { MOST = 8 };

    REDIS own = {0};
    redisContext *others[MOST];
    struct refuser r = {0};

    fixture_redis_start(&own, "--maxclients", "8", NULL);
    for (int i = 0; i < MOST; i++) {
        others[i] = lock_raw_connection(own.url);
        /* those who asked whether it has started have gone */
        LOCK_AWAIT(lock_info(others[i], "clients", "connected_clients:") == i + 1);
    }
    (void)snprintf(r.url, sizeof r.url, "%s", own.url);
    ask_often(&r, RLOCK_E_UNAVAILABLE, "max number of clients");
    for (int i = 0; i < MOST; i++)
        redisFree(others[i]);
}

/* Guarantee: A quorum whose servers all refuse for one reason tells it. */
CASE(reason_of_a_quorum_that_hangs_up_is_told)
{
    REFUSER a = start_refuser(true, AT_ONCE, DENIED);
    REFUSER b = start_refuser(true, WHEN_ASKED, DENIED);
    REFUSER c = start_refuser(true, WHEN_SOME_IS_READ, DENIED);
    CLIENT *client = NULL;
    char url[3 * KIT_URL];

    (void)snprintf(url, sizeof url, "%s,%s,%s", a.url, b.url, c.url);
    client = lock_client(url, 2000);
    assert_told(client, rlock_connect(client), RLOCK_E_AUTH, "protected mode");
}

/* ---- an end without a reason ---- */

/* Guarantee: A server that hangs up without a word is unavailable. */
CASE(server_that_hangs_up_without_a_word_is_unavailable)
{
    for (int moment = AT_ONCE; moment <= WHEN_SOME_IS_READ; moment++) {
        REFUSER r = start_refuser(true, (enum moment)moment, "");
        CLIENT *c = lock_client(r.url, 2000);

        assert_int_equal(rlock_connect(c), RLOCK_E_UNAVAILABLE);
        assert_true(rlock_error(c)[0] != '\0');
    }
}
