/* lab_relay: one poll loop over pairs of sockets. Bytes are read from one side only
 * when the earlier ones have gone out on the other. */
#define _GNU_SOURCE /* memmem, accept4, MAP_ANONYMOUS */
#include "worker/lab_relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS = 24, CHUNK = 16384, PATTERN = 64, ADDRESS = 112, TICK_MS = 2 };

enum rule { PASS, HOLD, LOSE };

struct lab_relay_shared {
    atomic_flag lock; /* around what is not atomic */
    enum rule rule;
    unsigned times;
    size_t size;
    char bytes[PATTERN];
    char behind[ADDRESS];
    atomic_uint hits;
    atomic_uint let_go; /* raised for each lab_relay_let_go */
    atomic_bool is_frozen, drops_held;
};

/* One direction. */
struct hose {
    char buf[CHUNK];
    size_t at, n;
};

struct link {
    int client, server; /* -1: not in use */
    struct hose up, down;
    unsigned held_since; /* let_go at that time, plus 1; 0: not held */
    bool loses_answer;
};

static void lock(struct lab_relay_shared *s)
{
    while (atomic_flag_test_and_set(&s->lock))
        continue;
}

static void unlock(struct lab_relay_shared *s)
{
    atomic_flag_clear(&s->lock);
}

/* ---- addresses ---- */

static socklen_t make_address(const char *text, struct sockaddr_storage *to)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in inet = {.sin_family = AF_INET};

    memset(to, 0, sizeof *to);
    if (text[0] == '/') {
        (void)snprintf(path.sun_path, sizeof path.sun_path, "%s", text);
        memcpy(to, &path, sizeof path);
        return sizeof path;
    }
    inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    inet.sin_port = htons((uint16_t)strtoul(text + 1, NULL, 10));
    memcpy(to, &inet, sizeof inet);
    return sizeof inet;
}

