/* pool: fork, wait, restart, drain. Signals are blocked and fetched one by one, so
 * nothing happens between two lines of this file that is not written in it. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, gethostname */
#include "worker/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/bell.h"
#include "worker/listen.h"
#include "worker/loop.h"
#include "worker/rescue.h"
#include "worker/watch.h"

enum {
    TICK_MS = 200,

    QUICK_DEATHS_MAX = 10,
    RESTART_BASE_MS = 100,
    RESTART_CAP_MS = 10000,
    RESCUE_CAP_MS = 250 /* when the dead one has left something to clear up */
};

/* What the supervisor alone knows of a slot. */
struct post {
    pid_t pid;             /* 0: nobody there */
    int64_t start_at_ms;   /* not before this */
    unsigned quick_deaths; /* in a row, before the worker got anywhere */
    bool finished;         /* ended with 0: found nothing due, or drained */
    bool replacing;        /* told to stop so that a new configuration can start */
    int64_t kill_at_ms;    /* 0: not told to stop */
};

struct pool {
    const struct pool_order *order;
    struct config config;
    unsigned jobs;
    struct slot *slots; /* shared with the workers */
    struct post *posts;
    size_t n;     /* workers: the first slots and posts */
    size_t seats; /* and the listener, if there is one: the last */
    size_t size;  /* slots mapped */
    pid_t owner;
    char name[24];
    char host[64];
    sigset_t signals;
    sigset_t before; /* the mask that workers get back */
    bool draining;
    struct watch watch;
    enum exit_code code;
};

/* ---- workers ---- */

static bool is_listener(const struct pool *p, size_t i)
{
    return i == p->n;
}

static void become(struct pool *p, size_t i)
{
    struct worker w = {
        .config = &p->config,
        .now = p->order->now,
        .once = p->order->once,
        .jobs = p->jobs,
        .index = (int)i,
        .peers = (int)p->n,
        .slot = &p->slots[i],
        .looked_ms = &p->slots[0].looked_ms,
        .swept_ms = &p->slots[0].swept_ms,
        .quiet = &p->slots[0].quiet,
        .lines = p->slots[0].lines,
        .endless = p->slots[0].endless,
        .accusals = p->slots[0].accusals,
        .listener = p->seats > p->n ? &p->slots[p->n] : NULL,
    };
    char title[48];
    enum exit_code code;

    /* A worker must not outlive its supervisor: told by the kernel, and asked once in
     * case the supervisor died before we told the kernel. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != p->owner)
        _exit(EXIT_BUG);
    (void)snprintf(title, sizeof title,
                   is_listener(p, i) ? "ledgerlock:bell" : "ledgerlock:w%zu", i);
    (void)prctl(PR_SET_NAME, title);
    (void)snprintf(w.pool, sizeof w.pool, "%s", p->name);
    (void)snprintf(w.host, sizeof w.host, "%s", p->host);
    (void)snprintf(w.name, sizeof w.name, "%s.%zu.%" PRId64, p->name, i,
                   w.slot->incarnation);
    log_context(is_listener(p, i) ? "worker=bell" : "worker=%zu", i);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
    code = is_listener(p, i) ? listen_run(&w, p->slots) : loop_run(&w);
    (void)fflush(NULL);
    _exit((int)code);
}

static void start(struct pool *p, size_t i)
{
    struct post *post = &p->posts[i];
    struct slot *slot = &p->slots[i];
    pid_t pid;

    slot->has_worked = 0;
    slot->is_idle = false;
    slot->postgres = slot->redis = SLOT_UNKNOWN;
    slot->incarnation++;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        become(p, i);
    if (pid < 0) {
        log_error("pool.fork_failed", "err=\"%s\"", strerror(errno));
        post->start_at_ms = clk_ms() + RESTART_CAP_MS;
        return;
    }
    slot->pid = pid;
    post->pid = pid;
    post->kill_at_ms = 0;
    post->replacing = false;
}

static void start_due(struct pool *p)
{
    for (size_t i = 0; i < p->seats; i++) {
        struct post *post = &p->posts[i];

        if (post->pid == 0 && !post->finished && !p->draining &&
            clk_ms() >= post->start_at_ms)
            start(p, i);
    }
}

static void stop(struct pool *p, size_t i)
{
    struct post *post = &p->posts[i];

    if (post->pid == 0 || post->kill_at_ms != 0)
        return;
    (void)kill(post->pid, SIGTERM);
    post->kill_at_ms = clk_ms() + p->config.grace_ms;
}

static void kill_late(struct pool *p)
{
    for (size_t i = 0; i < p->seats; i++) {
        struct post *post = &p->posts[i];

        if (post->pid != 0 && post->kill_at_ms != 0 && clk_ms() >= post->kill_at_ms) {
            log_warn("pool.killed",
                     "slot=%zu pid=%ld reason=\"did not drain within the grace\"", i,
                     (long)post->pid);
            (void)kill(post->pid, SIGKILL);
            post->kill_at_ms = clk_ms() + p->config.grace_ms;
        }
    }
}

/* ---- deaths ---- */

static void drain(struct pool *p)
{
    p->draining = true;
    for (size_t i = 0; i < p->seats; i++)
        stop(p, i);
}

/* Exit codes that a new process would only repeat. */
static bool is_final(int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    return code == EXIT_CONFIG || code == EXIT_REFUSED;
}

/* Of a worker that ended because only endless keys were left; the others go on. */
static bool is_left(struct pool *p, int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_LEFT)
        return false;
    if (p->code == EXIT_OK)
        log_error("pool.work_left",
                  "reason=\"what is still due needs keys that never end (see "
                  "lock.endless); nothing could be worked for three leases\"");
    p->code = EXIT_LEFT;
    return true;
}

