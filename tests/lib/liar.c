/* liar: one process, one poll loop; requests are read by hiredis's own reader, which
 * takes them for replies. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, mkdtemp */
#include "tests/lib/liar.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua_gen.h"

enum { LINKS = 32, HELD = 4096, NAME = 96, EPOCHS = 50, ANSWER = 4096 };

struct liar_shared {
    atomic_uint grants, shared_grants;
};

struct link {
    int fd; /* -1: not in use */
    redisReader *reader;
};

/* Keys granted and not given back, in no order. */
struct held {
    struct link *by; /* NULL: not in use */
    char name[NAME];
};

/* All of the process; the test's side only makes it. */
struct server {
    struct liar_shared *shared;
    struct link links[LINKS];
    struct held held[HELD];
    const char *version; /* that it says it is */
    uint64_t state;      /* of the random numbers */
    long long token;
};

/* ---- lies ---- */

static uint64_t next_random(struct server *s)
{
    s->state ^= s->state << 13;
    s->state ^= s->state >> 7;
    s->state ^= s->state << 17;
    return s->state;
}

/* Any epoch, any number; every fourth time what somebody else got just before. */
static long long make_token(struct server *s)
{
    uint64_t n = next_random(s);

    if (n >> 62 != 0)
        s->token =
            (long long)((1 + next_random(s) % EPOCHS) << 40 | (n & 0xffffffffffU));
    return s->token;
}

static void forget(struct server *s, const struct link *by)
{
    for (struct held *h = s->held; h < s->held + HELD; h++)
        h->by = h->by == by ? NULL : h->by;
}

/* Notes a key; whether somebody else holds it. */
static bool note(struct server *s, struct link *by, const char *name)
{
    struct held *empty = NULL;
    bool is_shared = false;

    for (struct held *h = s->held; h < s->held + HELD; h++) {
        if (h->by == NULL)
            empty = h;
        else if (h->by != by && strcmp(h->name, name) == 0)
            is_shared = true;
    }
    if (empty != NULL) {
        empty->by = by;
        (void)snprintf(empty->name, sizeof empty->name, "%s", name);
    }
    return is_shared;
}

/* EVALSHA sha n record key... */
static void
grant(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    size_t keys = strtoul(words->element[2]->str, NULL, 10);
    bool is_shared = false;
    char token[24];

    forget(s, by);
    for (size_t i = 4; i < 3 + keys; i++)
        is_shared = note(s, by, words->element[i]->str) || is_shared;
    atomic_fetch_add(&s->shared->grants, 1);
    atomic_fetch_add(&s->shared->shared_grants, is_shared ? 1 : 0);
    (void)snprintf(token, sizeof token, "%lld", make_token(s));
    (void)snprintf(answer, ANSWER, "*2\r\n$2\r\nok\r\n$%zu\r\n%s\r\n", strlen(token),
                   token);
}

/* One '1' for each key: it was yours all the time. */
static void give_back(struct server *s, struct link *by, size_t keys, char *answer)
{
    int head = snprintf(answer, ANSWER, "$%zu\r\n", keys);

    forget(s, by);
    memset(answer + head, '1', keys);
    (void)strcpy(answer + (size_t)head + keys, "\r\n");
}

static void
script(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    long id = strtol(words->element[1]->str, NULL, 10);
    size_t keys = strtoul(words->element[2]->str, NULL, 10);

    if (id == LUA_ACQUIRE)
        grant(s, by, words, answer);
    else if (id == LUA_RELEASE)
        give_back(s, by, keys, answer);
    else if (id ==
             LUA_EPOCH) /* the record is there, of any epoch that it can have given */
        (void)snprintf(answer, ANSWER, "*2\r\n:1\r\n:%d\r\n", EPOCHS + 1);
    else
        (void)snprintf(answer, ANSWER, "-ERR no lie for script %ld\r\n", id);
}

/* The hash of a script is its number. */
static void load(const char *text, char *answer)
{
    int id = 0;

    while (id < LUA_COUNT && strcmp((const char *)lua_texts[id].text, text) != 0)
        id++;
    (void)snprintf(answer, ANSWER, "$40\r\n%040d\r\n", id);
}

