/* supervisor: wait, restart, drain. Signals are blocked and fetched one by one,
 * so nothing happens between two lines of this file that is not written in it. */
#define _DEFAULT_SOURCE /* gethostname */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/session.h"
#include "worker/pool/supervisor.h"

enum {
    TICK_MS = 200,
    DEATHS_MAX = 10, /* of the pool, in a row, without a commit */
    RESTART_BASE_MS = 100,
    TOLD_MS = 1000,      /* somebody may be about to tell all of our processes */
    RECOVER_CAP_MS = 250 /* when the dead one has left something to clear up */
};

/* ---- deaths ---- */

static void drain(struct pool *p)
{
    if (!p->draining)
        service_stopping(p);
    p->draining = true;
    for (size_t i = 0; i < p->n; i++)
        child_stop(p, &p->children[i]);
}

/* Deaths that pile up while nothing is committed are of the program or the machine. */
static bool is_piling_up(struct pool *p)
{
    if (p->shared->commits != p->commits)
        p->deaths = 0;
    p->commits = p->shared->commits;
    return ++p->deaths >= DEATHS_MAX;
}

static const char *cause_of(int status)
{
    return WIFSIGNALED(status) ? "signal" : "exit";
}

static int number_of(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void schedule_restart(struct pool *p, size_t i, pid_t pid, int status)
{
    struct child *child = &p->children[i];
    int64_t delay_ms = 0;
    char how[24];

    p->shared->slots[i].counters.value[COUNT_restarts]++;
    if (is_piling_up(p)) {
        log_error(
            "pool.giving_up",
            "code=LL-5013 reason=\"workers died %d times and nothing was committed meanwhile: "
            "the program or the machine is at fault; nothing was parked for it\"",
            DEATHS_MAX);
        p->code = EXIT_BUG;
        drain(p);
        return;
    }
    if (p->deaths > 1)
        delay_ms = clk_backoff_ms(p->deaths - 1, RESTART_BASE_MS, RESTART_CAP_MS);
    if (inflight_is_set(&p->shared->slots[i].inflight) && delay_ms > RECOVER_CAP_MS)
        delay_ms = RECOVER_CAP_MS;
    child->start_at_ms = clk_ms() + delay_ms;
    (void)snprintf(how, sizeof how, "%s %d", cause_of(status), number_of(status));
    timeline_begin(&p->shared->timeline, timeline_died, i, how);
    log_warn("pool.worker_died",
             "code=LL-5014 slot=%zu pid=%ld %s=%d restart_in_ms=%" PRId64, i, (long)pid,
             cause_of(status), number_of(status), delay_ms);
}

static void note_death(struct pool *p, size_t i, int status)
{
    struct slot *slot = &p->shared->slots[i];
    int64_t item = inflight_note_death(&slot->inflight, slot->incarnation, status,
                                       p->children[i].kill_at_ms != 0, clk_ms());

    if (item != 0)
        log_warn("worker.row_death",
                 "code=LL-6007 %s=%" PRId64 " deaths=%" PRId64 " death=\"%s\"",
                 slot->job->item, item,
                 death_count_add(&p->shared->deaths, slot->job, item,
                                 slot->inflight.commits),
                 slot->inflight.death);
}

/* A worker found nothing due: what others of its job left was worked since. */
static void forget_left(struct pool *p, const struct job_type *job)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->shared->slots[i].job == job)
            p->shared->slots[i].left[0] = '\0';
    }
}

static void on_exit_of(struct pool *p, size_t i, int status)
{
    struct child *child = &p->children[i];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pid_t pid = child->pid;

    note_death(p, i, status);
    child->pid = p->shared->slots[i].pid = 0;
    if (child->replacing && !p->draining) {
        child->replacing = false;
        child->start_at_ms = 0;
    } else if (p->draining ||
               (p->order->once && (code == EXIT_OK || code == EXIT_LEFT))) {
        child->finished = true;
        if (code == EXIT_OK && !p->draining)
            forget_left(p, p->shared->slots[i].job);
        if (p->draining && code != EXIT_OK && code != EXIT_LEFT &&
            !(WIFSIGNALED(status) &&
              WTERMSIG(status) == SIGTERM)) /* ours: just forked */
            log_warn("pool.worker_died",
                     "code=LL-5014 slot=%zu pid=%ld %s=%d note=\"the pool ends; the "
                     "next one works its batch\"",
                     i, (long)pid, cause_of(status), number_of(status));
    } else if (code == EXIT_OK && p->shared->slots[i].moves_on) {
        child->start_at_ms = 0;
    } else if (code == EXIT_OK) { /* told by somebody else */
        child->start_at_ms = clk_ms() + TOLD_MS;
    } else {
        schedule_restart(p, i, pid, status);
    }
}

/* As process 1 we also get the orphans of others: reaped and forgotten. */
static void reap(struct pool *p)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            monitor_stopped(p, pid, WIFSTOPPED(status));
            continue;
        }
        if (pid == p->companion.pid)
            companion_died(p, status);
        for (size_t i = 0; i < p->n; i++) {
            if (p->children[i].pid == pid)
                on_exit_of(p, i, status);
        }
    }
}

/* ---- signals ---- */

