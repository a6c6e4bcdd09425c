/* cell: one cell: fresh servers and tables, the schedule, the free run, the figures. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "labs/lab/actor.h"
#include "labs/lab/pool.h"
#include "labs/lab/scenes.h"
#include "labs_sql_gen.h"
#include "ops/cli/cli.h"

enum {
    FREE_WORKERS = 4,
    GIVE_UP_MS = 300,
    FREE_MS = 60000,
    MEET_MS = 5000,
    LOOK_MS = 5,
    RECONNECT_MS = 10000,
    CRASH_MS = 60000
};

/* ---- ends ---- */

static struct lab *playing; /* its servers are up */

void lab_close_cell(void)
{
    struct lab *l = playing;

    if (l == NULL)
        return;
    playing = NULL;
    for (int i = 0; i < LAB_SEATS; i++) {
        if (lab_is(l->strategy, LAB_SHIPPED))
            lab_pool_signal(l, i, SIGKILL);
        kit_kill(&l->seats[i].pid);
    }
    proxy_close(&l->to_postgres);
    lab_servers_close(&l->servers);
}

void lab_fail_of(const struct err *e)
{
    struct err told = *e;

    if (playing != NULL) {
        if (lab_is(playing->strategy, LAB_SHIPPED))
            lab_pool_show_log(playing);
        (void)err_wrap(&told, "%s, %s", playing->strategy->name, playing->fault->name);
    }
    cli_progress_end();
    lab_close_cell();
    exit((int)cli_fail(&told));
}

void lab_fail(const char *format, ...)
{
    struct err e = {.code = ERR_BUG};
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(e.msg, sizeof e.msg, format, ap);
    va_end(ap);
    lab_fail_of(&e);
}

bool lab_is_over(struct lab *l, int seat)
{
    struct lab_seat *s = &l->seats[seat];

    if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == s->pid)
        s->pid = 0;
    return s->pid == 0;
}

void lab_until_over(struct lab *l, int seat)
{
    LAB_UNTIL(lab_is_over(l, seat), "an actor or a pool does not end");
}

/* ---- the director's connection ---- */

struct pg *lab_connect(struct lab *l)
{
    const struct pg_options o = {.url = l->postgres_url,
                                 .name = "ledgerlock lab",
                                 .schema = "ledgerlock",
                                 .answer_ms = 60000};
    int64_t until = clk_ms() + RECONNECT_MS;

    while (!pg_is_usable(l->pg)) {
        struct err e = {0};

        pg_close(l->pg);
        l->pg = NULL;
        if (pg_open(&l->pg, &o, &e) == 0)
            break;
        if (playing == NULL || clk_ms() > until)
            lab_fail_of(&e);
        clk_pause_ms(50);
    }
    return l->pg;
}

struct pg_result *lab_ask(struct lab *l,
                          const struct sql_text *sql,
                          const struct pg_param *params,
                          size_t n)
{
    struct pg_result *res;
    struct err e = {0};

    if (pg_exec(lab_connect(l), sql, params, n, &res, &e) != 0)
        lab_fail_of(&e);
    return res;
}

void lab_do(struct lab *l,
            const struct sql_text *sql,
            const struct pg_param *params,
            size_t n)
{
    struct err e = {0};

    if (pg_exec(lab_connect(l), sql, params, n, NULL, &e) != 0)
        lab_fail_of(&e);
}

void lab_ask_numbers(struct lab *l, const struct sql_text *sql, int64_t *to, size_t n)
{
    struct pg_result *res = lab_ask(l, sql, NULL, 0);

    for (size_t i = 0; i < n; i++)
        to[i] = pg_get_int8(res, 0, i);
    pg_result_free(res);
}

static long read_pid(const char *path)
{
    FILE *f = fopen(path, "r");
    long pid = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%ld", &pid) != 1)
        pid = 0;
    (void)fclose(f);
    return pid;
}

void lab_crash(struct lab *l)
{
    const struct pg_options o = {
        .url = l->postgres_url, .name = "ledgerlock lab", .answer_ms = 5000};
    const char *pidfile = l->flags->postgres_pidfile;
    int64_t until = clk_ms() + CRASH_MS;
    long old = read_pid(pidfile);

    pg_close(l->pg);
    l->pg = NULL;
    if (old <= 1 || kill((pid_t)old, SIGQUIT) != 0)
        lab_fail("--postgres-pidfile %s names no server that may be ended", pidfile);
    while (kill((pid_t)old, 0) == 0 && clk_ms() < until)
        clk_pause_ms(5);
    while (l->pg == NULL) {
        struct err ignored = {0};

        if (clk_ms() > until)
            lab_fail("nobody started PostgreSQL again");
        clk_pause_ms(20);
        if (read_pid(pidfile) != old)
            (void)!pg_open(&l->pg, &o, &ignored);
    }
    pg_close(l->pg);
    l->pg = NULL;
}

/* ---- tables ---- */

static void make_tables(struct lab *l)
{
    const struct sql_text *const plain[] = {
        SQL_LAB_CREATE_ITEMS,   SQL_LAB_CREATE_CHARGES,  SQL_LAB_CREATE_SALES,
        SQL_LAB_WIPE,           SQL_LAB_DROP_CHARGE_KEY, SQL_LAB_DROP_STOCK_CHECK,
        SQL_LAB_ADD_CHARGE_KEY, SQL_LAB_ADD_STOCK_CHECK};
    const struct pg_param items[] = {pg_int8(1), pg_int8(LAB_FREE_LAST),
                                     pg_int8(LAB_PERIODS)};
    size_t n =
        sizeof plain / sizeof plain[0] - (lab_is(l->strategy, LAB_CONSTRAINED) ? 0 : 2);

    for (size_t i = 0; i < n; i++)
        lab_do(l, plain[i], NULL, 0);
    lab_do(l, SQL_LAB_PUT_ITEMS, items, 3);
}