static void
reply_to(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    char info[160];
    const char *word = words->element[0]->str;
    struct timeval now;

    if (strcmp(word, "EVALSHA") == 0) {
        script(s, by, words, answer);
    } else if (strcmp(word, "SCRIPT") == 0) {
        load(words->element[2]->str, answer);
    } else if (strcmp(word, "INFO") == 0) {
        int n = snprintf(info, sizeof info,
                         "redis_version:%s\r\nrun_id:liar\r\nmaster_replid:liar\r\n"
                         "role:master\r\nmaxmemory_policy:noeviction\r\n",
                         s->version);

        (void)snprintf(answer, ANSWER, "$%d\r\n%s\r\n", n, info);
    } else if (strcmp(word, "TIME") == 0) {
        (void)gettimeofday(&now, NULL);
        (void)snprintf(answer, ANSWER, "*2\r\n$10\r\n%010ld\r\n$6\r\n%06ld\r\n",
                       (long)now.tv_sec, (long)now.tv_usec);
    } else {
        (void)snprintf(answer, ANSWER, "-ERR no lie for %s\r\n", word);
    }
}

/* ---- links ---- */

static void hang_up(struct server *s, struct link *l)
{
    forget(s, l);
    redisReaderFree(l->reader);
    (void)close(l->fd);
    l->fd = -1;
}

static void welcome(struct server *s, int listener)
{
    int fd = accept(listener, NULL, NULL);
    struct link *l = s->links;

    while (l < s->links + LINKS && l->fd >= 0)
        l++;
    if (fd < 0 || l == s->links + LINKS) {
        (void)close(fd);
        return;
    }
    *l = (struct link){.fd = fd, .reader = redisReaderCreate()};
}

static void serve(struct server *s, struct link *l)
{
    char buf[16384], answer[ANSWER];
    ssize_t n = read(l->fd, buf, sizeof buf);
    void *words = NULL;

    if (n <= 0 || redisReaderFeed(l->reader, buf, (size_t)n) != REDIS_OK) {
        hang_up(s, l);
        return;
    }
    while (redisReaderGetReply(l->reader, &words) == REDIS_OK && words != NULL) {
        reply_to(s, l, words, answer);
        freeReplyObject(words);
        (void)send(l->fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
}

static void run(struct server *s, int listener)
{
    struct pollfd fds[1 + LINKS];

    for (size_t i = 0; i < LINKS; i++)
        s->links[i].fd = -1;
    for (;;) {
        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (size_t i = 0; i < LINKS; i++)
            fds[1 + i] = (struct pollfd){.fd = s->links[i].fd, .events = POLLIN};
        (void)poll(fds, 1 + LINKS, -1);
        for (size_t i = 0; i < LINKS; i++) {
            if (fds[1 + i].revents != 0)
                serve(s, &s->links[i]);
        }
        if (fds[0].revents != 0)
            welcome(s, listener);
    }
}

/* ---- the test's side ---- */

static int listen_in(struct liar *l)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fixture_temporary(l->dir, sizeof l->dir, "liar");
    assert_non_null(mkdtemp(l->dir));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/redis.sock", l->dir);
    (void)snprintf(l->url, sizeof l->url, "unix://%s", at.sun_path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, LINKS), 0);
    return fd;
}

void liar_open(struct liar *l, const char *version)
{
    static struct server server;
    int listener = listen_in(l);

    l->shared = mmap(NULL, sizeof *l->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(l->shared != MAP_FAILED);
    server = (struct server){
        .shared = l->shared, .version = version, .state = 20261121, .token = 1};
    (void)fflush(NULL);
    l->pid = fork();
    assert_true(l->pid >= 0);
    if (l->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(&server, listener);
    }
    (void)close(listener);
}

void liar_close(struct liar *l)
{
    if (l->pid > 0) {
        (void)kill(l->pid, SIGKILL);
        (void)waitpid(l->pid, NULL, 0);
        (void)munmap(l->shared, sizeof *l->shared);
        (void)unlink(l->url + strlen("unix://"));
        (void)rmdir(l->dir);
    }
    memset(l, 0, sizeof *l);
}

unsigned liar_grants(const struct liar *l)
{
    return atomic_load(&l->shared->grants);
}

unsigned liar_shared_grants(const struct liar *l)
{
    return atomic_load(&l->shared->shared_grants);
}