static void schedule_restart(struct pool *p, size_t i, int status)
{
    struct post *post = &p->posts[i];
    int64_t delay_ms;

    post->quick_deaths = p->slots[i].has_worked ? 0 : post->quick_deaths + 1;
    p->slots[i].counters.value[METRIC_restarts]++;
    if (post->quick_deaths >= QUICK_DEATHS_MAX && !is_listener(p, i)) {
        log_error("pool.giving_up",
                  "slot=%zu reason=\"died %d times before it got anywhere\"", i,
                  QUICK_DEATHS_MAX);
        p->code = EXIT_BUG;
        drain(p);
        return;
    }
    delay_ms =
        post->quick_deaths == 0
            ? 0
            : RESTART_BASE_MS / 2 +
                  clk_backoff_ms(post->quick_deaths, RESTART_BASE_MS, RESTART_CAP_MS);
    if (hold_is_set(&p->slots[i].hold) && delay_ms > RESCUE_CAP_MS)
        delay_ms = RESCUE_CAP_MS;
    post->start_at_ms = clk_ms() + delay_ms;
    if (WIFSIGNALED(status))
        log_warn("pool.worker_died",
                 "slot=%zu pid=%ld signal=%d restart_in_ms=%" PRId64, i,
                 (long)p->slots[i].pid, WTERMSIG(status), delay_ms);
    else
        log_warn("pool.worker_died", "slot=%zu pid=%ld exit=%d restart_in_ms=%" PRId64,
                 i, (long)p->slots[i].pid, WEXITSTATUS(status), delay_ms);
}

static void bury(struct pool *p, size_t i, int status)
{
    struct post *post = &p->posts[i];
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK;

    post->pid = 0;
    rescue_note_death(&p->slots[i], status, post->kill_at_ms != 0);
    if (post->replacing && !p->draining) {
        post->replacing = false;
        post->start_at_ms = 0;
    } else if (clean || p->draining || is_left(p, status)) {
        post->finished = true;
    } else if (is_final(status) && !is_listener(p, i)) {
        post->finished = true;
        p->code = (enum exit_code)WEXITSTATUS(status);
        log_error("pool.giving_up", "slot=%zu exit=%d", i, WEXITSTATUS(status));
        drain(p);
    } else {
        schedule_restart(p, i, status);
    }
}

/* As process 1 we also get the orphans of others: reaped and forgotten. */
static void reap(struct pool *p)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < p->seats; i++) {
            if (p->posts[i].pid == pid) {
                bury(p, i, status);
                p->slots[i].pid = 0;
            }
        }
    }
}

/* ---- signals ---- */

static void on_stop(struct pool *p, int sig)
{
    const char *name = sig == SIGINT ? "INT" : "TERM";

    if (!p->draining) {
        log_info("pool.draining", "signal=%s grace_ms=%" PRId64, name,
                 p->config.grace_ms);
        drain(p);
        return;
    }
    log_warn("pool.stopping_at_once", "signal=%s", name);
    for (size_t i = 0; i < p->seats; i++) {
        if (p->posts[i].pid != 0)
            (void)kill(p->posts[i].pid, SIGKILL);
    }
}

/* The new configuration is checked as a whole before the first worker is replaced. */
static void on_reload(struct pool *p)
{
    struct config fresh;
    struct err e = {0};
    const char *key;
    unsigned jobs;
    char quoted[400];

    if (p->order->reload == NULL || p->draining)
        return;
    if (p->order->reload(&fresh, &jobs, &e) != 0) {
        log_error("pool.reload_refused", "err=%s",
                  log_quote(quoted, sizeof quoted, e.msg));
        return;
    }
    key = config_needs_restart(&p->config, &fresh);
    if (key != NULL) {
        log_error("pool.reload_refused", "err=\"%s cannot change while the pool runs\"",
                  key);
        return;
    }
    p->config = fresh;
    p->jobs = jobs;
    for (size_t i = 0; i < p->seats; i++) {
        p->posts[i].replacing = p->posts[i].pid != 0;
        p->posts[i].finished = false;
    }
    log_info("pool.reloaded", "workers=%zu", p->n);
}

