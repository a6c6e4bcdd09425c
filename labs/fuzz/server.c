/* server: lanes, and servers that are threads behind socket pairs. The functions of
 * hiredis that connect are wrapped by the linker. */
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "labs/fuzz/fuzz.h"

int __real_getaddrinfo(const char *host,
                       const char *port,
                       const struct addrinfo *hints,
                       struct addrinfo **all);
int __wrap_getaddrinfo(const char *host,
                       const char *port,
                       const struct addrinfo *hints,
                       struct addrinfo **all);

/* ---- lanes ---- */

static const uint8_t *input;
static size_t input_size;
static atomic_size_t lane_at[LANES];
static atomic_uint threads, scripts;

void lanes_open(const uint8_t *data, size_t size)
{
    input = data;
    input_size = size;
    scripts = 0;
    for (size_t i = 0; i < LANES; i++)
        lane_at[i] = 0;
}

unsigned lane_byte(unsigned lane)
{
    size_t at = LANES * atomic_fetch_add(&lane_at[lane], 1) + lane;

    return at < input_size ? input[at] : 0;
}

unsigned lane_pick(unsigned lane, unsigned n)
{
    return lane_byte(lane) % n;
}

/* ---- one conversation ---- */

struct peer {
    int fd;
    FILE *in;
    struct question question;
    struct answer answer;
};

static bool read_head(struct peer *p, long *n)
{
    char line[32];

    if (fgets(line, sizeof line, p->in) == NULL)
        return false;
    *n = atol(line + 1);
    return true;
}

/* The words read so far are in the question even where the rest does not come. */
static bool read_question(struct peer *p)
{
    struct question *q = &p->question;
    long n, len;

    q->words = 0;
    if (!read_head(p, &n))
        return false;
    if (n < 1 || n > WORDS_MAX)
        fuzz_found("a command of %ld words", n);
    while (q->words < (size_t)n) {
        char *word;

        if (!read_head(p, &len))
            return false;
        word = calloc(1, (size_t)len + 3);
        if (word == NULL)
            abort();
        q->word[q->words++] = word;
        if (fread(word, 1, (size_t)len + 2, p->in) != (size_t)len + 2)
            return false;
        word[len] = '\0';
    }
    scripts += strncmp(q->word[0], "EVAL", 4) == 0 ? 1U : 0U;
    return true;
}

static void free_question(struct question *q)
{
    for (size_t i = 0; i < q->words; i++)
        free(q->word[i]);
    q->words = 0;
}

static void rest(unsigned ms)
{
    struct timespec ts = {0, (long)ms * 1000000};

    (void)nanosleep(&ts, NULL);
}

static bool say(const struct peer *p, const char *at, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(p->fd, at, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Sense, or something else; false: hangs up. */
static bool reply(struct peer *p)
{
    struct answer *a = &p->answer;
    unsigned lane = p->question.lane, how = lane_byte(lane);
    size_t cut;

    a->n = 0;
    if (how < 200 || how >= 220)
        answer_well(a, &p->question);
    else if (how < 210)
        answer_badly(a, lane);
    else
        answer_wildly(a, lane);
    if (how >= 220 && how < 235)
        answer_spoil(a, lane);
    if (how < 240)
        return say(p, a->text, a->n);
    cut = a->n == 0 ? 0 : lane_byte(lane) % a->n;
    if (how < 244) { /* in two pieces */
        (void)say(p, a->text, cut);
        rest(1);
        return say(p, a->text + cut, a->n - cut);
    }
    if (how < 247) { /* too late, perhaps */
        rest(1 + lane_pick(lane, 40));
        return say(p, a->text, a->n);
    }
    if (how >= 250 && how < 253) /* a piece */
        (void)say(p, a->text, cut);
    return how < 250; /* silence */
}

static void *serve(void *arg)
{
    struct peer *p = arg;

    while (read_question(p) && reply(p))
        free_question(&p->question);
    free_question(&p->question);
    (void)fclose(p->in);
    free(p);
    threads--;
    return NULL;
}

/* ---- connecting ---- */

static void start(int fd, unsigned lane)
{
    struct peer *p = calloc(1, sizeof *p);
    pthread_t thread;

    if (p == NULL || (p->in = fdopen(fd, "r")) == NULL)
        abort();
    p->fd = fd;
    p->question.lane = lane;
    threads++;
    if (pthread_create(&thread, NULL, serve, p) != 0 || pthread_detach(thread) != 0)
        abort();
}

struct redisContext *server_connect(unsigned lane)
{
    redisContext *conn;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    conn = redisConnectFd(ends[0]); /* as blocking; nothing is asked yet */
    if (conn == NULL)
        abort();
    conn->flags &= ~REDIS_BLOCK;
    if (lane_pick(lane, 64) == 63) {
        conn->err = REDIS_ERR_IO;
        (void)snprintf(conn->errstr, sizeof conn->errstr, "refused");
    }
    start(ends[1], lane);
    return conn;
}

void server_wait_for_ends(void)
{
    while (threads > 0)
        rest(0);
}

unsigned server_scripts(void)
{
    return scripts;
}

redisContext *__wrap_redisConnectNonBlock(const char *host, int port);

redisContext *__wrap_redisConnectNonBlock(const char *host, int port)
{
    bool is_ours = port > FIRST_PORT && port <= FIRST_PORT + SERVER_LANES;

    (void)host;
    return server_connect(is_ours ? (unsigned)(port - FIRST_PORT) : 1);
}

/* A redirect may name any host: no name server is asked for it. */
int __wrap_getaddrinfo(const char *host,
                       const char *port,
                       const struct addrinfo *hints,
                       struct addrinfo **all)
{
    struct addrinfo numeric = *hints;

    numeric.ai_flags |= AI_NUMERICHOST;
    return __real_getaddrinfo(host, port, &numeric, all);
}
