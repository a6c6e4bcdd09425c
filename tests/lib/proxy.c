/* proxy: the test's side: starts and stops the process, sets faults, reads counters. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, mkdtemp */
#include "tests/lib/proxy.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/proxy_shared.h"

enum { ANSWER_S = 10 };

/* ---- addresses ---- */

/* A path, or "a.b.c.d:port". */
static socklen_t make_address(const char *text, struct sockaddr_storage *address)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in inet = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[64];

    memset(address, 0, sizeof *address);
    if (text[0] == '/') {
        assert_true(strlen(text) < sizeof path.sun_path);
        (void)strcpy(path.sun_path, text);
        memcpy(address, &path, sizeof path);
        return sizeof path;
    }
    assert_non_null(colon);
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (inet_pton(AF_INET, host, &inet.sin_addr) != 1)
        fail_msg("%s is no numeric IPv4 address", host);
    inet.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    memcpy(address, &inet, sizeof inet);
    return sizeof inet;
}

static int listen_at(const char *text)
{
    struct sockaddr_storage address;
    socklen_t size = make_address(text, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, PROXY_LINKS), 0);
    return fd;
}

/* ---- the test's side ---- */

static void start(struct proxy *p, int listener, const char *behind)
{
    struct sockaddr_storage address;
    socklen_t size = make_address(behind, &address);
    pid_t parent = getpid();

    p->shared = mmap(NULL, sizeof *p->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p->shared != MAP_FAILED);
    (void)fflush(NULL);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, "test-proxy");
        if (getppid() == parent)
            proxy_run(p->shared, listener, &address, size);
        _exit(0);
    }
    (void)close(listener);
}

static void make_folder(struct proxy *p)
{
    const char *base = getenv("LEDGERLOCK_TEST_TMP");

    /* A socket's path has 107 bytes. */
    if (base == NULL || base[0] != '/' || strlen(base) > 40)
        base = "/tmp";
    (void)snprintf(p->dir, sizeof p->dir, "%s/proxy.XXXXXX", base);
    assert_non_null(mkdtemp(p->dir));
}

void proxy_open_at(struct proxy *p, const char *behind, const char *front)
{
    struct sockaddr_in inet;
    socklen_t size = sizeof inet;
    int listener;

    assert_int_equal(p->pid, 0);
    memset(p, 0, sizeof *p);
    listener = listen_at(front);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&inet, &size), 0);
    p->port = ntohs(inet.sin_port);
    start(p, listener, behind);
}

void proxy_open(struct proxy *p, const char *behind, const char *name)
{
    if (name == NULL) {
        proxy_open_at(p, behind, "127.0.0.1:0");
        return;
    }
    assert_int_equal(p->pid, 0);
    memset(p, 0, sizeof *p);
    make_folder(p);
    (void)snprintf(p->path, sizeof p->path, "%s/%s", p->dir, name);
    start(p, listen_at(p->path), behind);
}

void proxy_close(struct proxy *p)
{
    if (p->pid > 0) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, NULL, 0);
        (void)munmap(p->shared, sizeof *p->shared);
    }
    if (p->path[0] != '\0')
        (void)unlink(p->path);
    if (p->dir[0] != '\0')
        (void)rmdir(p->dir);
    memset(p, 0, sizeof *p);
}

/* Returns when the proxy works by what the test has set. */
static void settle(struct proxy *p)
{
    unsigned asked = atomic_fetch_add(&p->shared->asked, 1) + 1;
    int64_t deadline = proxy_now_ms() + ANSWER_S * 1000;

    while (atomic_load(&p->shared->seen) < asked) {
        if (proxy_now_ms() > deadline)
            fail_msg("the proxy %ld does not answer", (long)p->pid);
        fixture_pause_ms(1);
    }
}

static void
set_cut(struct proxy *p, enum cut cut, const char *bytes, size_t size, unsigned times)
{
    struct proxy_shared *s = p->shared;

    assert_true(size > 0 && size <= PROXY_PATTERN);
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
    int64_t deadline = proxy_now_ms() + (int64_t)seconds * 1000;

    while (proxy_count(p, what) < n) {
        if (proxy_now_ms() > deadline)
            return false;
        fixture_pause_ms(2);
    }
    return true;
}
