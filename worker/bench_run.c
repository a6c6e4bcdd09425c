/* bench_run: the pool as `run` starts it, in a process of its own, with its slots in
 * memory that this process reads. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, wait4 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/bench.h"
#include "worker/connect.h"
#include "worker/pool.h"

enum {
    TICK_MS = 20,
    START_MS = 30000, /* until the first batch; else something is down */
    BURN_DOWN_S = 600,
    STEADY_S = 10,
};

/* The fork, its memory and its time. */
struct pool_child {
    pid_t pid;
    struct slot *slots;
    size_t n;
    int64_t seconds;
    int64_t forked_ms;
    bool told_to_stop;
};

/* Redis is asked once, so that a pool which would only wait is not started. */
static int check_redis(const struct config *c, struct err *e)
{
    struct worker w = {.config = c};
    int code = connect_locks(&w, e);

    int answer = code == 0 && w.locks != NULL ? ll_connect(w.locks) : LL_OK;

    if (connect_is_refused(answer))
        code = err_set(e, ERR_REFUSED, "%s", ll_error(w.locks));
    else if (answer != LL_OK)
        code = err_set(e, ERR_REDIS, "redis.url: %s", ll_error(w.locks));
    connect_close(&w);
    return code;
}

/* The pool's everyday lines are left out: they would stand between the figures. */
static void become_pool(const struct config *c, struct pool_order *order, pid_t owner)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != owner)
        _exit(EXIT_BUG);
    if (strcmp(c->log_level, "info") == 0)
        log_init(LOG_WARN, LOG_AUTO);
    _exit((int)pool_run(order));
}

static int start(struct pool_child *child,
                 const struct config *c,
                 const struct bench_flags *f,
                 struct err *e)
{
    struct config own = *c;
    struct pool_order order = {.config = &own, .once = !f->steady};
    pid_t owner = getpid();

    if (job_parse_list(own.jobs, &order.jobs, e) != 0 || check_redis(c, e) != 0)
        return (int)e->code;
    child->n = (size_t)own.workers;
    child->slots = mmap(NULL, (child->n + 1) * sizeof *child->slots,
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (child->slots == MAP_FAILED)
        return err_set(e, ERR_NOMEM, "out of memory");
    order.slots = child->slots;
    child->seconds = f->seconds != 0 ? f->seconds : f->steady ? STEADY_S : BURN_DOWN_S;
    child->forked_ms = clk_ms();
    (void)fflush(NULL);
    child->pid = fork();
    if (child->pid == 0)
        become_pool(c, &order, owner);
    return child->pid > 0 ? 0 : err_set(e, ERR_NOMEM, "fork: %s", strerror(errno));
}

static void add_waste(struct waste *to, const struct waste *from)
{
    to->turns += from->turns;
    to->empty += from->empty;
    to->refused += from->refused;
    to->patient += from->patient;
    to->pulled += from->pulled;
    to->vain_us += from->vain_us;
    to->paused_us += from->paused_us;
}

/* Everything that the workers have counted, as one. */
static void add_up(const struct pool_child *child, struct bench_run *run)
{
    run->counters = (struct metrics){{0}};
    run->pace = (struct pace){.first_us = 0};
    run->waste = (struct waste){.turns = 0};
    for (size_t i = 0; i < child->n; i++) {
        const struct pace *p = &child->slots[i].pace;

        metrics_add(&run->counters, &child->slots[i].counters);
        add_waste(&run->waste, &child->slots[i].waste);
        histogram_add(&run->pace.batch_us, &p->batch_us);
        if (p->first_us != 0 &&
            (run->pace.first_us == 0 || p->first_us < run->pace.first_us))
            run->pace.first_us = p->first_us;
        if (p->last_us > run->pace.last_us)
            run->pace.last_us = p->last_us;
    }
}

static bool is_time_over(const struct pool_child *child, const struct bench_run *run)
{
    if (run->pace.first_us == 0)
        return clk_ms() > child->forked_ms + START_MS;
    return clk_us() > run->pace.first_us + child->seconds * 1000000;
}

static void watch(struct pool_child *child, struct bench_run *run)
{
    const int64_t *n = run->counters.value;

    add_up(child, run);
    if (!child->told_to_stop && is_time_over(child, run)) {
        child->told_to_stop = true;
        (void)kill(child->pid, SIGTERM);
    }
    cli_progress("%" PRId64 " s: %" PRId64 " charges, %" PRId64 " orders in %" PRId64
                 " batches",
                 (clk_ms() - child->forked_ms) / 1000, n[METRIC_charged],
                 n[METRIC_fulfilled] + n[METRIC_rejected], n[METRIC_batches]);
}

static void finish(struct pool_child *child, struct bench_run *run)
{
    struct rusage used = {.ru_maxrss = 0};
    int status = 0;
    pid_t ended;

    do {
        watch(child, run);
        clk_pause_ms(TICK_MS);
        ended = wait4(child->pid, &status, WNOHANG, &used);
    } while (ended == 0 || (ended < 0 && errno == EINTR));
    add_up(child, run);
    run->cpu_us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                  used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    run->peak_kib = used.ru_maxrss;
    run->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int bench_run_pool(const struct config *c,
                   const struct bench_flags *f,
                   struct bench_run *run,
                   struct err *e)
{
    struct pool_child child = {.slots = MAP_FAILED};

    if (start(&child, c, f, e) == 0) {
        finish(&child, run);
        cli_progress_end();
        if (run->code != EXIT_OK)
            (void)err_set(e, ERR_BUG, "the pool ended with exit code %d", run->code);
        else if (run->pace.first_us == 0)
            (void)err_set(e, ERR_BUG, "the pool committed nothing within %d s",
                          START_MS / 1000);
    }
    if (child.slots != MAP_FAILED)
        (void)munmap(child.slots, (child.n + 1) * sizeof *child.slots);
    return (int)e->code;
}