/* Whether every worker that was replaced already has its connection. */
static bool are_replacements_up(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct post *post = &p->posts[i];

        if (!post->finished && !post->replacing &&
            (post->pid == 0 || p->slots[i].postgres != SLOT_UP))
            return false;
    }
    return true;
}

/* One worker at a time, so that the others keep working. */
static void replace_next(struct pool *p)
{
    for (size_t i = 0; i < p->seats; i++) {
        if (p->posts[i].replacing && p->posts[i].pid != 0) {
            if (p->posts[i].kill_at_ms == 0 && are_replacements_up(p))
                stop(p, i);
            return;
        }
    }
}

static void handle_signals(struct pool *p)
{
    static const struct timespec tick = {0, TICK_MS * 1000000L};
    int sig = sigtimedwait(&p->signals, NULL, &tick);

    if (sig == SIGTERM || sig == SIGINT)
        on_stop(p, sig);
    else if (sig == SIGHUP)
        on_reload(p);
    reap(p);
}

/* ---- life ---- */

/* Whether the first n seats are empty for good. */
static bool are_over(const struct pool *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p->posts[i].pid != 0 || !(p->posts[i].finished || p->draining))
            return false;
    }
    return true;
}

static bool is_over(struct pool *p)
{
    if (!p->draining && are_over(p, p->n))
        drain(p); /* nobody is left for the listener to wake */
    return are_over(p, p->seats);
}

static bool open_pool(struct pool *p, const struct pool_order *order)
{
    unsigned char raw[5] = {0};

    p->order = order;
    p->config = *order->config;
    p->jobs = order->jobs;
    p->n = (size_t)p->config.workers;
    p->seats = p->n + (p->config.has_listener && !order->once ? 1 : 0);
    p->owner = getpid();
    p->code = EXIT_OK;
    (void)!getrandom(raw, sizeof raw, 0);
    (void)snprintf(p->name, sizeof p->name, "%02x%02x%02x%02x%02x", raw[0], raw[1],
                   raw[2], raw[3], raw[4]);
    if (gethostname(p->host, sizeof p->host - 1) != 0)
        (void)snprintf(p->host, sizeof p->host, "unknown");
    p->size = p->seats * sizeof *p->slots;
    p->slots = order->slots != NULL ? order->slots
                                    : mmap(NULL, p->size, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p->posts = calloc(p->seats, sizeof *p->posts);
    (void)sigemptyset(&p->signals);
    (void)sigaddset(&p->signals, SIGTERM);
    (void)sigaddset(&p->signals, SIGINT);
    (void)sigaddset(&p->signals, SIGHUP);
    (void)sigaddset(&p->signals, SIGCHLD);
    (void)signal(
        SIGCHLD,
        SIG_DFL); /* ignored by whom started us, no child could be waited for */
    (void)sigprocmask(SIG_BLOCK, &p->signals, &p->before);
    watch_start(&p->watch);
    return p->slots != MAP_FAILED && p->posts != NULL && bell_open(p->slots, p->seats);
}

static void close_pool(struct pool *p)
{
    if (p->slots != MAP_FAILED && p->posts != NULL)
        bell_close(p->slots, p->seats);
    if (p->slots != MAP_FAILED && p->slots != p->order->slots)
        (void)munmap(p->slots, p->size);
    free(p->posts);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
}

enum exit_code pool_run(const struct pool_order *order)
{
    struct pool p = {0};

    log_context("worker=pool");
    if (!open_pool(&p, order)) {
        log_error("pool.failed", "err=\"out of memory or file descriptors\"");
        close_pool(&p);
        return EXIT_BUG;
    }
    log_info("pool.started", "name=%s workers=%zu jobs=%s batch=%" PRId64 " locks=%s",
             p.name, p.n, p.config.jobs, p.config.batch, p.config.lock_mode);
    while (!is_over(&p)) {
        start_due(&p);
        handle_signals(&p);
        kill_late(&p);
        replace_next(&p);
        watch_servers(&p.watch, p.slots, p.n);
        watch_progress(&p.watch, p.slots, p.n);
    }
    watch_totals(&p.watch, p.slots, p.n,
                 p.code == EXIT_OK ? "pool.done" : "pool.stopped");
    close_pool(&p);
    return p.code;
}
