/* migrate: compares the embedded texts with what schema_migrations says was applied,
 * and applies the rest, each text in one transaction with its record. */
#include "worker/migrate.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/sql_mutant.h"
#include "function_gen.h"
#include "migration_gen.h"
#include "worker/cli.h"

enum { PIECES = MIGRATION_COUNT + FUNCTION_COUNT, HASH = 65 };

static const char run_it[] = "run `ledgerlock migrate`";

/* One embedded text. */
struct piece {
    const char *kind; /* "migration" or "function", as in the table */
    const char *name;
    const char *text;
};

static bool is_migration(const struct piece *p)
{
    return p->kind[0] == 'm';
}

/* All of them in the order in which they are applied. */
static struct piece piece_at(size_t i)
{
    if (i < MIGRATION_COUNT)
        return (struct piece){"migration", migration_texts[i].stem,
                              (const char *)migration_texts[i].text};
    i -= MIGRATION_COUNT;
    return (struct piece){"function", function_texts[i].stem,
                          (const char *)function_texts[i].text};
}

/* ---- what was applied ---- */

/* *applied is NULL when nothing was ever applied. */
static int read_applied(struct pg *pg, struct pg_result **applied, struct err *e)
{
    struct pg_result *res;
    bool found;

    *applied = NULL;
    if (pg_exec(pg, SQL_MIGRATE_FIND_TABLE, NULL, 0, &res, e) != 0)
        return (int)e->code;
    found = pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    return found ? pg_exec(pg, SQL_MIGRATE_LIST_APPLIED, NULL, 0, applied, e) : 0;
}

static const char *recorded_hash(const struct pg_result *applied, const struct piece *p)
{
    for (size_t row = 0; applied != NULL && row < pg_rows(applied); row++) {
        if (strcmp(pg_get_text(applied, row, 0), p->kind) == 0 &&
            strcmp(pg_get_text(applied, row, 1), p->name) == 0)
            return pg_get_text(applied, row, 2);
    }
    return NULL;
}

static bool is_embedded(const char *kind, const char *name)
{
    for (size_t i = 0; i < PIECES; i++) {
        struct piece p = piece_at(i);

        if (strcmp(p.kind, kind) == 0 && strcmp(p.name, name) == 0)
            return true;
    }
    return false;
}

/* Something was applied that this program has never heard of. */
static int check_not_newer(const struct pg_result *applied, struct err *e)
{
    for (size_t row = 0; applied != NULL && row < pg_rows(applied); row++) {
        const char *kind = pg_get_text(applied, row, 0);
        const char *name = pg_get_text(applied, row, 1);

        if (!is_embedded(kind, name))
            return err_set(e, ERR_SCHEMA,
                           "this program (" LEDGERLOCK_VERSION
                           ") is older than the database's schema, which has %s %s; "
                           "install the newer one",
                           kind, name);
    }
    return 0;
}

