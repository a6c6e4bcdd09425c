/* proxy: its process: one poll loop over its links. */
#define _GNU_SOURCE /* accept4, ppoll */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "tests/testkit/proxy_shared.h"

enum { TICK_US = 5000 };

/* How many of each the process has done. */
struct orders {
    unsigned cut_all, let_go, drop;
};

struct watch {
    struct pollfd fds[1 + 2 * PROXY_LINKS];
};

static struct pollfd
interest(int fd, const struct proxy_hose *in, const struct proxy_hose *out)
{
    bool reads = in->n == 0;
    bool writes = out->n > 0 && out->due_us <= kit_now_us();

    if (!reads && !writes)
        fd = -1; /* a hang-up that cannot be served would only spin */
    return (struct pollfd){
        .fd = fd, .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
}

/* Until the next answer that waits may go on. */
static long tick_us(const struct proxy_link *links)
{
    int64_t next = TICK_US, now = kit_now_us();

    for (const struct proxy_link *l = links; l < links + PROXY_LINKS; l++) {
        const struct proxy_hose *both[] = {&l->up, &l->down};

        for (size_t i = 0; i < 2 && l->client >= 0; i++) {
            int64_t left = both[i]->n > 0 ? both[i]->due_us - now : -1;

            next = left > 0 && left < next ? left : next;
        }
    }
    return (long)next;
}

static void
watch_all(struct watch *w, const struct proxy_link *links, int listener, bool swallow)
{
    struct timespec wait;

    w->fds[0] = (struct pollfd){.fd = swallow ? -1 : listener, .events = POLLIN};
    for (size_t i = 0; i < PROXY_LINKS; i++) {
        const struct proxy_link *l = &links[i];
        bool off = l->client < 0 || l->is_held || (swallow && l->was_swallowed);

        w->fds[1 + 2 * i] = interest(off ? -1 : l->client, &l->up, &l->down);
        w->fds[2 + 2 * i] = interest(off ? -1 : l->server, &l->down, &l->up);
    }
    wait = (struct timespec){.tv_nsec = tick_us(links) * 1000};
    (void)ppoll(w->fds, 1 + 2 * PROXY_LINKS, &wait, NULL);
}

static void
hold_back(struct proxy_shared *s, struct proxy_link *l, const struct pollfd *fds)
{
    if (l->was_swallowed || ((fds[0].revents | fds[1].revents) & POLLIN) == 0)
        return;
    l->was_swallowed = true;
    atomic_fetch_add(&s->count[PROXY_SWALLOWED], 1);
}

static void serve_all(struct proxy_shared *s,
                      struct proxy_link *links,
                      const struct watch *w,
                      bool swallow)
{
    for (size_t i = 0; i < PROXY_LINKS; i++) {
        const struct pollfd *fds = &w->fds[1 + 2 * i];

        if (links[i].client < 0 || links[i].is_held)
            continue;
        if (swallow) {
            hold_back(s, &links[i], fds);
            continue;
        }
        links[i].was_swallowed = false;
        proxy_serve(s, &links[i], fds[0].revents, fds[1].revents);
    }
}

static void refuse_all(struct proxy_shared *s, int listener)
{
    int client;

    while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        (void)close(client);
        atomic_fetch_add(&s->count[PROXY_REFUSED], 1);
    }
}

static void cut_links(struct proxy_shared *s, struct proxy_link *links)
{
    const struct linger at_once = {.l_onoff = 1};

    for (size_t i = 0; i < PROXY_LINKS; i++) {
        if (links[i].client < 0)
            continue;
        if (atomic_load(&s->reset)) /* what a close says to TCP then is a reset */
            (void)setsockopt(links[i].client, SOL_SOCKET, SO_LINGER, &at_once,
                             sizeof at_once);
        proxy_unlink(&links[i]);
        atomic_fetch_add(&s->count[PROXY_REFUSED], 1);
    }
}

/* The commands that proxy_hold has stopped go on, or are dropped. */
static void free_held(struct proxy_link *links, bool drop)
{
    for (size_t i = 0; i < PROXY_LINKS; i++) {
        if (links[i].client >= 0 && links[i].is_held && drop)
            proxy_unlink(&links[i]);
        links[i].is_held = false;
    }
}

static void obey(struct proxy_shared *s, struct proxy_link *links, struct orders *done)
{
    struct orders now = {.cut_all = atomic_load(&s->cut_all),
                         .let_go = atomic_load(&s->let_go),
                         .drop = atomic_load(&s->drop)};

    if (now.cut_all != done->cut_all || atomic_load(&s->refuse))
        cut_links(s, links);
    if (now.let_go != done->let_go || now.drop != done->drop)
        free_held(links, now.drop != done->drop);
    *done = now;
}

/* All that was to be held is held. */
static bool is_shut(struct proxy_shared *s, const struct proxy_link *links)
{
    bool is_complete, any = false;

    proxy_lock_cut(s);
    is_complete = s->cut == CUT_HOLD && s->cut_times == 0;
    proxy_unlock_cut(s);
    for (size_t i = 0; is_complete && i < PROXY_LINKS; i++)
        any = any || (links[i].client >= 0 && links[i].is_held);
    return any;
}

void proxy_run(struct proxy_shared *s, int listener)
{
    static struct proxy_link links[PROXY_LINKS];
    static struct watch w;
    struct orders done = {0};
    bool swallow = false, shut = false;

    for (size_t i = 0; i < PROXY_LINKS; i++)
        links[i].client = links[i].server = -1;
    for (;;) {
        unsigned asked;

        watch_all(&w, links, shut ? -1 : listener, swallow);
        asked = atomic_load(&s->asked);
        swallow = atomic_load(&s->swallow);
        obey(s, links, &done);
        serve_all(s, links, &w, swallow);
        shut = is_shut(s, links);
        if (atomic_load(&s->refuse))
            refuse_all(s, listener);
        else if ((w.fds[0].revents & POLLIN) != 0 && !swallow && !shut)
            proxy_welcome(s, links, listener);
        atomic_store(&s->seen, asked);
    }
}
