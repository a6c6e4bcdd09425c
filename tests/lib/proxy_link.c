/* proxy: its process: one poll loop, links of two sockets. Bytes are read from one side
 * only when all earlier ones went out on the other, so what was read is all there is.
 */
#define _GNU_SOURCE /* memmem, accept4 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/proxy_shared.h"

enum { CHUNK = 16384, TICK_US = 5000 };

/* One direction of a link. */
struct hose {
    char buf[CHUNK];
    size_t at, n;
    int64_t due_us;
};

struct link {
    int client, server; /* -1: not in use */
    struct hose up, down;
    char tail[PROXY_PATTERN]; /* last bytes from the client, for a match across two
                                 reads */
    size_t tail_n;
    bool is_asking; /* the client spoke last */
    bool cut_at_answer;
    bool swallow_at_answer;
    bool was_swallowed;
    bool is_late; /* what is in `up` waits for its time */
};

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t proxy_now_ms(void)
{
    return now_us() / 1000;
}

void proxy_lock_cut(struct proxy_shared *s)
{
    while (atomic_flag_test_and_set(&s->cut_lock))
        ;
}

void proxy_unlock_cut(struct proxy_shared *s)
{
    atomic_flag_clear(&s->cut_lock);
}

/* ---- links ---- */

static void unlink_pair(struct link *l)
{
    (void)close(l->client);
    (void)close(l->server);
    l->client = l->server = -1;
}

static int connect_behind(const struct sockaddr_storage *behind, socklen_t size)
{
    int fd = socket(behind->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)behind, size) != 0) {
        (void)close(fd);
        return -1;
    }
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void welcome(struct proxy_shared *s,
                    struct link *links,
                    int listener,
                    const struct sockaddr_storage *behind,
                    socklen_t size)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct link *l = links;
    int server;

    if (client < 0)
        return;
    while (l < links + PROXY_LINKS && l->client >= 0)
        l++;
    server = l < links + PROXY_LINKS ? connect_behind(behind, size) : -1;
    if (server < 0) {
        (void)close(client);
        return;
    }
    memset(l, 0, sizeof *l);
    l->client = client;
    l->server = server;
    atomic_fetch_add(&s->count[PROXY_CONNECTIONS], 1);
}

static void turn_away(struct proxy_shared *s, int listener)
{
    int client;

    while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        (void)close(client);
        atomic_fetch_add(&s->count[PROXY_REFUSED], 1);
    }
}

static void cut_links(struct proxy_shared *s, struct link *links)
{
    const struct linger at_once = {.l_onoff = 1};

    for (size_t i = 0; i < PROXY_LINKS; i++) {
        if (links[i].client < 0)
            continue;
        if (atomic_load(&s->reset)) /* what a close says to TCP then is a reset */
            (void)setsockopt(links[i].client, SOL_SOCKET, SO_LINGER, &at_once,
                             sizeof at_once);
        unlink_pair(&links[i]);
        atomic_fetch_add(&s->count[PROXY_REFUSED], 1);
    }
}

/* Whether what just came from the client completes the pattern; takes one off. */
static enum cut match(struct proxy_shared *s, struct link *l)
{
    char window[PROXY_PATTERN + CHUNK];
    size_t n = l->tail_n + l->up.n, keep;
    enum cut cut = CUT_NONE;

    memcpy(window, l->tail, l->tail_n);
    memcpy(window + l->tail_n, l->up.buf, l->up.n);
    proxy_lock_cut(s);
    if (s->cut_times > 0 && memmem(window, n, s->cut_bytes, s->cut_size) != NULL) {
        s->cut_times--;
        cut = s->cut;
    }
    keep = s->cut_size > 0 ? s->cut_size - 1 : 0;
    proxy_unlock_cut(s);
    keep = n < keep ? n : keep;
    if (cut != CUT_NONE)
        keep = 0; /* the same bytes do not match again */
    memcpy(l->tail, window + n - keep, keep);
    l->tail_n = keep;
    return cut;
}