static int hash_text(struct pg *pg, const char *text, char hash[HASH], struct err *e)
{
    struct pg_param param = pg_text(text);
    struct pg_result *res;

    if (pg_exec(pg, SQL_MIGRATE_HASH_TEXT, &param, 1, &res, e) != 0)
        return (int)e->code;
    (void)snprintf(hash, HASH, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
    return 0;
}

static int edited(const struct piece *p, const char *was, const char *is, struct err *e)
{
    return err_set(
        e, ERR_SCHEMA,
        "migration %s was edited after it was applied (SHA-256 %.8s then, "
        "%.8s now); restore its text and put the change into a new migration",
        p->name, was, is);
}

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

/* Says what to do about errors that a person can do something about. */
static int explain(const struct piece *p, struct err *e)
{
    if (strcmp(e->sqlstate, "42501") == 0)
        (void)err_wrap(e,
                       "this role may not change the schema; migrate as the owner of "
                       "the database");
    if (strcmp(e->sqlstate, "42P06") == 0) {
        e->code = ERR_REFUSED;
        (void)err_wrap(e, "the database has a schema of that name which ledgerlock did "
                          "not make");
    }
    if (strcmp(e->sqlstate, "P0001") == 0)
        e->code = ERR_REFUSED; /* the migration itself said why */
    return err_wrap(e, "%s %s", p->kind, p->name);
}

static int apply(struct pg *pg, const struct piece *p, bool first, struct err *e)
{
    int64_t start = clk_ms();
    char hash[HASH];

    if (pg_exec_text(pg, SQL_TEXT(p->name, p->text), NULL, e) != 0 ||
        hash_text(pg, p->text, hash, e) != 0 || record(pg, p, hash, first, e) != 0 ||
        pg_commit(pg, e) != 0)
        return explain(p, e);
    (void)printf("applied %s %s (%lld ms)\n", p->kind, p->name,
                 (long long)(clk_ms() - start));
    (void)fflush(stdout);
    return 0;
}

/* Compares one text with the record. */
static int is_missing(struct pg *pg,
                      const struct pg_result *applied,
                      const struct piece *p,
                      bool *missing,
                      struct err *e)
{
    const char *recorded = recorded_hash(applied, p);
    char hash[HASH];

    if (hash_text(pg, p->text, hash, e) != 0)
        return (int)e->code;
    *missing = recorded == NULL || strcmp(recorded, hash) != 0;
    return *missing && recorded != NULL && is_migration(p)
               ? edited(p, recorded, hash, e)
               : 0;
}

/* In a transaction of its own, under the lock, so that the record is read again when
 * nobody else can write it: who waited finds the work done. */
static int bring_up(struct pg *pg, const struct piece *p, bool *applied, struct err *e)
{
    struct pg_result *before = NULL;
    int code = pg_begin(pg, e);

    if (code == 0 && pg_exec(pg, SQL_MIGRATE_LOCK, NULL, 0, NULL, e) != 0)
        code = err_wrap(e, "waiting for another migration");
    if (code == 0)
        code = read_applied(pg, &before, e);
    if (code == 0)
        code = check_not_newer(before, e);
    if (code == 0)
        code = is_missing(pg, before, p, applied, e);
    if (code == 0 && *applied)
        code = apply(pg, p, before == NULL, e);
    pg_result_free(before);
    pg_rollback(pg);
    return code;
}

/* Looks first without the lock, so that a schema that is up to date takes none. */
static int migrate_all(struct pg *pg, bool dry_run, size_t *missing_ct, struct err *e)
{
    struct pg_result *applied;
    int code = read_applied(pg, &applied, e);

    if (code == 0)
        code = check_not_newer(applied, e);
    for (size_t i = 0; code == 0 && i < PIECES; i++) {
        struct piece p = piece_at(i);
        bool missing = false;

        code = is_missing(pg, applied, &p, &missing, e);
        if (code == 0 && missing && dry_run)
            (void)printf("would apply %s %s\n", p.kind, p.name);
        else if (code == 0 && missing)
            code = bring_up(pg, &p, &missing, e);
        *missing_ct += missing;
    }
    pg_result_free(applied);
    return code;
}

/* ---- checking ---- */

static int
check_piece(struct pg *pg, const struct pg_result *applied, size_t i, struct err *e)
{
    struct piece p = piece_at(i);
    const char *recorded = recorded_hash(applied, &p);
    char hash[HASH];

    if (recorded == NULL)
        return err_set(e, ERR_SCHEMA,
                       "the database's schema is older than this program (%s %s is "
                       "missing); %s",
                       p.kind, p.name, run_it);
    if (hash_text(pg, p.text, hash, e) != 0)
        return (int)e->code;
    if (strcmp(recorded, hash) == 0)
        return 0;
    if (is_migration(&p))
        return edited(&p, recorded, hash, e);
    return err_set(e, ERR_SCHEMA,
                   "function %s in the database is not the one of this program; %s",
                   p.name, run_it);
}

int migrate_check(struct pg *pg, struct err *e)
{
    struct pg_result *applied;
    int code;

    if (read_applied(pg, &applied, e) != 0)
        return err_wrap(e, "checking the schema");
    code = applied != NULL
               ? check_not_newer(applied, e)
               : err_set(e, ERR_SCHEMA, "the database has no ledgerlock schema; %s",
                         run_it);
    for (size_t i = 0; code == 0 && i < PIECES; i++)
        code = check_piece(pg, applied, i, e);
    pg_result_free(applied);
    return code;
}

/* ---- the verb ---- */

static struct {
    bool dry_run;
} values;

static const struct cli_flag flags[] = {
    {"dry-run", CLI_BOOL, 0, 0, 0, "only print what would be applied"},
    {0},
};

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    struct pg *pg;
    size_t missing_ct = 0;
    int code;

    (void)argc;
    (void)argv;
    if (cli_connect(c, "migrate", &pg, &e) != 0)
        return cli_fail(&e);
    code = migrate_all(pg, values.dry_run, &missing_ct, &e);
    pg_close(pg);
    if (code != 0)
        return cli_fail(&e);
    if (missing_ct == 0)
        (void)printf("schema is up to date (%d migrations, %d functions)\n",
                     (int)MIGRATION_COUNT, (int)FUNCTION_COUNT);
    return EXIT_OK;
}

const struct cli_verb verb_migrate = {
    .name = "migrate",
    .sentence = "makes the schema or brings it up to this program; safe to run again",
    .example = "ledgerlock migrate --postgres-url postgresql://owner@db/ledgerlock",
    .flags = flags,
    .values = &values,
    .run = run,
};
