/* pool: work, processes and figures of the shipped pool. */
#include "labs/lab/pool.h"
#include "labs_sql_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "labs/lab/scenes.h"

enum {
    SHORT_LEASE_MS = 1000,
    LONG_LEASE_MS = 30000,
    FREE_SUBSCRIBERS = 200,
    FREE_TRIES = 5,
    BLOCK = 1000, /* numbers of one put */
    WORDS = 24
};

static int64_t blocks; /* put in the present cell */

/* ---- work ---- */

void lab_pool_put(struct lab *l, int64_t subscribers)
{
    int64_t first = ++blocks * BLOCK, half = first + BLOCK / 2;
    const struct pg_param users[] = {pg_int8(first), pg_int8(first + subscribers - 1)};
    const struct pg_param buyers[] = {pg_int8(half), pg_int8(half + subscribers - 1)};
    const struct pg_param stock[] = {pg_int8(blocks), pg_int8(subscribers / 2)};
    const struct pg_param orders[] = {pg_int8(blocks), buyers[0], buyers[1]};

    lab_do(l, SQL_LAB_PUT_USERS, users, 2);
    lab_do(l, SQL_LAB_PUT_USERS, buyers, 2);
    lab_do(l, SQL_LAB_PUT_SUBSCRIPTIONS, users, 2);
    lab_do(l, SQL_LAB_PUT_STOCK, stock, 2);
    lab_do(l, SQL_LAB_PUT_ORDERS, orders, 3);
}

/* ---- processes ---- */

void lab_find_program(const char *named, const char *name, char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    if (named != NULL)
        (void)snprintf(path, size, "%s", named);
    else if (slash != NULL)
        (void)snprintf(slash + 1, size - (size_t)(slash + 1 - path), "%s", name);
}

/* Becomes the program; its output and its log go to a file. Its settings come from the
 * command line alone. */
static void become(const struct lab *l, const char *const words[])
{
    char path[512], log[2 * LAB_PATH];
    int fd;

    lab_find_program(l->flags->program, "ledgerlock", path, sizeof path);
    (void)snprintf(log, sizeof log, "%s/pool.log", l->servers.dir);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    (void)execve(path, (char *const *)(uintptr_t)words, (char *[]){NULL});
    (void)dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
    _exit(127);
}

void lab_pool_start(struct lab *l, int seat)
{
    bool is_holder = seat == POOL_HOLDER;
    char lease[16];
    pid_t pid;
    /* clang-format off */
    const char *const words[] = {
        "ledgerlock", "run", "--once",
        "--postgres-url", is_holder ? l->to_postgres.url : l->postgres_url,
        "--postgres-durability", "any",
        "--redis-url", is_holder ? l->servers.url_proxied : l->servers.url,
        "--lock-prefix", LAB_PREFIX,
        "--lease-ms", lease,
        "--order", "any",
        "--workers", seat == POOL_FREE ? "4" : "1",
        "--billing-poll-ms", "20",
        "--orders-poll-ms", "20",
        "--clocks-apart-s", "0",
        "--log-level", "warn",
        NULL};
    /* clang-format on */

    (void)snprintf(lease, sizeof lease, "%" PRId64, l->lease_ms);
    pid = kit_fork("lab-pool");
    if (pid == 0) {
        (void)setpgid(0, 0);
        become(l, words);
    }
    l->seats[seat].pid = pid; /* by the director alone: the seat is shared */
}

void lab_pool_signal(struct lab *l, int seat, int sig)
{
    if (l->seats[seat].pid > 0)
        (void)kill(-l->seats[seat].pid, sig);
}

static void audit(struct lab *l)
{
    const char *const words[] = {"ledgerlock", "audit", "--postgres-url",
                                 l->postgres_url, NULL};
    int status = -1;
    pid_t pid = kit_fork("lab-audit");

    if (pid == 0)
        become(l, words);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        lab_fail("the audit found a broken invariant");
}

/* ---- figures ---- */

int64_t lab_pool_count(struct lab *l, enum lab_pool_count what)
{
    int64_t n[POOL_COUNTS];

    lab_ask_numbers(l, SQL_LAB_COUNT_POOL, n, POOL_COUNTS);
    return n[what];
}

void lab_pool_met(struct lab *l, const char *name, int64_t ct)
{
    struct lab_result *r = l->result;

    if (ct <= 0 || r->race_ct == LAB_RACES)
        return;
    (void)snprintf(r->races[r->race_ct].name, sizeof r->races[0].name, "%s", name);
    r->races[r->race_ct++].ct = ct;
}