static int listen_at(const char *text)
{
    struct sockaddr_storage address;
    socklen_t size = make_address(text, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, LINKS) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(const char *text)
{
    struct sockaddr_storage address;
    socklen_t size = make_address(text, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* ---- its process ---- */

static void hang_up(struct link *l)
{
    (void)close(l->client);
    (void)close(l->server);
    l->client = l->server = -1;
}

static void welcome(struct lab_relay_shared *s, struct link *links, int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct link *l = links;
    char behind[ADDRESS];
    int server;

    if (client < 0)
        return;
    while (l < links + LINKS && l->client >= 0)
        l++;
    lock(s);
    memcpy(behind, s->behind, sizeof behind);
    unlock(s);
    server = l < links + LINKS ? connect_to(behind) : -1;
    if (server < 0) {
        (void)close(client);
        return;
    }
    memset(l, 0, sizeof *l);
    l->client = client;
    l->server = server;
}

static enum rule match(struct lab_relay_shared *s, const struct hose *h)
{
    enum rule rule = PASS;

    lock(s);
    if (s->times > 0 && memmem(h->buf, h->n, s->bytes, s->size) != NULL) {
        s->times--;
        rule = s->rule;
    }
    unlock(s);
    return rule;
}

static bool fill(int fd, struct hose *h)
{
    ssize_t n = recv(fd, h->buf, sizeof h->buf, MSG_DONTWAIT);

    h->at = 0;
    h->n = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool pour(int fd, struct hose *h)
{
    ssize_t n;

    if (h->n == 0)
        return true;
    n = send(fd, h->buf + h->at, h->n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    h->at += (size_t)n;
    h->n -= (size_t)n;
    return true;
}

static bool from_client(struct lab_relay_shared *s, struct link *l)
{
    enum rule rule;

    if (!fill(l->client, &l->up))
        return false;
    rule = match(s, &l->up);
    if (rule == HOLD) {
        l->held_since = atomic_load(&s->let_go) + 1;
        atomic_fetch_add(&s->hits, 1);
    }
    l->loses_answer = l->loses_answer || rule == LOSE;
    return true;
}

static bool from_server(struct lab_relay_shared *s, struct link *l)
{
    if (!fill(l->server, &l->down))
        return false;
    if (!l->loses_answer)
        return true;
    atomic_fetch_add(&s->hits, 1);
    return false;
}

static bool is_held(const struct lab_relay_shared *s, const struct link *l)
{
    return l->client >= 0 && l->held_since == atomic_load(&s->let_go) + 1;
}

static void serve(struct lab_relay_shared *s, struct link *l)
{
    struct pollfd fds[] = {{.fd = l->client, .events = POLLIN},
                           {.fd = l->server, .events = POLLIN}};
    bool ok = true;

    if (is_held(s, l)) {
        if (atomic_load(&s->drops_held))
            hang_up(l);
        return;
    }
    l->held_since = 0;
    (void)poll(fds, 2, 0);
    if (fds[0].revents != 0 && l->up.n == 0)
        ok = from_client(s, l);
    if (ok && l->held_since == 0)
        ok = pour(l->server, &l->up);
    if (ok && fds[1].revents != 0 && l->down.n == 0)
        ok = from_server(s, l);
    if (ok)
        ok = pour(l->client, &l->down);
    if (!ok)
        hang_up(l);
}

/* While everything that was to be held is held, no new connection is let in: otherwise
 * a holder whose patience ends would be back at its work before the schedule lets it
 * go. */
static bool is_shut(struct lab_relay_shared *s, const struct link *links)
{
    bool is_complete, holds = false;

    lock(s);
    is_complete = s->rule == HOLD && s->times == 0;
    unlock(s);
    for (size_t i = 0; i < LINKS; i++)
        holds = holds || is_held(s, &links[i]);
    return is_complete && holds;
}

static void run(struct lab_relay_shared *s, int listener)
{
    static struct link links[LINKS];
    struct pollfd fds[1 + 2 * LINKS];

    for (size_t i = 0; i < LINKS; i++)
        links[i].client = links[i].server = -1;
    for (;;) {
        fds[0] =
            (struct pollfd){.fd = is_shut(s, links) ? -1 : listener, .events = POLLIN};
        for (size_t i = 0; i < LINKS; i++) {
            bool off = is_held(s, &links[i]);

            fds[1 + 2 * i] =
                (struct pollfd){.fd = off ? -1 : links[i].client, .events = POLLIN};
            fds[2 + 2 * i] =
                (struct pollfd){.fd = off ? -1 : links[i].server, .events = POLLIN};
        }
        (void)poll(fds, 1 + 2 * LINKS, TICK_MS);
        if (atomic_load(&s->is_frozen)) {
            (void)poll(NULL, 0, TICK_MS);
            continue;
        }
        for (size_t i = 0; i < LINKS; i++) {
            if (links[i].client >= 0)
                serve(s, &links[i]);
        }
        if (fds[0].revents != 0 && !is_shut(s, links))
            welcome(s, links, listener);
    }
}

/* ---- the director's side ---- */

static void set_rule(
    struct lab_relay *r, enum rule rule, const char *bytes, size_t size, unsigned times)
{
    struct lab_relay_shared *s = r->shared;

    lock(s);
    s->rule = rule;
    s->size = size < PATTERN ? size : PATTERN;
    memcpy(s->bytes, bytes, s->size);
    s->times = times;
    atomic_store(&s->drops_held, false);
    unlock(s);
}

void lab_relay_hold(struct lab_relay *r, const char *bytes, size_t size, unsigned times)
{
    set_rule(r, HOLD, bytes, size, times);
}

void lab_relay_lose(struct lab_relay *r, const char *bytes, size_t size, unsigned times)
{
    set_rule(r, LOSE, bytes, size, times);
}

void lab_relay_let_go(struct lab_relay *r)
{
    atomic_fetch_add(&r->shared->let_go, 1);
}

void lab_relay_drop(struct lab_relay *r)
{
    atomic_store(&r->shared->drops_held, true);
}

void lab_relay_freeze(struct lab_relay *r)
{
    atomic_store(&r->shared->is_frozen, true);
}

unsigned lab_relay_hits(const struct lab_relay *r)
{
    return atomic_load(&r->shared->hits);
}

void lab_relay_turn(struct lab_relay *r, const char *behind)
{
    lock(r->shared);
    (void)snprintf(r->shared->behind, sizeof r->shared->behind, "%s", behind);
    unlock(r->shared);
}

static int port_of(int fd)
{
    struct sockaddr_in inet;
    socklen_t size = sizeof inet;

    return getsockname(fd, (struct sockaddr *)&inet, &size) == 0 ? ntohs(inet.sin_port)
                                                                 : 0;
}

int lab_relay_open(struct lab_relay *r,
                   const char *front,
                   const char *behind,
                   struct err *e)
{
    pid_t parent = getpid();
    int listener;

    if (front != NULL)
        (void)unlink(front);
    listener = listen_at(front != NULL ? front : ":0");
    r->shared = mmap(NULL, sizeof *r->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || r->shared == MAP_FAILED)
        return err_set(e, ERR_BUG, "a relay cannot listen at %s: %s",
                       front != NULL ? front : "127.0.0.1", strerror(errno));
    r->port = front != NULL ? 0 : port_of(listener);
    lab_relay_turn(r, behind);
    (void)fflush(NULL);
    r->pid = fork();
    if (r->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            run(r->shared, listener);
        _exit(0);
    }
    (void)close(listener);
    return r->pid > 0 ? 0 : err_set(e, ERR_BUG, "cannot fork: %s", strerror(errno));
}

void lab_relay_close(struct lab_relay *r)
{
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
        (void)munmap(r->shared, sizeof *r->shared);
    }
    memset(r, 0, sizeof *r);
}
