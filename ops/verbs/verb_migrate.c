/* migrate: compares the embedded texts with the table schema_migrations, and applies
 * the missing ones, each in one transaction with its record. */
#include "ops/verbs/verb_migrate.h"
#include "ops/cli/migrate.h"

#include <stdio.h>
#include <string.h>

#include "common/base/age.h"
#include "common/base/cells.h"
#include "common/base/clock.h"
#include "function_gen.h"
#include "migration_gen.h"
#include "ops/cells/cells_each.h"
#include "ops/cli/cli.h"

static struct values {
    bool dry_run, verbose;
    int64_t cell;
} values = {.cell = CELL_NONE};

/* The result of a call. */
struct done {
    int64_t begun_ms;
    int migrations, functions; /* applied, or to be applied */
    int64_t months;            /* made */
    char newer[MIGRATE_NAME];  /* an expansion of the schema by a newer program; "" */
};

/* ---- applying ---- */

static int record(
    struct pg *pg, const struct piece *p, const char *hash, bool first, struct err *e)
{
    struct pg_param params[] = {pg_text(p->kind), pg_text(p->name), pg_text(hash)};

    if (first && (pg_exec(pg, SQL_MIGRATE_CREATE_TABLE, NULL, 0, NULL, e) != 0 ||
                  pg_exec(pg, SQL_MIGRATE_COMMENT_TABLE, NULL, 0, NULL, e) != 0))
        return (int)e->code;
    return pg_exec(pg, SQL_MIGRATE_RECORD_APPLIED, params, 3, NULL, e);
}

/* Adds advice to errors that an operator can repair. */
static int explain(const struct piece *p, struct err *e)
{
    if (strcmp(e->sqlstate, "42501") == 0)
        (void)err_wrap(e,
                       "this role may not change the schema; migrate as the owner of "
                       "the database");
    if (strcmp(e->sqlstate, "42P06") == 0)
        (void)err_set(e, ERR_REFUSED,
                      "LL-3113 the database has a schema of this name which ledgerlock "
                      "did not make, or a restore did not finish: drop it if nobody "
                      "needs it, or name another one in postgres.schema");
    if (strcmp(e->sqlstate, "P0001") == 0)
        e->code = ERR_REFUSED; /* the migration's own message */
    return err_wrap(e, "%s %s", p->kind, p->name);
}

static int apply(struct pg *pg, const struct piece *p, bool first, struct err *e)
{
    int64_t begun_ms = clk_ms();
    char took[AGE_TEXT], hash[MIGRATE_HASH];

    if (pg_exec_text(pg, p->text, NULL, e) != 0 ||
        migrate_hash(pg, p->text, hash, e) != 0 || record(pg, p, hash, first, e) != 0 ||
        pg_commit(pg, e) != 0)
        return explain(p, e);
    cli_progress_end();
    if (values.verbose)
        (void)printf("applied %s %s (%s)\n", p->kind, p->name,
                     age_text(clk_ms() - begun_ms, took));
    (void)fflush(stdout);
    return 0;
}

/* Runs in a transaction of its own and takes the lock first, then reads the record
 * again: another process may have applied the text meanwhile. */
static int
try_once(struct pg *pg, const struct piece *p, enum piece_state *state, struct err *e)
{
    struct pg_result *before = NULL;
    char newer[MIGRATE_NAME];
    int code = pg_begin(pg, e);

    if (code == 0)
        code = pg_exec(pg, SQL_MIGRATE_LIMIT_WAITS, NULL, 0, NULL, e);
    if (code == 0)
        code = pg_exec(pg, SQL_MIGRATE_LOCK, NULL, 0, NULL, e);
    if (code == 0)
        code = migrate_read(pg, &before, e);
    if (code == 0)
        code = migrate_check_newer(before, newer, e);
    if (code == 0)
        code = migrate_compare(pg, before, p, state, e);
    if (code == 0 && *state != PIECE_APPLIED)
        code = apply(pg, p, before == NULL, e);
    pg_result_free(before);
    pg_rollback(pg);
    return code;
}

static int
bring_up(struct pg *pg, const struct piece *p, enum piece_state *state, struct err *e)
{
    int tries = 0, code;
    char what[160];

    (void)snprintf(what, sizeof what, "%s %s", p->kind, p->name);
    cli_progress("%s", what);
    do {
        code = try_once(pg, p, state, e);
    } while (cli_tries_again("migrate", what, &tries, e));
    return code;
}