/* The pool notes what it met; an answer that was asked for again and came is known to
 * the proxy alone. */
static void read_races(struct lab *l)
{
    struct pg_result *res = lab_ask(l, SQL_LAB_LIST_RACES, NULL, 0);

    for (size_t i = 0; i < pg_rows(res); i++)
        lab_pool_met(l, pg_get_text(res, i, 0), pg_get_int8(res, i, 1));
    pg_result_free(res);
    lab_pool_met(l, "busy_billing", lab_pool_count(l, POOL_BUSY_BILLING));
    lab_pool_met(l, "busy_orders", lab_pool_count(l, POOL_BUSY_ORDERS));
    lab_pool_met(l, "answers_lost",
                 proxy_count(&l->servers.to_struck, PROXY_CUTS_AFTER));
}

static void read_figures(struct lab *l, struct lab_figures *f)
{
    const struct pg_param periods = pg_int8(LAB_PERIODS);
    struct pg_result *res = lab_ask(l, SQL_LAB_READ_POOL_FIGURES, &periods, 1);

    f->twice = pg_get_int8(res, 0, 0);
    f->missed = pg_get_int8(res, 0, 1) + pg_get_int8(res, 0, 3);
    f->oversold = pg_get_int8(res, 0, 2);
    pg_result_free(res);
}

/* ---- the cell ---- */

static void run_to_end(struct lab *l)
{
    int status = -1;
    pid_t pid;

    lab_pool_start(l, POOL_FREE);
    pid = l->seats[POOL_FREE].pid;
    l->seats[POOL_FREE].pid = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        lab_fail("the pool ended with status %d", status);
}

/* Work for four workers of each job; what it added to the counts. */
static void run_freely(struct lab *l, int64_t added[POOL_COUNTS])
{
    int64_t before[POOL_COUNTS], start;

    lab_pool_put(l, FREE_SUBSCRIBERS);
    lab_ask_numbers(l, SQL_LAB_COUNT_POOL, before, POOL_COUNTS);
    start = clk_us();
    run_to_end(l);
    l->result->free_run.us = clk_us() - start;
    lab_ask_numbers(l, SQL_LAB_COUNT_POOL, added, POOL_COUNTS);
    for (int i = 0; i < POOL_COUNTS; i++)
        added[i] -= before[i];
}

/* Workers of orders must meet, which chance may deny them once. */
static void free_run(struct lab *l)
{
    struct lab_free_run *f = &l->result->free_run;
    int64_t added[POOL_COUNTS] = {0};

    run_to_end(l);
    for (int i = 0; i < FREE_TRIES && added[POOL_BUSY_ORDERS] == 0; i++)
        run_freely(l, added);
    f->periods = added[POOL_DONE];
    f->count[LAB_AWAY] = added[POOL_BUSY_BILLING] + added[POOL_BUSY_ORDERS];
    f->count[LAB_REFUSED] = added[POOL_VAIN];
    lab_pool_met(l, "free_billing", added[POOL_BUSY_BILLING]);
    lab_pool_met(l, LAB_FREE_ORDERS, added[POOL_BUSY_ORDERS]);
}

void lab_pool_show_log(const struct lab *l)
{
    char log[2 * LAB_PATH], text[4000];
    FILE *f;
    size_t n;

    (void)snprintf(log, sizeof log, "%s/pool.log", l->servers.dir);
    f = fopen(log, "r");
    if (f == NULL)
        return;
    n = fread(text, 1, sizeof text, f);
    (void)fwrite(text, 1, n, stderr);
    (void)fclose(f);
}

void lab_pool_play(struct lab *l)
{
    struct lab_result *r = l->result;
    struct lab_figures forced = {0};

    l->lease_ms = l->fault->lease_ms < LAB_LONG_MS ? SHORT_LEASE_MS : LONG_LEASE_MS;
    blocks = 0;
    lab_do(l, SQL_LAB_ALLOW_WIPE, NULL, 0);
    lab_do(l, SQL_LAB_WIPE_POOL, NULL, 0);
    l->fault->play_pool(l);
    read_figures(l, &forced);
    read_races(l);
    free_run(l);
    read_figures(l, &r->figures);
    r->forced = forced.twice;
    r->figures.stuck = lab_stuck_keys(&l->servers);
    audit(l);
}
