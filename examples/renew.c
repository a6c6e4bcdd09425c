/* renew MS [URL]: holds a lock with a short lease for MS milliseconds in a loop around
 * poll, which renews it without a thread. A real loop has further descriptors. */
#define _DEFAULT_SOURCE /* POSIX, with -std=c11 */
#include <inttypes.h>
#include <ledgerlock/lock_loop.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEASE_MS = 1500 };

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void on_lost(struct rlock *l, int code, void *arg)
{
    (void)l;
    *(int *)arg = code; /* called once, inside rlock_loop_step */
}

/* Until the time is over, or the lock is lost. */
static int work(struct rlock_client *c, struct rlock *l, int64_t ms)
{
    int lost = RLOCK_OK, code;
    struct rlock_renew_options o = {
        .size = sizeof o, .on_lost = on_lost, .arg = &lost, .no_thread = true};
    struct rlock_renewer *r;
    struct pollfd p = {.fd = rlock_loop_fd(c), .events = POLLIN};
    int64_t end_ms = now_ms() + ms, left_ms;

    code = rlock_renewer_open(&r, c, &o);
    if (code == RLOCK_OK) {
        code = rlock_renew(r, l, 0, (uint32_t)ms + LEASE_MS); /* as long as the work */
        while (code == RLOCK_OK && lost == RLOCK_OK &&
               (left_ms = end_ms - now_ms()) > 0) {
            (void)poll(&p, 1, (int)left_ms);
            code = rlock_loop_step(c);
        }
        rlock_renew_stop(r, l);
        rlock_renewer_close(r);
    }
    return code != RLOCK_OK ? code : lost;
}

int main(int argc, char **argv)
{
    struct rlock_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    struct rlock_client *c;
    struct rlock *l;
    char why[160] = "out of memory";
    int code;

    if (ms <= 0 || ms > 3600000) {
        fprintf(stderr, "usage: renew MS [URL]\n");
        return 2;
    }
    if (rlock_open(&c, &o, why, sizeof why) != RLOCK_OK || (l = rlock_new(c)) == NULL) {
        fprintf(stderr, "renew: %s\n", why);
        return 2;
    }
    code = rlock_try(l, "report", LEASE_MS);
    if (code == RLOCK_OK) {
        int released;

        printf("token %" PRId64 "\n", rlock_token(l));
        code = work(c, l, ms);
        released = rlock_release(l);
        code = code == RLOCK_OK ? released : code;
    }
    puts(rlock_strerror(code));
    rlock_free(l);
    rlock_close(c);
    return code == RLOCK_OK ? 0 : 1;
}