/* Compares first without the lock: an up-to-date schema needs no lock. A newer schema
 * is left as it is: its functions are newer too. */
static int migrate_all(struct pg *pg, struct done *done, struct err *e)
{
    struct pg_result *applied;
    int code = migrate_read(pg, &applied, e);

    if (code == 0)
        code = migrate_check_newer(applied, done->newer, e);
    for (size_t i = 0; code == 0 && done->newer[0] == '\0' && i < migrate_piece_ct();
         i++) {
        struct piece p = migrate_piece(i);
        enum piece_state state;

        code = migrate_compare(pg, applied, &p, &state, e);
        if (code == 0 && state != PIECE_APPLIED && values.dry_run)
            (void)printf("would apply %s %s\n", p.kind, p.name);
        else if (code == 0 && state != PIECE_APPLIED)
            code = bring_up(pg, &p, &state, e);
        if (state != PIECE_APPLIED)
            *(p.kind[0] == 'm' ? &done->migrations : &done->functions) += 1;
    }
    pg_result_free(applied);
    return code;
}

/* A pool makes the months to come, too: these are for clients, should none run. */
static int make_months(struct pg *pg, int64_t *made, struct err *e)
{
    int tries = 0, code;

    cli_progress("making the months to come");
    do {
        code = pg_ask(pg, SQL_MIGRATE_MAKE_MONTHS, NULL, 0, made, e);
        if (code != 0)
            (void)err_wrap(e, "making the months to come");
    } while (cli_tries_again("migrate", "step months", &tries, e));
    cli_progress_end();
    return code;
}

/* For the first migrate: later numbers were given out. */
static int start_identities(struct pg *pg, int64_t cell, struct err *e)
{
    struct pg_param param = pg_int8(cell);

    if (pg_exec(pg, SQL_MIGRATE_START_IDENTITIES, &param, 1, NULL, e) == 0)
        return 0;
    if (strcmp(e->sqlstate, "LL003") == 0)
        e->code = ERR_REFUSED;
    return (int)e->code;
}

/* A schema that was just made has its rights from its own texts and from default
 * privileges. Without these the list of objects differs by mistake alone, which is not
 * to be hidden. */
static int may_mend(struct pg *pg, bool is_new, bool *may, struct err *e)
{
    int64_t defaults = 0;

    if (is_new && pg_ask(pg, SQL_MIGRATE_COUNT_DEFAULTS, NULL, 0, &defaults, e) != 0)
        return (int)e->code;
    *may = !is_new || defaults > 0;
    return 0;
}

/* Rights that are missing, as after a restore of a dump without them, are given again,
 * and those of default privileges are taken away; what is changed besides is for a
 * person to undo. */
static int mend(struct pg *pg, const struct done *done, struct err *e)
{
    bool is_new = (size_t)(done->migrations + done->functions) == migrate_piece_ct();
    struct err changed = {0};
    bool may = false;

    if (migrate_check_objects(pg, &changed) == 0)
        return 0;
    if (changed.code == ERR_SCHEMA && may_mend(pg, is_new, &may, e) != 0)
        return (int)e->code;
    if (!may) {
        *e = changed;
        return (int)e->code;
    }
    if (migrate_give_rights(pg, e) != 0 || migrate_check_objects(pg, e) != 0)
        return (int)e->code;
    (void)puts(is_new ? "took away what default privileges gave"
                      : "gave the roles their rights again");
    return 0;
}

/* ---- the verb ---- */

static const struct cli_flag flags[] = {
    {"dry-run", CLI_BOOL, offsetof(struct values, dry_run), 0, 0,
     "only print what would be applied"},
    {"verbose", CLI_BOOL, offsetof(struct values, verbose), 0, 0,
     "a line for each migration and function, instead of their number"},
    {"cell", CLI_INT, offsetof(struct values, cell), 0, 8191,
     "numbers of new rows begin at CELL * 2^40 + 1; for the first migrate only"},
    {0},
};

