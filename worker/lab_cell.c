/* lab_cell: one cell: fresh servers and tables, the schedule, the flow, the figures. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/lock/lock.h"
#include "worker/lab_actor.h"
#include "worker/lab_scene.h"

enum { FLOW_WORKERS = 4, PATIENCE_MS = 300, FLOW_MS = 60000, RECONNECT_MS = 10000 };

/* ---- the director's connection ---- */

int lab_connect(struct lab *l, struct err *e)
{
    const struct pg_options o = {
        .url = l->postgres_url, .name = "ledgerlock lab", .answer_ms = 60000};
    int64_t until = clk_ms() + RECONNECT_MS;

    if (pg_is_usable(l->pg))
        return 0;
    do {
        pg_close(l->pg);
        l->pg = NULL;
        if (pg_open(&l->pg, &o, e) == 0)
            e->code = ERR_OK;
        else
            clk_pause_ms(50);
    } while (l->pg == NULL && clk_ms() < until);
    return (int)e->code;
}

int lab_do(struct lab *l,
           enum sql_id id,
           const struct pg_param *params,
           size_t n,
           struct err *e)
{
    if (lab_connect(l, e) != 0)
        return (int)e->code;
    return pg_exec(l->pg, id, params, n, NULL, e);
}

int lab_crash(struct lab *l, struct err *e)
{
    pg_close(l->pg);
    l->pg = NULL;
    return lab_crash_postgres(&l->servers, l->postgres_url, e);
}

/* ---- tables ---- */

static int make_tables(struct lab *l, struct err *e)
{
    static const enum sql_id plain[] = {SQL_LAB_CREATE_BOXES,
                                        SQL_LAB_CREATE_CHARGES,
                                        SQL_LAB_CREATE_SALES,
                                        SQL_LAB_CREATE_EPOCHS,
                                        SQL_LAB_WIPE,
                                        SQL_LAB_RESTART_EPOCHS,
                                        SQL_LAB_DROP_CHARGE_KEY,
                                        SQL_LAB_DROP_SHELF_CHECK};
    const struct pg_param boxes[] = {pg_int8(1), pg_int8(LAB_FLOW_LAST),
                                     pg_int8(LAB_PERIODS)};

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (lab_do(l, plain[i], NULL, 0, e) != 0)
            return (int)e->code;
    }
    if (lab_is(l->strategy, LAB_GUARDED) &&
        (lab_do(l, SQL_LAB_ADD_CHARGE_KEY, NULL, 0, e) != 0 ||
         lab_do(l, SQL_LAB_ADD_SHELF_CHECK, NULL, 0, e) != 0))
        return (int)e->code;
    return lab_do(l, SQL_LAB_PUT_BOXES, boxes, 3, e);
}

static int read_figures(struct lab *l, struct lab_figures *f, struct err *e)
{
    struct pg_result *res;

    if (lab_connect(l, e) != 0 ||
        pg_exec(l->pg, SQL_LAB_READ_FIGURES, NULL, 0, &res, e) != 0)
        return (int)e->code;
    f->twice = pg_get_int8(res, 0, 0);
    f->missed = pg_get_int8(res, 0, 1);
    f->oversold = pg_get_int8(res, 0, 2);
    pg_result_free(res);
    return 0;
}

/* ---- servers ---- */

/* Our lock wants an epoch that is durable before Redis has it. */
static int install_epoch(const struct lab *l, struct err *e)
{
    const struct ll_options o = {
        .size = sizeof o, .url = l->servers.redis_url, .prefix = "lab:"};
    struct ll_client *c = NULL;
    int64_t current;
    int code = ll_open(&c, &o, NULL, 0);

    if (code == LL_OK)
        code = ll_install_epoch(c, 1, &current);
    ll_close(c);
    return code == LL_OK ? 0 : err_set(e, ERR_REDIS, "%s", ll_strerror(code));
}

