/* main: the program ledgerlock-lab: refuses what is no laboratory, plays every cell
 * that was asked for, prints the tables, fails where something came out that must not.
 */
#include "labs/lab/cards.h"
#include "labs_sql_gen.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"

static struct lab_flags flags = {.redis_server = "redis-server", .seed = 1};

/* clang-format off */
static const struct cli_flag rows[] = {
    {"strategy",         CLI_TEXT, offsetof(struct lab_flags, strategy),         0, 0, "only this one"},
    {"fault",            CLI_TEXT, offsetof(struct lab_flags, fault),            0, 0, "only this one"},
    {"seed",             CLI_INT,  offsetof(struct lab_flags, seed),             1, INT32_MAX, "order of the work"},
    {"program",          CLI_FILE, offsetof(struct lab_flags, program),          0, 0, "`ledgerlock`; else the one beside this program"},
    {"redis-server",     CLI_FILE, offsetof(struct lab_flags, redis_server),     0, 0, "program that is started as Redis, again and again"},
    {"clock-shim",       CLI_FILE, offsetof(struct lab_flags, clock_shim),       0, 0, "library that moves its clock; none: that fault, and the quorum, are skipped"},
    {"postgres-pidfile", CLI_FILE, offsetof(struct lab_flags, postgres_pidfile), 0, 0, "postmaster.pid of a server that may be crashed and is started again by its keeper; none: that fault is skipped"},
    {"gateway",          CLI_FILE, offsetof(struct lab_flags, gateway),          0, 0, "`ledgerlock_gateway`; else the one beside this program"},
    {"cards",            CLI_BOOL, offsetof(struct lab_flags, cards),            0, 0, "instead: ways to ask a payment gateway for money; --strategy and --fault name these"},
    {"json",             CLI_BOOL, offsetof(struct lab_flags, json),             0, 0, "print one JSON document instead of the table"},
    {NULL,               CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

/* ---- may it work here ---- */

static int check_mark(struct lab *l, struct err *e)
{
    struct pg_result *res = lab_ask(l, SQL_LAB_READ_MARK, NULL, 0);
    bool is_marked = pg_get_int8(res, 0, 0) != 0, has_users;
    char foreign[64];

    (void)snprintf(foreign, sizeof foreign, "%s", pg_get_text(res, 0, 1));
    has_users = pg_get_int8(res, 0, 2) != 0;
    pg_result_free(res);
    if (!is_marked)
        return err_set(
            e, ERR_REFUSED,
            "lab deletes everything in its database, and this one is not "
            "marked for that; scripts/lab does it all on servers of its own, "
            "or if nothing in this one is needed, say so in it: CREATE SCHEMA "
            "ledgerlock_lab");
    if (foreign[0] != '\0')
        return err_set(e, ERR_REFUSED,
                       "schema ledgerlock_lab holds %s, which is not the "
                       "laboratory's: take a database of its own, or say that it is "
                       "not needed: DROP TABLE ledgerlock_lab.%s",
                       foreign, foreign);
    if (has_users)
        return err_set(e, ERR_REFUSED,
                       "this database has users or stock that the laboratory did not "
                       "make: take one of its own: createdb ledgerlock_lab");
    return 0;
}

/* The proxies, and the process that is crashed, are on this machine. */
static int check_place(struct pg *pg, struct err *e)
{
    if (pg_host(pg)[0] == '/')
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "the laboratory wants a PostgreSQL on this machine that listens on a "
        "Unix socket: scripts/lab starts one");
}

/* The database and the user with their names, for programs that are given nothing else.
 */
static void name_postgres(struct lab *l)
{
    struct pg_result *res = lab_ask(l, SQL_LAB_READ_NAMES, NULL, 0);

    (void)snprintf(l->postgres_url, sizeof l->postgres_url,
                   "postgresql:///%s?user=%s&host=%s&port=%s", pg_get_text(res, 0, 0),
                   pg_get_text(res, 0, 1), pg_host(l->pg), pg_port(l->pg));
    pg_result_free(res);
}

/* ---- what to play ---- */

static const char *strategy_name(size_t i)
{
    return lab_strategies[i].name;
}

static const char *fault_name(size_t i)
{
    return lab_faults[i].name;
}

/* A filter names one of them, or the error lists them all. */
static int check_name(const char *flag,
                      const char *name,
                      const char *(*of)(size_t i),
                      size_t n,
                      struct err *e)
{
    char all[256] = "";

    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(all);

        if (name == NULL || strcmp(of(i), name) == 0)
            return 0;
        (void)snprintf(all + at, sizeof all - at, "%s%s", i > 0 ? ", " : "", of(i));
    }
    return err_set(e, ERR_INVALID, "--%s \"%.40s\" is none of: %s", flag, name, all);
}