static void on_stop(struct pool *p, int sig)
{
    const char *name = sig == SIGINT ? "INT" : sig == SIGQUIT ? "QUIT" : "TERM";

    if (p->order->was_told != NULL)
        *p->order->was_told = true;
    if (!p->draining) {
        log_info("pool.draining", "signal=%s grace_ms=%" PRId64, name,
                 p->order->config->grace_ms);
        drain(p);
        return;
    }
    log_warn("pool.stopping_at_once", "code=LL-5016 signal=%s", name);
    for (size_t i = 0; i < p->n; i++) {
        if (p->children[i].pid != 0)
            (void)kill(p->children[i].pid, SIGKILL);
    }
}

/* The new configuration is checked as a whole before the first worker is replaced. */
static void on_reload(struct pool *p)
{
    struct config fresh;
    struct err e = {0};
    const char *key;

    if (p->order->reload == NULL || p->draining)
        return;
    if (p->order->reload(&fresh, &e) != 0) {
        log_error("pool.reload_refused", "code=LL-5017 err=%s", LOG_TEXT(e.msg));
        return;
    }
    key = config_needs_restart(p->order->config, &fresh);
    if (key != NULL) {
        log_error("pool.reload_refused",
                  "code=LL-5017 err=\"%s cannot change while the pool runs\"", key);
        return;
    }
    *p->order->config = fresh;
    for (size_t i = 0; i < p->n; i++) {
        p->children[i].replacing = p->children[i].pid != 0;
        p->children[i].finished = false;
    }
    if (p->companion.pid != 0) /* another one comes, with the new settings */
        (void)kill(p->companion.pid, SIGTERM);
    log_info("pool.reloaded", "workers=%zu", p->n);
}

/* One worker at a time, when those that were replaced have their connection. */
static void replace_next(struct pool *p)
{
    size_t next = p->n;

    for (size_t i = 0; i < p->n; i++) {
        const struct child *child = &p->children[i];

        if (child->replacing && child->pid != 0) {
            next = next < p->n ? next : i;
            if (child->kill_at_ms != 0)
                return;
        } else if (!child->finished && !child->waits && !p->shared->slots[i].moves_on &&
                   (child->pid == 0 || p->shared->slots[i].state < SLOT_CONNECTED)) {
            return;
        }
    }
    if (next < p->n)
        child_stop(p, &p->children[next]);
}

static void handle_signals(struct pool *p)
{
    static const struct timespec tick = {0, TICK_MS * 1000000L};
    int sig = sigtimedwait(&p->signals, NULL, &tick);

    if (sig == SIGTERM || sig == SIGINT || sig == SIGQUIT)
        on_stop(p, sig);
    else if (sig == SIGHUP)
        on_reload(p);
    reap(p);
}

/* ---- life ---- */

static bool is_over(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->children[i].pid != 0 || !(p->children[i].finished || p->draining))
            return false;
    }
    return true;
}

static void name_pool(struct shared *shared)
{
    unsigned char raw[5] = {0};

    (void)!getrandom(raw, sizeof raw, 0);
    (void)snprintf(shared->name, sizeof shared->name, "%02x%02x%02x%02x%02x", raw[0],
                   raw[1], raw[2], raw[3], raw[4]);
    if (gethostname(shared->host, sizeof shared->host - 1) != 0)
        (void)snprintf(shared->host, sizeof shared->host, "unknown");
}

static void block_signals(struct pool *p)
{
    (void)sigemptyset(&p->signals);
    (void)sigaddset(&p->signals, SIGTERM);
    (void)sigaddset(&p->signals, SIGINT);
    (void)sigaddset(&p->signals, SIGQUIT);
    (void)sigaddset(&p->signals, SIGHUP);
    (void)sigaddset(&p->signals, SIGCHLD);
    (void)signal(SIGCHLD, SIG_DFL); /* while it is ignored no child can be waited for */
    (void)sigprocmask(SIG_BLOCK, &p->signals, &p->before);
}

static bool is_work_left(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->shared->slots[i].left[0] != '\0')
            return true;
    }
    return false;
}

static enum exit_code supervise(struct pool *p)
{
    while (!is_over(p)) {
        p->shared->tick_ms = clk_ms();
        children_tend(p);
        handle_signals(p);
        replace_next(p);
        monitor_tend(p);
        service_tend(p);
        if (!p->draining && monitor_is_stuck(p)) {
            p->code = EXIT_STUCK;
            drain(p);
        }
    }
    if (p->code == EXIT_OK && is_work_left(p))
        p->code = EXIT_LEFT;
    if (monitor_end(p) > 0 && (p->code == EXIT_OK || p->code == EXIT_LEFT))
        p->code = EXIT_PARKED;
    return p->code;
}

enum exit_code pool_run(const struct pool_order *order)
{
    struct pool p = {.order = order, .owner = getpid()};

    log_context("worker=pool");
    if (!children_open(&p)) {
        log_error("pool.failed", "code=LL-9001 err=\"out of memory\"");
        companion_close(&p);
        children_close(&p);
        return EXIT_BUG;
    }
    notify_init(&p.service.notify);
    name_pool(p.shared);
    block_signals(&p);
    p.monitor.started_ms = p.monitor.progress_ms = clk_ms();
    log_info("pool.started", "name=%s workers=%zu jobs=%s locks=%s", p.shared->name,
             p.n, order->config->jobs, order->config->lock_mode);
    p.code = supervise(&p);
    companion_close(&p);
    children_close(&p);
    (void)sigprocmask(SIG_SETMASK, &p.before, NULL);
    return p.code;
}
