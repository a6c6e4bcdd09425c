/* proxy_front: the caller's side of a proxy: its process, its faults, its counters. */
#include "tests/testkit/proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/testkit/proxy_shared.h"

enum { ANSWER_S = 60 };

/* ---- open and close ---- */

static void put_behind(struct proxy_shared *s, const char *behind)
{
    proxy_lock_cut(s);
    s->behind_size = kit_address(behind, &s->behind);
    proxy_unlock_cut(s);
}

static void start(struct proxy *p, int listener, const char *behind)
{
    p->shared = kit_share(sizeof *p->shared);
    put_behind(p->shared, behind);
    p->pid = kit_fork("test-proxy");
    if (p->pid == 0)
        proxy_run(p->shared, listener);
    (void)close(listener);
}

static void begin(struct proxy *p)
{
    if (p->pid != 0)
        kit_fail("the proxy %ld is open already", (long)p->pid);
    memset(p, 0, sizeof *p);
}

void proxy_open_at(struct proxy *p, const char *behind, const char *front)
{
    struct sockaddr_in inet;
    socklen_t size = sizeof inet;
    int listener;

    begin(p);
    listener = kit_listen(front);
    if (getsockname(listener, (struct sockaddr *)&inet, &size) != 0)
        kit_fail("the proxy at %s has no port", front);
    p->port = ntohs(inet.sin_port);
    start(p, listener, behind);
}

void proxy_open(struct proxy *p, const char *behind, const char *name)
{
    if (name == NULL) {
        proxy_open_at(p, behind, "127.0.0.1:0");
        return;
    }
    begin(p);
    kit_make_folder(p->dir, "proxy");
    (void)snprintf(p->path, sizeof p->path, "%s/%.30s", p->dir, name);
    start(p, kit_listen(p->path), behind);
}

void proxy_lead_to(struct proxy *p, const char *behind)
{
    put_behind(p->shared, behind);
}

void proxy_close(struct proxy *p)
{
    if (p->pid > 0) {
        kit_kill(&p->pid);
        (void)munmap(p->shared, sizeof *p->shared);
    }
    if (p->path[0] != '\0')
        (void)unlink(p->path);
    if (p->dir[0] != '\0')
        (void)rmdir(p->dir);
    memset(p, 0, sizeof *p);
}

/* ---- faults ---- */

/* Returns when the proxy works by what the caller has set. */
static void settle(struct proxy *p)
{
    unsigned asked = atomic_fetch_add(&p->shared->asked, 1) + 1;
    int64_t deadline = kit_now_us() + ANSWER_S * 1000000LL;

    while (atomic_load(&p->shared->seen) < asked) {
        if (kit_now_us() > deadline)
            kit_fail("the proxy %ld does not answer", (long)p->pid);
        kit_pause_ms(1);
    }
}

static void
set_cut(struct proxy *p, enum cut cut, const char *bytes, size_t size, unsigned times)
{
    struct proxy_shared *s = p->shared;

    if (size == 0 || size > PROXY_PATTERN)
        kit_fail("a proxy looks for 1 to %d bytes", PROXY_PATTERN);
    proxy_lock_cut(s);
    s->cut = cut;
    s->cut_times = times;
    s->cut_size = size;
    memcpy(s->cut_bytes, bytes, size);
    proxy_unlock_cut(s);
    settle(p);
}

void proxy_cut_before(struct proxy *p, const char *bytes, size_t size, unsigned times)
{
    set_cut(p, CUT_BEFORE, bytes, size, times);
}

void proxy_cut_after(struct proxy *p, const char *bytes, size_t size, unsigned times)
{
    set_cut(p, CUT_AFTER, bytes, size, times);
}

void proxy_late(
    struct proxy *p, const char *bytes, size_t size, unsigned times, unsigned ms)
{
    atomic_store(&p->shared->late_ms, ms);
    set_cut(p, CUT_LATE, bytes, size, times);
}

void proxy_hold(struct proxy *p, const char *bytes, size_t size, unsigned times)
{
    set_cut(p, CUT_HOLD, bytes, size, times);
}

void proxy_let_go(struct proxy *p)
{
    atomic_fetch_add(&p->shared->let_go, 1);
    settle(p);
}

void proxy_drop_held(struct proxy *p)
{
    atomic_fetch_add(&p->shared->drop, 1);
    settle(p);
}

void proxy_delay(struct proxy *p, unsigned ms)
{
    proxy_delay_us(p, ms * 1000);
}

void proxy_delay_us(struct proxy *p, unsigned us)
{
    atomic_store(&p->shared->delay_us, us);
    settle(p);
}

void proxy_jitter(struct proxy *p, unsigned least_ms, unsigned most_ms)
{
    atomic_store(&p->shared->jitter_us, 1000 * (most_ms - least_ms));
    proxy_delay(p, least_ms);
}

void proxy_slice(struct proxy *p, unsigned bytes, unsigned us)
{
    atomic_store(&p->shared->slice_us, us);
    atomic_store(&p->shared->slice_bytes, bytes);
    settle(p);
}

void proxy_swallow(struct proxy *p, bool on)
{
    atomic_store(&p->shared->swallow, on);
    settle(p);
}

void proxy_swallow_at(struct proxy *p, const char *bytes, size_t size)
{
    set_cut(p, CUT_SWALLOW, bytes, size, 1);
}

void proxy_swallow_after(struct proxy *p, const char *bytes, size_t size)
{
    set_cut(p, CUT_SWALLOW_AFTER, bytes, size, 1);
}

void proxy_refuse(struct proxy *p, bool on)
{
    atomic_store(&p->shared->refuse, on);
    settle(p);
}

void proxy_cut_all(struct proxy *p)
{
    atomic_fetch_add(&p->shared->cut_all, 1);
    settle(p);
}

void proxy_reset_all(struct proxy *p)
{
    atomic_store(&p->shared->reset, true);
    proxy_cut_all(p);
    atomic_store(&p->shared->reset, false);
}

void proxy_pass(struct proxy *p)
{
    atomic_store(&p->shared->delay_us, 0);
    atomic_store(&p->shared->jitter_us, 0);
    atomic_store(&p->shared->slice_bytes, 0);
    atomic_store(&p->shared->swallow, false);
    atomic_store(&p->shared->refuse, false);
    set_cut(p, CUT_NONE, "-", 1, 0);
}

unsigned proxy_count(const struct proxy *p, enum proxy_count what)
{
    return atomic_load(&p->shared->count[what]);
}

bool proxy_wait(const struct proxy *p, enum proxy_count what, unsigned n, int seconds)
{
    int64_t deadline = kit_now_us() + (int64_t)seconds * 1000000;

    while (proxy_count(p, what) < n) {
        if (kit_now_us() > deadline)
            return false;
        kit_pause_ms(2);
    }
    return true;
}