static bool is_wanted(const char *filter, const char *name)
{
    return filter == NULL || strcmp(filter, name) == 0;
}

static size_t play_all(struct lab *l, struct lab_result *results)
{
    size_t n = 0;

    for (size_t s = 0; s < LAB_STRATEGIES; s++) {
        for (size_t f = 0; f < LAB_FAULTS; f++) {
            struct lab_result *r = &results[n];

            if (!is_wanted(flags.strategy, lab_strategies[s].name) ||
                !is_wanted(flags.fault, lab_faults[f].name))
                continue;
            *r = (struct lab_result){.strategy = &lab_strategies[s],
                                     .fault = &lab_faults[f],
                                     .expected = lab_expected(s, f)};
            l->strategy = r->strategy;
            l->fault = r->fault;
            l->result = r;
            cli_progress("%s: %s", r->strategy->title, r->fault->title);
            lab_play(l);
            cli_progress_end();
            n++;
            if (!flags.json)
                lab_print_cell(r);
        }
    }
    return n;
}

static int check_names(struct err *e)
{
    if (flags.cards && flags.json)
        return err_set(e, ERR_INVALID, "--cards prints no --json");
    if (flags.cards) {
        if (check_name("strategy", flags.strategy, lab_way_name, LAB_WAYS, e) == 0)
            (void)!check_name("fault", flags.fault, lab_behaviour_name, LAB_BEHAVIOURS,
                              e);
    } else if (check_name("strategy", flags.strategy, strategy_name, LAB_STRATEGIES,
                          e) == 0) {
        (void)!check_name("fault", flags.fault, fault_name, LAB_FAULTS, e);
    }
    return (int)e->code;
}

static int open_lab(struct lab *l, const struct config *c, struct err *e)
{
    size_t size = LAB_SEATS * sizeof *l->seats + sizeof *l->progress;

    l->flags = &flags;
    (void)snprintf(l->postgres_url, sizeof l->postgres_url, "%s", c->postgres_url);
    if (check_names(e) != 0 || migrate_check(lab_connect(l), e) != 0 ||
        check_mark(l, e) != 0 || check_place(l->pg, e) != 0)
        return (int)e->code;
    name_postgres(l);
    l->seats = kit_share(size);
    l->progress = (atomic_int *)(void *)(l->seats + LAB_SEATS);
    return 0;
}

static enum exit_code
print_all(const struct lab_result *results, size_t n, struct err *e)
{
    bool is_right = true;

    if (flags.json && lab_print_json(results, n, flags.seed, e) != 0)
        return cli_fail(e);
    if (!flags.json)
        lab_print(results, n);
    for (size_t i = 0; i < n; i++)
        is_right = is_right && (results[i].is_skipped || results[i].is_right);
    return is_right ? EXIT_OK : EXIT_AUDIT;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    static struct lab_result results[LAB_STRATEGIES * LAB_FAULTS];
    static struct lab lab;
    struct err e = {0};
    enum exit_code code;

    (void)argc;
    (void)argv;
    if (open_lab(&lab, c, &e) != 0)
        code = cli_fail(&e);
    else if (flags.cards)
        code = lab_cards(&lab);
    else
        code = print_all(results, play_all(&lab, results), &e);
    pg_close(lab.pg);
    return code;
}

static const struct cli_verb verb = {
    .name = "lab",
    .sentence = "plays each way to lock under each fault and prints what came out",
    .example = "scripts/lab, which starts private servers and calls `ledgerlock-lab`",
    .flags = rows,
    .values = &flags,
    .run = run,
};

static const struct cli_verb *const verbs[] = {&verb};

static const struct cli_program program = {
    .name = "ledgerlock-lab",
    .sentence = "shows what each way to lock is worth",
    .verbs = verbs,
    .verb_ct = 1,
};

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return (int)cli_main(&program, argc, argv);
}
