/* children: shared memory, fork, stop, kill. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/pool/supervisor.h"
#include "worker/pool/visit.h"

enum { AGAIN_MS = 1000 };

int64_t pool_workers(const struct config *c, int job)
{
    return c->workers > 0 && job_is_shared(job_types[job], c) ? c->workers
                                                              : c->job_workers[job];
}

static int64_t workers_of(const struct pool *p, int job)
{
    return (p->order->jobs & 1u << job) != 0 ? pool_workers(p->order->config, job) : 0;
}

bool children_open(struct pool *p)
{
    size_t size = sizeof *p->shared, i = 0;

    for (int job = 0; job < JOB_TYPE_CT; job++)
        p->n += (size_t)workers_of(p, job);
    size += p->n * sizeof p->shared->slots[0];
    p->shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p->children = calloc(p->n, sizeof *p->children);
    if (p->shared == MAP_FAILED || p->children == NULL)
        return false;
    p->shared->cells = p->order->cells;
    p->shared->slot_ct = p->n;
    for (int job = 0; job < JOB_TYPE_CT; job++) {
        for (int64_t k = 0; k < workers_of(p, job); k++, i++) {
            p->shared->slots[i].job = job_types[job];
            p->shared->slots[i].index = k;
            p->shared->slots[i].workers = workers_of(p, job);
        }
    }
    return true;
}

void children_close(struct pool *p)
{
    if (p->shared != NULL && p->shared != MAP_FAILED)
        (void)munmap(p->shared, sizeof *p->shared + p->n * sizeof p->shared->slots[0]);
    free(p->children);
}

/* In the child it returns 0. Signals that a terminal sends to all of its processes are
 * for the supervisor alone, which tells its children by TERM. */
static pid_t fork_child(const struct pool *p, const char *title)
{
    static const int typed[] = {SIGINT, SIGQUIT, SIGHUP};
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        log_error("pool.fork_failed", "code=LL-5009 err=%s", LOG_TEXT(strerror(errno)));
    if (pid != 0)
        return pid;
    /* A child must not outlive its supervisor: told by the kernel, and asked once in
     * case the supervisor died before we told the kernel. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != p->owner)
        _exit(EXIT_BUG);
    (void)prctl(PR_SET_NAME, title);
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++)
        (void)signal(typed[i], SIG_IGN);
    return 0;
}

/* Of the worker in a slot: those of its cell. */
static const struct config *config_of(const struct pool *p, size_t i)
{
    static struct config of_cell;
    const struct slot *slot = &p->shared->slots[i];
    const struct cells *cells = p->shared->cells.list;

    if (cells->n == 0) {
        log_context("worker=%zu job=%s", i, slot->job->name);
        return p->order->config;
    }
    cells_enter(p->order->config, &cells->of[slot->cell], &of_cell);
    log_context("worker=%zu job=%s cell=%" PRId64, i, slot->job->name, of_cell.cell);
    return &of_cell;
}

static void start(struct pool *p, size_t i)
{
    struct child *child = &p->children[i];
    struct slot *slot = &p->shared->slots[i];
    char title[48];
    enum exit_code code;
    pid_t pid;

    child->waits = !visit_choose(p->shared, i, clk_ms(), &child->start_at_ms);
    if (child->waits)
        return;
    if (!slot->moves_on)
        slot->state = SLOT_STARTS;
    slot->back_ms = clk_ms();
    slot->incarnation++;
    (void)snprintf(title, sizeof title, "%s:%" PRId64, slot->job->name, slot->index);
    pid = fork_child(p, title);
    if (pid == 0) {
        (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
        code = worker_run(config_of(p, i), p->order->now, p->order->once, p->shared,
                          (int)i);
        (void)fflush(NULL);
        _exit((int)code);
    }
    child->pid = slot->pid = pid < 0 ? 0 : pid;
    child->start_at_ms = pid < 0 ? clk_ms() + RESTART_CAP_MS : 0;
    child->kill_at_ms = 0;
    child->replacing = false;
}

/* Beside the workers, and again when it died. */
static void start_companion(struct pool *p)
{
    const struct companion_order order = {
        .config = p->order->config,
        .shared = p->shared,
        .slot_ct = p->n,
        .now = p->order->now,
        .fd = p->order->companion_fd,
    };
    pid_t pid;

    p->companion.start_at_ms = clk_ms() + AGAIN_MS;
    pid = fork_child(p, "http");
    if (pid == 0) {
        log_context("worker=http");
        p->order->companion->serve(&order);
        (void)fflush(NULL);
        _exit(EXIT_OK);
    }
    p->companion.pid = pid < 0 ? 0 : pid;
}

void child_stop(struct pool *p, struct child *child)
{
    if (child->pid == 0 || child->kill_at_ms != 0)
        return;
    (void)kill(child->pid, SIGTERM);
    child->kill_at_ms = clk_ms() + p->order->config->grace_ms;
}

void children_tend(struct pool *p)
{
    if (p->order->companion_fd >= 0 && p->companion.pid == 0 &&
        clk_ms() >= p->companion.start_at_ms)
        start_companion(p);
    for (size_t i = 0; i < p->n; i++) {
        struct child *child = &p->children[i];

        if (child->pid == 0 && !child->finished && !p->draining &&
            clk_ms() >= child->start_at_ms)
            start(p, i);
        if (child->pid == 0 || child->kill_at_ms == 0 || clk_ms() < child->kill_at_ms)
            continue;
        log_warn(
            "pool.killed",
            "code=LL-5010 slot=%zu pid=%ld reason=\"did not drain within the grace\"",
            i, (long)child->pid);
        (void)kill(child->pid, SIGKILL);
        child->kill_at_ms = clk_ms() + p->order->config->grace_ms;
    }
}

void companion_died(struct pool *p, int status)
{
    bool was_told = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK;

    if (!was_told) /* by TERM to all of our processes */
        log_warn("pool.http_died", "code=LL-5011 pid=%ld %s=%d", (long)p->companion.pid,
                 WIFSIGNALED(status) ? "signal" : "exit",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    p->companion.pid = 0;
}

void companion_close(struct pool *p)
{
    int64_t deadline_ms = clk_ms() + AGAIN_MS;
    pid_t pid = p->companion.pid;

    if (p->order->companion_fd < 0)
        return;
    if (pid != 0)
        (void)kill(pid, SIGTERM);
    while (pid != 0 && waitpid(pid, NULL, WNOHANG) == 0) {
        if (clk_ms() > deadline_ms)
            (void)kill(pid, SIGKILL);
        clk_pause_ms(5);
    }
    (void)close(p->order->companion_fd);
}
