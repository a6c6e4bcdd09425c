/* loop [SOCKET]: takes a lock in an event loop, renews it from a timer, works for some
 * seconds, and releases. Over a connection of our own: to SOCKET, or to 127.0.0.1:6379.
 *
 * cc loop.c $(pkg-config --cflags --libs ledgerlock hiredis libevent) */
#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <hiredis/async.h>
#include <inttypes.h>
#include <ledgerlock/lock_async.h>
#include <stdio.h>

enum { LEASE_MS = 1500, WORK_MS = 2500 };

struct job {
    redisAsyncContext *ac; /* NULL: it has ended */
    struct rlock_client *c;
    struct rlock_lock *l;
    struct event *renewal, *work;
    int renewed;
    int code; /* of the program */
};

static void start_timer(struct event *timer, int ms)
{
    struct timeval wait = {ms / 1000, ms % 1000 * 1000};

    (void)event_add(timer, &wait);
}

/* Frees everything, so the loop ends. */
static void stop(struct job *job, const char *what, int code)
{
    if (code != RLOCK_OK)
        fprintf(stderr, "loop: %s: %s: %s\n", what, rlock_strerror(code),
                rlock_error(job->c));
    job->code = code == RLOCK_OK ? 0 : 1;
    (void)event_del(job->renewal);
    (void)event_del(job->work);
    if (job->ac != NULL)
        redisAsyncDisconnect(job->ac);
}

static void on_released(struct rlock_lock *l, int code, void *arg)
{
    struct job *job = arg;

    (void)l;
    if (code == RLOCK_OK)
        printf("renewed %d times, released\n", job->renewed);
    stop(job, "release", code);
}

static void on_renewed(struct rlock_lock *l, int code, void *arg)
{
    struct job *job = arg;

    if (code == RLOCK_OK)
        job->renewed++;
    else if (!rlock_valid(l, LEASE_MS / 3)) /* else there is time for another try */
        stop(job, "renewal", code);
}

static void on_renewal_timer(evutil_socket_t fd, short events, void *arg)
{
    struct job *job = arg;
    int code = rlock_async_extend(job->l, LEASE_MS, on_renewed, job);

    (void)fd;
    (void)events;
    start_timer(job->renewal, LEASE_MS / 3);
    if (code != RLOCK_OK && !rlock_valid(job->l, LEASE_MS / 3))
        stop(job, "renewal", code);
}

static void on_work_timer(evutil_socket_t fd, short events, void *arg)
{
    struct job *job = arg;
    int code = rlock_async_release(job->l, on_released, job);

    (void)fd;
    (void)events;
    (void)event_del(job->renewal);
    if (code == RLOCK_E_INVAL) /* a renewal is under way: try again soon */
        start_timer(job->work, 10);
    else if (code != RLOCK_OK)
        stop(job, "release", code);
}

static void on_taken(struct rlock_lock *l, int code, void *arg)
{
    struct job *job = arg;

    if (code != RLOCK_OK) {
        stop(job, "acquire", code);
        return;
    }
    printf("token %" PRId64 "\n", rlock_token(l));
    start_timer(job->renewal, LEASE_MS / 3);
    start_timer(job->work, WORK_MS);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
    struct job *job = ac->data;

    (void)status;
    job->ac = NULL;
    if (rlock_async_attach(job->c, NULL) !=
        RLOCK_OK) /* or attach the next connection */
        job->code = 1;
}

static void run(struct job *job, struct event_base *base)
{
    const struct rlock_key key = {"report", 6};
    int code = rlock_async_attach(job->c, job->ac);

    job->ac->data = job;
    if (code != RLOCK_OK || redisLibeventAttach(job->ac, base) != REDIS_OK ||
        redisAsyncSetDisconnectCallback(job->ac, on_disconnect) != REDIS_OK) {
        fprintf(stderr, "loop: %s\n", rlock_error(job->c));
        redisAsyncFree(job->ac);
        return;
    }
    code = rlock_async_acquire(job->l, &key, 1, RLOCK_ALL, LEASE_MS, on_taken, job);
    if (code != RLOCK_OK)
        stop(job, "acquire", code);
    (void)event_base_dispatch(base);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct job job = {.code = 1};

    job.ac = argc > 1 ? redisAsyncConnectUnix(argv[1])
                      : redisAsyncConnect("127.0.0.1", 6379);
    if (base == NULL || job.ac == NULL || rlock_open(&job.c, NULL, NULL, 0) != RLOCK_OK)
        return 1;
    job.l = rlock_new(job.c);
    job.renewal = event_new(base, -1, 0, on_renewal_timer, &job);
    job.work = event_new(base, -1, 0, on_work_timer, &job);
    if (job.l == NULL || job.renewal == NULL || job.work == NULL)
        return 1;
    run(&job, base);
    event_free(job.renewal);
    event_free(job.work);
    rlock_free(job.l);
    rlock_close(job.c);
    event_base_free(base);
    return job.code;
}
