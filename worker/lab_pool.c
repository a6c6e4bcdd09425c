/* lab_pool: work, workers and figures of the shipped strategy. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "worker/lab_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/audit.h"
#include "worker/lab_scene.h"
#include "worker/loop.h"
#include "worker/pool.h"

enum {
    SHORT_LEASE_MS = 1000,
    LONG_LEASE_MS = 10000,
    FLOW_WORKERS = 4,
    FLOW_SUBSCRIBERS = 200,
    BLOCK = 1000 /* numbers of one put */
};

static const char now[] = "2024-01-03T12:00:00Z"; /* three days are due */

/* Of the present cell. */
static struct slot *slots;
static int64_t blocks, starts;

/* ---- work ---- */

int lab_pool_put(struct lab *l, int64_t subscribers, struct err *e)
{
    int64_t first = ++blocks * BLOCK, half = first + BLOCK / 2;
    const struct pg_param users[] = {pg_int8(first), pg_int8(first + subscribers - 1)};
    const struct pg_param buyers[] = {pg_int8(half), pg_int8(half + subscribers - 1)};
    const struct pg_param stock[] = {pg_int8(blocks), pg_int8(subscribers / 2)};
    const struct pg_param orders[] = {pg_int8(blocks), buyers[0], buyers[1]};

    if (lab_do(l, SQL_LAB_PUT_USERS, users, 2, e) != 0 ||
        lab_do(l, SQL_LAB_PUT_USERS, buyers, 2, e) != 0 ||
        lab_do(l, SQL_LAB_PUT_SUBSCRIPTIONS, users, 2, e) != 0 ||
        lab_do(l, SQL_LAB_PUT_STOCK, stock, 2, e) != 0)
        return (int)e->code;
    return lab_do(l, SQL_LAB_PUT_ORDERS, orders, 3, e);
}

int64_t lab_pool_done(struct lab *l)
{
    struct err e = {0};
    struct pg_result *res;
    int64_t n;

    if (lab_connect(l, &e) != 0 ||
        pg_exec(l->pg, SQL_LAB_COUNT_DONE, NULL, 0, &res, &e) != 0)
        return -1;
    n = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return n;
}

/* ---- workers ---- */

static struct config config_of(const struct lab *l, bool is_relayed)
{
    struct config c = *l->config;

    (void)snprintf(c.postgres_url, sizeof c.postgres_url, "%.255s",
                   is_relayed ? l->postgres_via : l->postgres_url);
    (void)snprintf(c.redis_url, sizeof c.redis_url, "%.255s",
                   is_relayed ? l->servers.redis_via : l->servers.redis_url);
    (void)snprintf(c.lock_prefix, sizeof c.lock_prefix, "lab:");
    (void)snprintf(c.lock_mode, sizeof c.lock_mode, "redis");
    c.redis_password_file[0] = '\0';
    c.redis_replicas = 0;
    c.lease_ms = l->lease_ms;
    c.poll_ms = 20;
    c.workers = FLOW_WORKERS;
    return c;
}

static void become_worker(struct lab *l, int seat)
{
    static const unsigned jobs[POOL_SEATS] = {1, 2, 3};
    struct config c = config_of(l, seat != POOL_OTHER);
    struct worker w = {
        .config = &c,
        .now = now,
        .once = true,
        .jobs = jobs[seat],
        .index = 0, /* a pool of its own: it passes over no bucket */
        .peers = 1,
        .slot = &slots[seat],
        .looked_ms = &slots[0].looked_ms,
        .swept_ms = &slots[0].swept_ms,
        .quiet = &slots[0].quiet,
        .lines = slots[0].lines,
        .endless = slots[0].endless,
        .accusals = slots[0].accusals,
    };

    log_init(LOG_ERROR, LOG_LOGFMT);
    (void)snprintf(w.pool, sizeof w.pool, "lab%" PRId64, starts);
    (void)snprintf(w.name, sizeof w.name, "lab%" PRId64 ".%d", starts, seat);
    (void)snprintf(w.host, sizeof w.host, "lab");
    _exit(loop_run(&w));
}

static pid_t fork_child(void)
{
    pid_t parent = getpid(), pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_BUG);
    }
    return pid;
}

int lab_pool_start(struct lab *l, int seat, struct err *e)
{
    pid_t pid;

    starts++;
    memset(&slots[seat], 0, sizeof slots[seat]);
    pid = fork_child();
    if (pid == 0)
        become_worker(l, seat);
    l->seats[seat].pid = pid; /* by the director alone: the seat is shared */
    return pid > 0 ? 0 : err_set(e, ERR_BUG, "cannot fork: %s", strerror(errno));
}

bool lab_pool_is_over(struct lab *l, int seat)
{
    struct lab_seat *s = &l->seats[seat];

    if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == s->pid)
        s->pid = 0;
    return s->pid == 0;
}

