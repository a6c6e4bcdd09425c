/* loop [URL]: takes a lock in an event loop of libevent, works for some seconds while
 * the loop renews it, and releases. Any loop that can watch a descriptor will do.
 *
 * cc loop.c $(pkg-config --cflags --libs ledgerlock libevent) */
#include <event2/event.h>
#include <inttypes.h>
#include <ledgerlock/lock_loop.h>
#include <stdio.h>

enum { LEASE_MS = 1500, WAIT_MS = 5000, WORK_MS = 2500 };

struct job {
    struct rlock_client *c;
    struct rlock_lock *l;
    struct rlock_renewer *r;
    struct event *io, *work;
    int code; /* of the program */
};

/* Removes the events, so the loop ends. */
static void stop(struct job *job, const char *what, int code)
{
    if (code != RLOCK_OK)
        fprintf(stderr, "loop: %s: %s: %s\n", what, rlock_strerror(code),
                rlock_error(job->c));
    job->code = code == RLOCK_OK ? 0 : 1;
    (void)event_del(job->io);
    (void)event_del(job->work);
}

static void on_released(struct rlock_lock *l, int code, void *arg)
{
    (void)l;
    if (code == RLOCK_OK)
        printf("released\n");
    stop(arg, "release", code);
}

static void on_worked(evutil_socket_t fd, short events, void *arg)
{
    struct job *job = arg;
    int code = rlock_begin_release(job->l, on_released, job);

    (void)fd;
    (void)events;
    if (code != RLOCK_OK)
        stop(job, "release", code);
}

static void on_lost(struct rlock_lock *l, int code, void *arg)
{
    (void)l;
    stop(arg, "renewal", code);
}

static void on_taken(struct rlock_lock *l, int code, void *arg)
{
    const struct timeval work = {WORK_MS / 1000, WORK_MS % 1000 * 1000};
    struct job *job = arg;

    if (code == RLOCK_OK)
        code = rlock_renew(job->r, l, 0, 0);
    if (code != RLOCK_OK) {
        stop(job, "acquire", code);
        return;
    }
    printf("token %" PRId64 "\n", rlock_token(l));
    (void)event_add(job->work, &work);
}

static void on_ready(evutil_socket_t fd, short events, void *arg)
{
    struct job *job = arg;
    int code = rlock_loop_step(job->c);

    (void)fd;
    (void)events;
    if (code != RLOCK_OK)
        stop(job, "step", code);
}

static void run(struct job *job, struct event_base *base)
{
    const struct rlock_key key = {"report", 6};
    int code;

    (void)event_add(job->io, NULL);
    code = rlock_begin_acquire(job->l, &key, 1, RLOCK_ALL, LEASE_MS, WAIT_MS, on_taken,
                               job);
    if (code != RLOCK_OK)
        stop(job, "acquire", code);
    (void)event_base_dispatch(base);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct job job = {.code = 1};
    struct rlock_options o = {.size = sizeof o, .url = argc > 1 ? argv[1] : NULL};
    struct rlock_renew_options renewal = {
        .size = sizeof renewal, .on_lost = on_lost, .arg = &job, .no_thread = true};
    char why[160] = "out of memory";

    if (base == NULL || rlock_open(&job.c, &o, why, sizeof why) != RLOCK_OK) {
        fprintf(stderr, "loop: %s\n", why);
        return 1;
    }
    job.l = rlock_new(job.c);
    job.io =
        event_new(base, rlock_loop_fd(job.c), EV_READ | EV_PERSIST, on_ready, &job);
    job.work = event_new(base, -1, 0, on_worked, &job);
    if (job.l == NULL || job.io == NULL || job.work == NULL ||
        rlock_renewer_open(&job.r, job.c, &renewal) != RLOCK_OK)
        return 1;
    run(&job, base);
    rlock_renewer_close(job.r);
    event_free(job.io);
    event_free(job.work);
    rlock_free(job.l);
    rlock_close(job.c);
    event_base_free(base);
    return job.code;
}