/* false: the link is over. */
static bool fill(int fd, struct hose *h)
{
    ssize_t n = read(fd, h->buf, sizeof h->buf);

    h->at = 0;
    h->due_us = 0;
    h->n = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool pour(struct proxy_shared *s, int fd, struct hose *h)
{
    size_t slice = atomic_load(&s->slice_bytes);
    ssize_t n;

    if (h->n == 0 || h->due_us > now_us())
        return true;
    n = send(fd, h->buf + h->at, slice > 0 && slice < h->n ? slice : h->n,
             MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    h->at += (size_t)n;
    h->n -= (size_t)n;
    if (slice > 0) {
        h->due_us = now_us() + atomic_load(&s->slice_us);
        atomic_fetch_add(&s->count[PROXY_SLICES], 1);
    }
    return true;
}

/* Passes on what the client said, unless its time has not come. */
static bool pour_up(struct proxy_shared *s, struct link *l)
{
    bool had = l->up.n > 0;
    bool ok = pour(s, l->server, &l->up);

    if (ok && l->is_late && had && l->up.n == 0) {
        l->is_late = false;
        atomic_fetch_add(&s->count[PROXY_LATE], 1);
    }
    return ok;
}

static bool answer(struct proxy_shared *s, struct link *l)
{
    size_t before = l->down.n;
    bool ok = pour(s, l->client, &l->down);

    l->is_asking = l->is_asking && l->down.n == before;
    return ok;
}

static void begin_swallow(struct proxy_shared *s, struct link *l)
{
    l->was_swallowed = true;
    atomic_store(&s->swallow, true);
    atomic_fetch_add(&s->count[PROXY_SWALLOWED], 1);
}

static bool from_client(struct proxy_shared *s, struct link *l)
{
    enum cut cut;

    if (!fill(l->client, &l->up))
        return false;
    if (!l->is_asking && l->up.n > 0)
        atomic_fetch_add(&s->count[PROXY_TURNS], 1);
    l->is_asking = l->is_asking || l->up.n > 0;
    cut = match(s, l);
    if (cut == CUT_BEFORE) {
        atomic_fetch_add(&s->count[PROXY_CUTS_BEFORE], 1);
        return false;
    }
    if (cut == CUT_SWALLOW) { /* stays in l->up until the black hole ends */
        begin_swallow(s, l);
        return true;
    }
    l->swallow_at_answer = l->swallow_at_answer || cut == CUT_SWALLOW_AFTER;
    if (cut == CUT_LATE) {
        l->is_late = true;
        l->up.due_us = now_us() + 1000 * (int64_t)atomic_load(&s->late_ms);
    }
    l->cut_at_answer = l->cut_at_answer || cut == CUT_AFTER;
    return pour_up(s, l);
}

/* 0: at once. Jitter may begin at nothing. */
static unsigned draw_delay_us(const struct proxy_shared *s)
{
    static unsigned seed = 1;
    unsigned delay_us = atomic_load(&s->delay_us);
    unsigned jitter_us = atomic_load(&s->jitter_us);

    return jitter_us == 0 ? delay_us
                          : delay_us + (unsigned)rand_r(&seed) % (jitter_us + 1);
}

static bool from_server(struct proxy_shared *s, struct link *l)
{
    unsigned delay_us;

    if (!fill(l->server, &l->down))
        return false;
    if (l->down.n == 0)
        return true;
    if (l->cut_at_answer) {
        atomic_fetch_add(&s->count[PROXY_CUTS_AFTER], 1);
        return false;
    }
    if (l->swallow_at_answer) { /* stays in l->down */
        l->swallow_at_answer = false;
        begin_swallow(s, l);
        return true;
    }
    delay_us = draw_delay_us(s);
    if (delay_us > 0) {
        l->down.due_us = now_us() + delay_us;
        atomic_fetch_add(&s->count[PROXY_DELAYED], 1);
    }
    return answer(s, l);
}

static void serve(struct proxy_shared *s, struct link *l, short client, short server)
{
    const short in = POLLIN | POLLHUP | POLLERR;
    bool ok = pour_up(s, l) && answer(s, l);

    if (ok && (client & in) != 0 && l->up.n == 0)
        ok = from_client(s, l);
    if (ok && (server & in) != 0 && l->down.n == 0)
        ok = from_server(s, l);
    if (!ok)
        unlink_pair(l);
}

/* ---- loop ---- */

struct watch {
    struct pollfd fds[1 + 2 * PROXY_LINKS];
};

static struct pollfd interest(int fd, const struct hose *in, const struct hose *out)
{
    bool reads = in->n == 0;
    bool writes = out->n > 0 && out->due_us <= now_us();

    if (!reads && !writes)
        fd = -1; /* a hang-up that cannot be served would only spin */
    return (struct pollfd){
        .fd = fd, .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
}

/* Until the next answer that waits may go on. */
static long tick_us(const struct link *links)
{
    int64_t next = TICK_US, now = now_us();

    for (const struct link *l = links; l < links + PROXY_LINKS; l++) {
        const struct hose *both[] = {&l->up, &l->down};

        for (size_t i = 0; i < 2 && l->client >= 0; i++) {
            int64_t left = both[i]->n > 0 ? both[i]->due_us - now : -1;

            next = left > 0 && left < next ? left : next;
        }
    }
    return (long)next;
}

static void
watch_all(struct watch *w, const struct link *links, int listener, bool swallow)
{
    struct timespec wait;

    w->fds[0] = (struct pollfd){.fd = swallow ? -1 : listener, .events = POLLIN};
    for (size_t i = 0; i < PROXY_LINKS; i++) {
        const struct link *l = &links[i];
        bool off = l->client < 0 || (swallow && l->was_swallowed);

        w->fds[1 + 2 * i] = interest(off ? -1 : l->client, &l->up, &l->down);
        w->fds[2 + 2 * i] = interest(off ? -1 : l->server, &l->down, &l->up);
    }
    wait = (struct timespec){.tv_nsec = tick_us(links) * 1000};
    (void)ppoll(w->fds, 1 + 2 * PROXY_LINKS, &wait, NULL);
}

static void hold_back(struct proxy_shared *s, struct link *l, const struct pollfd *fds)
{
    if (l->was_swallowed || ((fds[0].revents | fds[1].revents) & POLLIN) == 0)
        return;
    l->was_swallowed = true;
    atomic_fetch_add(&s->count[PROXY_SWALLOWED], 1);
}

static void serve_all(struct proxy_shared *s,
                      struct link *links,
                      const struct watch *w,
                      bool swallow)
{
    for (size_t i = 0; i < PROXY_LINKS; i++) {
        const struct pollfd *fds = &w->fds[1 + 2 * i];

        if (links[i].client < 0)
            continue;
        if (swallow) {
            hold_back(s, &links[i], fds);
            continue;
        }
        links[i].was_swallowed = false;
        serve(s, &links[i], fds[0].revents, fds[1].revents);
    }
}

void proxy_run(struct proxy_shared *s,
               int listener,
               const struct sockaddr_storage *behind,
               socklen_t size)
{
    static struct link links[PROXY_LINKS];
    static struct watch w;
    unsigned cuts = 0;
    bool swallow = false;

    for (size_t i = 0; i < PROXY_LINKS; i++)
        links[i].client = links[i].server = -1;
    for (;;) {
        unsigned asked, all;

        watch_all(&w, links, listener, swallow);
        asked = atomic_load(&s->asked);
        swallow = atomic_load(&s->swallow);
        all = atomic_load(&s->cut_all);
        if (all != cuts || atomic_load(&s->refuse))
            cut_links(s, links);
        cuts = all;
        serve_all(s, links, &w, swallow);
        if (atomic_load(&s->refuse))
            turn_away(s, listener);
        else if ((w.fds[0].revents & POLLIN) != 0 && !swallow)
            welcome(s, links, listener, behind, size);
        atomic_store(&s->seen, asked);
    }
}