static void say(const struct done *done)
{
    char took[AGE_TEXT], months[48] = "";

    if (done->months > 0)
        (void)snprintf(months, sizeof months, "; made %lld months",
                       (long long)done->months);
    if (done->newer[0] != '\0')
        (void)printf("the schema is newer than this program (" LEDGERLOCK_VERSION
                     "), which can work with it (%s)%s\n",
                     done->newer, months);
    else if (done->migrations + done->functions == 0)
        (void)printf("schema is up to date (%d migrations, %d functions)%s\n",
                     (int)MIGRATION_COUNT, (int)FUNCTION_COUNT, months);
    else if (!values.dry_run)
        (void)printf("applied %d migrations and %d functions%s (%s)\n",
                     done->migrations, done->functions, months,
                     age_text(clk_ms() - done->begun_ms, took));
}

/* With a cell: its number, or what --cell says; the same database again needs neither.
 */
static int64_t cell_of(const struct config *c)
{
    return c->cell != CELL_NONE ? c->cell : values.cell;
}

static int
migrate(const struct config *c, struct pg *pg, struct done *done, struct err *e)
{
    if (migrate_check_database(pg, false, e) != 0 || migrate_check_prefix(pg, e) != 0 ||
        migrate_all(pg, done, e) != 0)
        return (int)e->code;
    if (values.dry_run)
        return 0;
    if (cell_of(c) != CELL_NONE && start_identities(pg, cell_of(c), e) != 0)
        return (int)e->code;
    if (done->newer[0] == '\0' && mend(pg, done, e) != 0)
        return (int)e->code;
    return make_months(pg, &done->months, e);
}

int migrate_end_numbers(struct pg *coordinator, struct err *e)
{
    struct pg_result *res = NULL;

    if (pg_exec(coordinator, SQL_CELLS_END_NUMBERS, NULL, 0, &res, e) == 0 &&
        pg_get_text(res, 0, 0)[0] != '\0')
        (void)err_set(
            e, ERR_CONN,
            "LL-3118 nodes of the cluster could not be told where the cell is, "
            "run it again: %s",
            pg_get_text(res, 0, 0));
    pg_result_free(res);
    return (int)e->code;
}

/* Makes the schema a cell of the cluster, and on its node what Citus does not hand on.
 */
static int distribute(const struct config *c, struct pg *coordinator, struct err *e)
{
    struct pg *home = NULL;

    cli_progress("distributing the schema");
    if (pg_exec(coordinator, SQL_CELLS_DISTRIBUTE, NULL, 0, NULL, e) != 0 ||
        cli_connect(c, "migrate", &home, e) != 0)
        return (int)e->code;
    if (pg_exec(home, SQL_CELLS_KEEP_HERE, NULL, 0, NULL, e) == 0 &&
        start_identities(home, c->cell, e) == 0 && migrate_give_rights(home, e) == 0 &&
        migrate_check_objects(home, e) == 0)
        (void)!migrate_end_numbers(coordinator, e);
    pg_close(home);
    return (int)e->code;
}

int migrate_one(const struct config *c, struct err *e)
{
    static struct config at_coordinator;
    struct done done = {.begun_ms = clk_ms()};
    struct pg *pg;

    at_coordinator = *c;
    at_coordinator.is_distributed = false;
    if (cli_connect(&at_coordinator, "migrate", &pg, e) == 0 &&
        migrate(c, pg, &done, e) == 0 && c->is_distributed && !values.dry_run)
        (void)!distribute(c, pg, e);
    cli_progress_end();
    pg_close(pg);
    cli_name_role(c, "migrate", e);
    if (e->code == 0)
        say(&done);
    return (int)e->code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    int code;

    (void)argc;
    (void)argv;
    if (c->cells_urls[0] == '\0' && c->cells_citus[0] == '\0')
        code = migrate_one(c, &e);
    else if (values.cell != CELL_NONE)
        code = err_set(&e, ERR_INVALID,
                       "LL-1023 the list of cells says which cell a database is: leave "
                       "out --cell, or name one by --cells");
    else
        code = cells_each(c, migrate_one, &e);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_migrate = {
    .name = "migrate",
    .who = "the owner of the schema",
    .sentence = "makes the schema or brings it up to this program; safe to run again",
    .example =
        "ledgerlock migrate --postgres-url postgres://ledgerlock_migrate@db/shop",
    .flags = flags,
    .values = &values,
    .run = run,
    .all_cells = true,
};
