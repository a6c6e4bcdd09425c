/* fake_redis: one process, one poll loop; requests are read by hiredis's own reader,
 * which takes them for replies. */
#include "tests/testkit/fake_redis.h"
#include "tests/testkit/fake_inside.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define USUAL_VERSION "7.0.15"

/* ---- answers ---- */

static void put_bulk(char *answer, const char *text)
{
    (void)snprintf(answer, ANSWER, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void put_info(const struct server *s, char *answer)
{
    char info[256];

    (void)snprintf(info, sizeof info,
                   "redis_version:%s\r\nredis_mode:standalone\r\nrun_id:fake\r\n"
                   "role:master\r\nmaxmemory_policy:noeviction\r\n"
                   "uptime_in_seconds:100000\r\n",
                   s->o->version != NULL ? s->o->version : USUAL_VERSION);
    put_bulk(answer, info);
}

static void put_time(char *answer)
{
    struct timeval now;

    (void)gettimeofday(&now, NULL);
    (void)snprintf(answer, ANSWER, "*2\r\n$10\r\n%010ld\r\n$6\r\n%06ld\r\n",
                   (long)now.tv_sec, (long)now.tv_usec);
}

static bool asks_max_lease(const struct server *s, const redisReply *words)
{
    return s->o->max_lease_ms != NULL && words->elements > 1 &&
           strcmp(words->element[0]->str, "GET") == 0 &&
           strstr(words->element[1]->str, "!max_lease") != NULL;
}

static void
make_answer(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    const char *word = words->element[0]->str;

    (void)strcpy(answer, "$-1\r\n");
    if (strcmp(word, "INFO") == 0)
        put_info(s, answer);
    else if (strcmp(word, "TIME") == 0)
        put_time(answer);
    else if (asks_max_lease(s, words))
        put_bulk(answer, s->o->max_lease_ms);
    else if (s->o->grants)
        fake_grant(s, by, words, answer);
}

static void say(const struct link *l, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(l->fd, bytes, size, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the client has gone */
        bytes += n;
        size -= (size_t)n;
    }
}

/* The last word of the command, the id of a call, stands where FAKE_ID stands. */
static void say_text(const struct link *l, const redisReply *words, const char *text)
{
    const redisReply *id = words->element[words->elements - 1];
    const char *at = strstr(text, FAKE_ID);
    char head[24];

    if (at != NULL) {
        (void)snprintf(head, sizeof head, "$%zu\r\n", (size_t)id->len);
        say(l, text, (size_t)(at - text));
        say(l, head, strlen(head));
        say(l, id->str, (size_t)id->len);
        text = at + strlen("(id)");
    }
    say(l, text, strlen(text));
}

static void reply_to(struct server *s, struct link *l, const redisReply *words)
{
    const char *word = words->element[0]->str;
    char answer[ANSWER];

    for (size_t i = 0; i < s->o->answer_ct; i++) {
        const struct fake_answer *a = &s->o->answers[i];

        if (strcmp(word, a->word) != 0)
            continue;
        if (a->size > 0)
            say(l, a->bytes, a->size);
        else if (a->bytes != NULL)
            say_text(l, words, a->bytes);
        return;
    }
    make_answer(s, l, words, answer);
    say_text(l, words, answer);
}

/* ---- links ---- */

static void hang_up(struct server *s, struct link *l)
{
    fake_forget(s, l);
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
    char buf[16384];
    ssize_t n = read(l->fd, buf, sizeof buf);
    void *words = NULL;

    if (n <= 0 || redisReaderFeed(l->reader, buf, (size_t)n) != REDIS_OK) {
        hang_up(s, l);
        return;
    }
    while (redisReaderGetReply(l->reader, &words) == REDIS_OK && words != NULL) {
        reply_to(s, l, words);
        freeReplyObject(words);
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
            if (s->links[i].fd >= 0 && fds[1 + i].revents != 0)
                serve(s, &s->links[i]);
        }
        if (fds[0].revents != 0)
            welcome(s, listener);
    }
}

/* ---- the caller's side ---- */

void fake_redis_start(struct fake_redis *f, const struct fake_options *o)
{
    static struct server server;
    int listener;

    if (o->path == NULL) {
        kit_make_folder(f->dir, "fake");
        (void)snprintf(f->url, sizeof f->url, "unix://%s/redis.sock", f->dir);
    } else {
        (void)snprintf(f->url, sizeof f->url, "unix://%s", o->path);
    }
    listener = kit_listen(f->url + strlen("unix://"));
    f->shared = kit_share(sizeof *f->shared);
    server = (struct server){.shared = f->shared, .o = o, .state = 20261121};
    f->pid = kit_fork("fake-redis");
    if (f->pid == 0)
        run(&server, listener);
    (void)close(listener);
}

void fake_redis_open(struct fake_redis *f, const struct fake_answer *answers, size_t n)
{
    fake_redis_start(f, &(struct fake_options){.answers = answers, .answer_ct = n});
}

void fake_redis_say(struct fake_redis *f, const char *word, const char *text)
{
    fake_redis_open(f, &(struct fake_answer){.word = word, .bytes = text}, 1);
}

void fake_redis_close(struct fake_redis *f)
{
    if (f->pid > 0) {
        kit_kill(&f->pid);
        (void)munmap(f->shared, sizeof *f->shared);
        (void)unlink(f->url + strlen("unix://"));
    }
    if (f->dir[0] != '\0')
        (void)rmdir(f->dir);
    memset(f, 0, sizeof *f);
}

unsigned fake_grants(const struct fake_redis *f)
{
    return atomic_load(&f->shared->grants);
}

unsigned fake_shared_grants(const struct fake_redis *f)
{
    return atomic_load(&f->shared->shared_grants);
}