static int open_servers(struct lab *l, struct err *e)
{
    struct lab_servers *s = &l->servers;
    char front[LAB_PATH];

    s->seed = (uint64_t)l->flags->seed;
    s->program = l->flags->redis_server;
    s->shim = l->fault->play == lab_scene_jumped ? l->flags->clock_shim : NULL;
    s->pidfile = l->flags->postgres_pidfile;
    if (lab_servers_open(s, l->fault->play == lab_scene_promoted, l->fault->is_lying,
                         e) != 0)
        return (int)e->code;
    (void)snprintf(front, sizeof front, "%.80s/.s.PGSQL.5432", s->dir);
    if (lab_relay_open(&s->to_postgres, front, l->postgres_sock, e) != 0)
        return (int)e->code;
    (void)snprintf(l->postgres_via, sizeof l->postgres_via, "host=%s port=5432 %s",
                   s->dir, l->postgres_names);
    return l->fault->is_lying ? 0 : install_epoch(l, e);
}

static void end_actors(struct lab *l)
{
    for (size_t i = 0; i < LAB_SEATS; i++) {
        if (l->seats[i].pid > 0) {
            (void)kill(l->seats[i].pid, SIGKILL);
            (void)waitpid(l->seats[i].pid, NULL, 0);
        }
        l->seats[i].pid = 0;
    }
}

/* ---- after the schedule ---- */

/* Four workers over the boxes first..last until nothing is due or nothing moves. */
static int
work_off(struct lab *l, int64_t first, int64_t patience_ms, double *rate, struct err *e)
{
    const struct lab_errand x = {
        .first = first, .last = LAB_FLOW_LAST, .patience_ms = patience_ms};
    int before = atomic_load(l->progress);
    int64_t start = clk_us();

    for (size_t i = 0; i < FLOW_WORKERS; i++) {
        if (lab_actor_start(l, &l->seats[i], &x, e) != 0)
            return (int)e->code;
    }
    for (size_t i = 0; i < FLOW_WORKERS; i++) {
        (void)waitpid(l->seats[i].pid, NULL, 0);
        l->seats[i].pid = 0;
    }
    *rate = (double)(atomic_load(l->progress) - before) * 1e6 /
            (double)(clk_us() - start + 1);
    return 0;
}

static int play_plain(struct lab *l, struct err *e)
{
    struct lab_figures forced = {0}, *f = &l->result->figures;
    int64_t patience_ms = l->lease_ms < LAB_LONG_MS ? 2 * l->lease_ms : PATIENCE_MS;
    double ignored;

    if (make_tables(l, e) != 0 || l->fault->play(l, e) != 0)
        return (int)e->code;
    l->lease_ms = LAB_LONG_MS; /* a slow machine is none of the faults */
    if (read_figures(l, &forced, e) != 0 ||
        work_off(l, LAB_FLOW_FIRST, FLOW_MS, &f->rate, e) != 0 ||
        work_off(l, 1, patience_ms, &ignored, e) != 0 || read_figures(l, f, e) != 0)
        return (int)e->code;
    l->result->forced = forced.twice;
    f->stuck = lab_stuck_keys(&l->servers);
    return 0;
}

static bool is_possible(const struct lab *l)
{
    if (l->fault->play == lab_scene_jumped)
        return l->flags->clock_shim != NULL;
    return l->fault->play != lab_scene_postgres || l->flags->postgres_pidfile != NULL;
}

int lab_play(struct lab *l, struct err *e)
{
    struct lab_result *r = l->result;
    int code;

    r->is_skipped = !is_possible(l);
    if (r->is_skipped)
        return 0;
    l->lease_ms = l->fault->lease_ms;
    l->thrown = 0;
    memset(l->seats, 0, LAB_SEATS * sizeof *l->seats);
    code = open_servers(l, e);
    if (code == 0)
        code =
            lab_is(l->strategy, LAB_SHIPPED) ? lab_pool_play(l, e) : play_plain(l, e);
    for (size_t i = 0; i < LAB_SEATS; i++)
        l->thrown += atomic_load(&l->seats[i].wasted);
    r->figures.lost += l->thrown;
    end_actors(l);
    lab_servers_close(&l->servers);
    if (code == 0)
        lab_judge(r);
    return code == 0 ? 0 : err_wrap(e, "%s, %s", l->strategy->name, l->fault->name);
}
