/* lab_liar: says yes or no to a lock by a seeded coin, whoever holds it, and hands out
 * random tokens, each of them twice: as two holders see them that both believe it. */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lua_gen.h"
#include "worker/lab_server.h"

enum { LINKS = 24, INPUT = 32768, WORDS = 1200, ANSWER = 2048 };

struct link {
    int fd; /* -1: not in use */
    size_t n;
    char in[INPUT];
};

struct liar {
    uint64_t state;
    long long token;
    unsigned tokens;
};

struct request {
    size_t n;
    char *word[WORDS];
    size_t len[WORDS];
};

static uint64_t next_random(struct liar *l)
{
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state;
}

static bool coin(struct liar *l)
{
    return (next_random(l) >> 32 & 1) != 0;
}

/* ---- answers ---- */

/* EVALSHA sha n record key...: always granted, a new random token every second time. */
static void grant(struct liar *l, char *answer)
{
    char token[24];

    if (l->tokens++ % 2 == 0)
        l->token = (1LL << 40) + (long long)(next_random(l) % 1000000 + 1);
    (void)snprintf(token, sizeof token, "%lld", l->token);
    (void)snprintf(answer, ANSWER, "*2\r\n$2\r\nok\r\n$%zu\r\n%s\r\n", strlen(token),
                   token);
}

/* One '1' for each key: it was yours all the time. */
static void give_back(size_t keys, char *answer)
{
    int head = snprintf(answer, ANSWER, "$%zu\r\n", keys);

    memset(answer + head, '1', keys);
    (void)strcpy(answer + (size_t)head + keys, "\r\n");
}

/* The hash that our scripts were given is their number. */
static void own_script(struct liar *l, const struct request *r, char *answer)
{
    long id = strtol(r->word[1], NULL, 10);
    size_t keys = r->n > 2 ? strtoul(r->word[2], NULL, 10) : 0;

    if (id == LUA_ACQUIRE)
        grant(l, answer);
    else if (id == LUA_RELEASE)
        give_back(keys < 1000 ? keys : 1000, answer);
    else if (id == LUA_EPOCH)
        (void)strcpy(answer, "*2\r\n:1\r\n:1\r\n");
    else
        (void)strcpy(answer, "-ERR no lie for this script\r\n");
}

static void load(const char *text, char *answer)
{
    int id = 0;

    while (id < LUA_COUNT && strcmp((const char *)lua_texts[id].text, text) != 0)
        id++;
    (void)snprintf(answer, ANSWER, "$40\r\n%040d\r\n", id);
}

static void tell_time(char *answer)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(answer, ANSWER, "*2\r\n$10\r\n%010lld\r\n$6\r\n%06ld\r\n",
                   (long long)now.tv_sec, now.tv_nsec / 1000);
}

static void reply_to(struct liar *l, const struct request *r, char *answer)
{
    static const char info[] = "run_id:liar\r\nmaster_replid:liar\r\nrole:master\r\n"
                               "maxmemory_policy:noeviction\r\n";
    const char *word = r->word[0];

    if (strcmp(word, "EVALSHA") == 0)
        own_script(l, r, answer);
    else if (strcmp(word, "SCRIPT") == 0 && r->n > 2)
        load(r->word[2], answer);
    else if (strcmp(word, "INFO") == 0)
        (void)snprintf(answer, ANSWER, "$%zu\r\n%s\r\n", strlen(info), info);
    else if (strcmp(word, "TIME") == 0)
        tell_time(answer);
    else if (strcmp(word, "SET") == 0 || strcmp(word, "EVAL") == 0)
        (void)strcpy(answer, coin(l) ? "+OK\r\n" : "$-1\r\n");
    else if (strcmp(word, "GET") == 0)
        (void)snprintf(answer, ANSWER, "$8\r\n%08x\r\n", (unsigned)next_random(l));
    else if (strcmp(word, "EXEC") == 0)
        (void)strcpy(answer, "*1\r\n:1\r\n");
    else /* SETNX, PEXPIRE, DEL, WATCH, MULTI */
        (void)strcpy(answer, coin(l) ? ":1\r\n" : ":0\r\n");
}

/* ---- requests ---- */

/* A number behind a sign, up to its line's end; NULL: not all there. */
static char *number(char *at, char *end, size_t *n)
{
    char *stop;

    if (memchr(at, '\n', (size_t)(end - at)) == NULL)
        return NULL;
    *n = strtoul(at + 1, &stop, 10);
    return stop + 2;
}

/* Cuts one whole request off the input into words; its end, or NULL: not all there. */
static char *parse(struct link *l, struct request *r)
{
    char *at = l->in, *end = l->in + l->n;

    if (l->n == 0 || (at = number(at, end, &r->n)) == NULL || r->n > WORDS)
        return NULL;
    for (size_t i = 0; i < r->n; i++) {
        if (at >= end || (at = number(at, end, &r->len[i])) == NULL || at > end ||
            (size_t)(end - at) < r->len[i] + 2)
            return NULL;
        r->word[i] = at;
        at += r->len[i] + 2;
    }
    for (size_t i = 0; i < r->n; i++)
        r->word[i][r->len[i]] = '\0'; /* where its line ended */
    return at;
}

static void hang_up(struct link *l)
{
    (void)close(l->fd);
    l->fd = -1;
}

static void serve(struct liar *liar, struct link *l)
{
    ssize_t n = recv(l->fd, l->in + l->n, sizeof l->in - l->n, MSG_DONTWAIT);
    static struct request r;
    char answer[ANSWER];
    char *end;

    if (n <= 0) {
        hang_up(l);
        return;
    }
    l->n += (size_t)n;
    while ((end = parse(l, &r)) != NULL) {
        reply_to(liar, &r, answer);
        (void)send(l->fd, answer, strlen(answer), MSG_NOSIGNAL);
        l->n -= (size_t)(end - l->in);
        memmove(l->in, end, l->n);
    }
}

static void run(struct liar *liar, int listener)
{
    static struct link links[LINKS];
    struct pollfd fds[1 + LINKS];

    for (size_t i = 0; i < LINKS; i++)
        links[i].fd = -1;
    for (;;) {
        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (size_t i = 0; i < LINKS; i++)
            fds[1 + i] = (struct pollfd){.fd = links[i].fd, .events = POLLIN};
        (void)poll(fds, 1 + LINKS, -1);
        for (size_t i = 0; i < LINKS; i++) {
            if (links[i].fd >= 0 && fds[1 + i].revents != 0)
                serve(liar, &links[i]);
        }
        for (size_t i = 0; fds[0].revents != 0 && i < LINKS; i++) {
            if (links[i].fd >= 0)
                continue;
            links[i].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            links[i].n = 0;
            break;
        }
    }
}

pid_t lab_liar_start(const char *sock, uint64_t seed)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t parent = getpid(), pid;

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", sock);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fd, LINKS) != 0)
        return -1;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct liar liar = {.state = seed * 2 + 1};

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            run(&liar, fd);
        _exit(0);
    }
    (void)close(fd);
    return pid;
}