int64_t lab_pool_busy(const struct lab *l, int seat)
{
    (void)l;
    return slots[seat].counters.value[METRIC_busy];
}

/* ---- the flow: a pool as `run --once` makes it ---- */

static int keep_configuration(struct config *fresh, unsigned *jobs, struct err *e)
{
    (void)fresh;
    (void)jobs;
    return err_set(e, ERR_CONFIG, "the laboratory reads no configuration again");
}

static int run_pool(struct lab *l, struct err *e)
{
    int status = 0;
    pid_t pid = fork_child();

    if (pid == 0) {
        struct config c = config_of(l, false);
        struct pool_order order = {.config = &c,
                                   .now = now,
                                   .once = true,
                                   .reload = keep_configuration,
                                   .jobs = 3};

        log_init(LOG_ERROR, LOG_LOGFMT);
        _exit(pool_run(&order));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return err_set(e, ERR_BUG, "the pool ended with status %d", status);
    return 0;
}

static int work_off(struct lab *l, double *rate, struct err *e)
{
    int64_t start, before;

    if (run_pool(l, e) != 0 || lab_pool_put(l, FLOW_SUBSCRIBERS, e) != 0)
        return (int)e->code;
    before = lab_pool_done(l);
    start = clk_us();
    if (run_pool(l, e) != 0)
        return (int)e->code;
    *rate = (double)(lab_pool_done(l) - before) * 1e6 / (double)(clk_us() - start + 1);
    return 0;
}

/* ---- figures ---- */

static int read_figures(struct lab *l, struct lab_figures *f, struct err *e)
{
    const struct pg_param periods = pg_int8(LAB_PERIODS);
    struct pg_result *res;

    if (lab_connect(l, e) != 0 ||
        pg_exec(l->pg, SQL_LAB_READ_POOL_FIGURES, &periods, 1, &res, e) != 0)
        return (int)e->code;
    f->twice = pg_get_int8(res, 0, 0);
    f->missed = pg_get_int8(res, 0, 1) + pg_get_int8(res, 0, 3);
    f->oversold = pg_get_int8(res, 0, 2);
    f->lost = pg_get_int8(res, 0, 4);
    pg_result_free(res);
    return 0;
}

static void add_race(struct lab_result *r, const char *name, int64_t ct)
{
    if (ct == 0 || r->race_ct == LAB_RACES)
        return;
    (void)snprintf(r->races[r->race_ct].name, sizeof r->races[0].name, "%s", name);
    r->races[r->race_ct++].ct = ct;
}

/* The pool journals what it could not mend; an answer that was asked for again and came
 * is known to the relay alone. */
static int read_races(struct lab *l, struct lab_result *r, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(l->pg, SQL_LAB_LIST_RACES, NULL, 0, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++)
        add_race(r, pg_get_text(res, i, 0), pg_get_int8(res, i, 1));
    pg_result_free(res);
    add_race(r, "answers_lost", lab_relay_hits(&l->servers.to_redis));
    return 0;
}

/* Every invariant of the audit, not only the figures of the table. */
static int audit(struct lab *l, struct err *e)
{
    const struct audit_request request = {.now = now, .lag_s = 0};
    json_t *doc = NULL;
    bool ok;

    if (audit_gather(l->pg, &request, &doc, e) != 0)
        return (int)e->code;
    ok = json_is_true(json_object_get(doc, "ok"));
    json_decref(doc);
    return ok ? 0 : err_set(e, ERR_BUG, "the audit found a broken invariant");
}

static int play(struct lab *l, struct err *e)
{
    struct lab_figures forced = {0}, *f = &l->result->figures;

    if (lab_do(l, SQL_LAB_WIPE_POOL, NULL, 0, e) != 0 ||
        lab_do(l, SQL_LAB_RESET_EPOCH, NULL, 0, e) != 0 ||
        l->fault->play_pool(l, e) != 0 || read_figures(l, &forced, e) != 0 ||
        work_off(l, &f->rate, e) != 0 || read_figures(l, f, e) != 0 ||
        read_races(l, l->result, e) != 0)
        return (int)e->code;
    l->result->forced = forced.twice;
    f->stuck = lab_stuck_keys(&l->servers);
    return audit(l, e);
}

int lab_pool_play(struct lab *l, struct err *e)
{
    size_t size = POOL_SEATS * sizeof *slots;
    int code;

    l->lease_ms = l->fault->lease_ms < LAB_LONG_MS ? SHORT_LEASE_MS : LONG_LEASE_MS;
    blocks = 0;
    slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return err_set(e, ERR_NOMEM, "out of memory");
    code = play(l, e);
    (void)munmap(slots, size);
    return code;
}