static void read_figures(struct lab *l, struct lab_figures *f)
{
    int64_t n[3];

    lab_ask_numbers(l, SQL_LAB_READ_FIGURES, n, 3);
    f->twice = n[0];
    f->missed = n[1];
    f->oversold = n[2];
}

/* ---- actors ---- */

void lab_gather(struct lab *l, struct lab_seat *seat)
{
    for (size_t i = 0; i < LAB_COUNTS; i++)
        l->met[i] += atomic_exchange(&seat->count[i], 0);
}

/* Everything counted since the last time. */
static void take_counts(struct lab *l, int64_t to[LAB_COUNTS])
{
    for (size_t i = 0; i < LAB_SEATS; i++)
        lab_gather(l, &l->seats[i]);
    memcpy(to, l->met, sizeof l->met);
    memset(l->met, 0, sizeof l->met);
}

/* Sends four workers to the items from `first` on, until nothing is due or nothing
 * moves. */
static void
send_all(struct lab *l, int64_t first, int64_t give_up_ms, enum lab_point stop)
{
    struct lab_task t = {.first = first,
                         .last = LAB_FREE_LAST,
                         .give_up_ms = give_up_ms,
                         .stop_at = stop};

    for (size_t i = 0; i < FREE_WORKERS; i++, t.stop_at = LAB_NOWHERE)
        lab_actor_start(l, &l->seats[i], &t);
}

static void wait_for_all(struct lab *l)
{
    for (size_t i = 0; i < FREE_WORKERS; i++) {
        if (l->seats[i].pid > 0)
            (void)waitpid(l->seats[i].pid, NULL, 0);
        l->seats[i].pid = 0;
    }
}

/* Another worker has met the first one, or has nothing left to do. */
static bool has_met(struct lab *l)
{
    bool are_over = true, have_met = false;

    for (int i = 1; i < FREE_WORKERS; i++) {
        const atomic_llong *count = l->seats[i].count;

        are_over = are_over && lab_is_over(l, i);
        have_met = have_met || atomic_load(&count[LAB_AWAY]) > 0 ||
                   atomic_load(&count[LAB_REFUSED]) > 0 ||
                   atomic_load(&count[LAB_LATE]) > 0;
    }
    return have_met || are_over || lab_waits_inside(l);
}

/* Workers left to themselves, but that the first of them keeps its first item until
 * another one comes to it: on a slow machine they would not meet. */
static void free_run(struct lab *l)
{
    struct lab_free_run *f = &l->result->free_run;
    bool lets_in = lab_is(l->strategy, LAB_LETS_IN);
    int64_t start = clk_us();

    send_all(l, LAB_FREE_FIRST, FREE_MS, lets_in ? LAB_NOWHERE : LAB_AFTER_LOCK);
    for (int left_ms = MEET_MS; !lets_in && left_ms > 0 && !has_met(l);
         left_ms -= LOOK_MS)
        clk_pause_ms(LOOK_MS);
    lab_let_go(l, 0, LAB_NOWHERE);
    wait_for_all(l);
    f->us = clk_us() - start;
    f->periods = (int64_t)LAB_PERIODS * (LAB_FREE_LAST - LAB_FREE_FIRST + 1);
    take_counts(l, f->count);
}

static void play_actors(struct lab *l)
{
    struct lab_result *r = l->result;
    struct lab_figures forced = {0};
    int64_t give_up_ms = l->lease_ms < LAB_LONG_MS ? 2 * l->lease_ms : GIVE_UP_MS;

    make_tables(l);
    l->fault->play(l);
    take_counts(l, r->met);
    l->lease_ms = LAB_LONG_MS; /* a slow machine is none of the faults */
    read_figures(l, &forced);
    free_run(l);
    send_all(l, 1, give_up_ms, LAB_NOWHERE);
    wait_for_all(l);
    read_figures(l, &r->figures);
    r->forced = forced.twice;
    r->figures.stuck = lab_stuck_keys(&l->servers);
}

/* ---- the cell ---- */

static bool is_possible(const struct lab *l)
{
    if (l->fault->forget == lab_jump || lab_is(l->strategy, LAB_AGES))
        return l->flags->clock_shim != NULL;
    return l->fault->play != lab_scene_postgres || l->flags->postgres_pidfile != NULL;
}

void lab_open_cell(struct lab *l, const struct lab_needs *needs)
{
    memset(l->met, 0, sizeof l->met);
    memset(l->seats, 0, LAB_SEATS * sizeof *l->seats);
    playing = l;
    proxy_open_pg(&l->to_postgres, l->postgres_url);
    lab_servers_open(&l->servers, needs);
}

void lab_play(struct lab *l)
{
    struct lab_result *r = l->result;
    const struct lab_needs needs = {
        .program = l->flags->redis_server,
        .shim = l->flags->clock_shim,
        .three = lab_is(l->strategy, LAB_THREE_NODES),
        .aged = lab_is(l->strategy, LAB_AGES),
        .replica = l->fault->forget == lab_promote,
        .lying = l->fault->play == lab_scene_lying,
    };

    r->is_skipped = !is_possible(l);
    if (r->is_skipped)
        return;
    l->lease_ms = l->fault->lease_ms;
    lab_open_cell(l, &needs);
    if (lab_is(l->strategy, LAB_SHIPPED))
        lab_pool_play(l);
    else
        play_actors(l);
    lab_close_cell();
    lab_judge(r);
}
