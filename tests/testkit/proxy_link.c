/* proxy: its links of two sockets. Bytes are read from one side only when all earlier
 * ones went out on the other, so what was read is all there is. */
#define _GNU_SOURCE /* memmem, accept4 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/testkit/proxy_shared.h"

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

void proxy_unlink(struct proxy_link *l)
{
    (void)close(l->client);
    (void)close(l->server);
    l->client = l->server = -1;
}

static int connect_behind(struct proxy_shared *s)
{
    struct sockaddr_storage behind;
    socklen_t size;
    int fd;

    proxy_lock_cut(s);
    behind = s->behind;
    size = s->behind_size;
    proxy_unlock_cut(s);
    fd = socket(behind.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&behind, size) != 0) {
        (void)close(fd);
        return -1;
    }
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

void proxy_welcome(struct proxy_shared *s, struct proxy_link *links, int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct proxy_link *l = links;
    int server;

    if (client < 0)
        return;
    while (l < links + PROXY_LINKS && l->client >= 0)
        l++;
    server = l < links + PROXY_LINKS ? connect_behind(s) : -1;
    if (server < 0) {
        (void)close(client);
        return;
    }
    memset(l, 0, sizeof *l);
    l->client = client;
    l->server = server;
    atomic_fetch_add(&s->count[PROXY_CONNECTIONS], 1);
}

/* The cut that is due when the client's last bytes complete the pattern; takes one off.
 */
static enum cut match(struct proxy_shared *s, struct proxy_link *l)
{
    char window[PROXY_PATTERN + PROXY_CHUNK];
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
static bool fill(int fd, struct proxy_hose *h)
{
    ssize_t n = read(fd, h->buf, sizeof h->buf);

    h->at = 0;
    h->due_us = 0;
    h->n = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool pour(struct proxy_shared *s, int fd, struct proxy_hose *h)
{
    size_t slice = atomic_load(&s->slice_bytes);
    ssize_t n;

    if (h->n == 0 || h->due_us > kit_now_us())
        return true;
    n = send(fd, h->buf + h->at, slice > 0 && slice < h->n ? slice : h->n,
             MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    h->at += (size_t)n;
    h->n -= (size_t)n;
    if (slice > 0) {
        h->due_us = kit_now_us() + atomic_load(&s->slice_us);
        atomic_fetch_add(&s->count[PROXY_SLICES], 1);
    }
    return true;
}

/* Passes on what the client said, unless its time has not come. */
static bool pour_up(struct proxy_shared *s, struct proxy_link *l)
{
    bool had = l->up.n > 0;
    bool ok = pour(s, l->server, &l->up);

    if (ok && l->is_late && had && l->up.n == 0) {
        l->is_late = false;
        atomic_fetch_add(&s->count[PROXY_LATE], 1);
    }
    return ok;
}

static bool answer(struct proxy_shared *s, struct proxy_link *l)
{
    size_t before = l->down.n;
    bool ok = pour(s, l->client, &l->down);

    l->is_asking = l->is_asking && l->down.n == before;
    return ok;
}

static void begin_swallow(struct proxy_shared *s, struct proxy_link *l)
{
    l->was_swallowed = true;
    atomic_store(&s->swallow, true);
    atomic_fetch_add(&s->count[PROXY_SWALLOWED], 1);
}

static bool from_client(struct proxy_shared *s, struct proxy_link *l)
{
    enum cut cut;

    if (!fill(l->client, &l->up))
        return false;
    if (!l->is_asking && l->up.n > 0)
        atomic_fetch_add(&s->count[PROXY_TRIPS], 1);
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
    if (cut == CUT_HOLD) {
        l->is_held = true;
        atomic_fetch_add(&s->count[PROXY_HELD], 1);
        return true;
    }
    l->swallow_at_answer = l->swallow_at_answer || cut == CUT_SWALLOW_AFTER;
    if (cut == CUT_LATE) {
        l->is_late = true;
        l->up.due_us = kit_now_us() + 1000 * (int64_t)atomic_load(&s->late_ms);
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

static bool from_server(struct proxy_shared *s, struct proxy_link *l)
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
        l->down.due_us = kit_now_us() + delay_us;
        atomic_fetch_add(&s->count[PROXY_DELAYED], 1);
    }
    return answer(s, l);
}

void proxy_serve(struct proxy_shared *s,
                 struct proxy_link *l,
                 short client,
                 short server)
{
    const short in = POLLIN | POLLHUP | POLLERR;
    bool ok = pour_up(s, l) && answer(s, l);

    if (ok && (client & in) != 0 && l->up.n == 0)
        ok = from_client(s, l);
    if (ok && (server & in) != 0 && l->down.n == 0)
        ok = from_server(s, l);
    if (!ok)
        proxy_unlink(l);
}
