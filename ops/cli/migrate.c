/* migrate: what the table schema_migrations says beside the texts of this program, and
 * the objects of the database beside those that the texts make. */
#include "ops/cli/migrate.h"

#include <stdio.h>
#include <string.h>

#include "audit_gen.h"
#include "function_gen.h"
#include "migration_gen.h"
#include "objects_gen.h"
#include "sql_gen.h"

static const char run_it[] = "run `ledgerlock migrate`";

size_t migrate_piece_ct(void)
{
    return MIGRATION_COUNT + FUNCTION_COUNT;
}

struct piece migrate_piece(size_t i)
{
    if (i < MIGRATION_COUNT)
        return (struct piece){"migration", migration_texts[i].stem,
                              (const char *)migration_texts[i].text};
    i -= MIGRATION_COUNT;
    return (struct piece){"function", function_texts[i].stem,
                          (const char *)function_texts[i].text};
}

/* ---- what was applied ---- */

int migrate_read(struct pg *pg, struct pg_result **applied, struct err *e)
{
    enum { NONE, READABLE, CLOSED };

    struct pg_result *res;
    int64_t found;

    *applied = NULL;
    if (pg_exec(pg, SQL_MIGRATE_FIND_TABLE, NULL, 0, &res, e) != 0)
        return (int)e->code;
    found = pg_get_int8(res, 0, 0);
    if (found == CLOSED)
        (void)err_set(
            e, ERR_SCHEMA,
            "LL-3108 role %s may not use schema %s, whose owner is %s: log in "
            "as a role that may, or give the roles their rights by `ledgerlock "
            "migrate` as that owner",
            pg_get_text(res, 0, 2), pg_schema(pg), pg_get_text(res, 0, 1));
    pg_result_free(res);
    if (found != READABLE)
        return (int)e->code;
    return pg_exec(pg, SQL_MIGRATE_LIST_APPLIED, NULL, 0, applied, e);
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
    for (size_t i = 0; i < migrate_piece_ct(); i++) {
        struct piece p = migrate_piece(i);

        if (strcmp(p.kind, kind) == 0 && strcmp(p.name, name) == 0)
            return true;
    }
    return false;
}

/* A migration that programs before it can live with: "003_expand_reasons". */
static bool is_expansion(const char *kind, const char *name)
{
    return kind[0] == 'm' && strstr(name, "_expand_") != NULL;
}

int migrate_check_newer(const struct pg_result *applied,
                        char newer[MIGRATE_NAME],
                        struct err *e)
{
    const char *breaking = NULL, *of = "";

    newer[0] = '\0';
    for (size_t row = 0; applied != NULL && row < pg_rows(applied); row++) {
        const char *kind = pg_get_text(applied, row, 0);
        const char *name = pg_get_text(applied, row, 1);

        if (is_embedded(kind, name))
            continue;
        if (is_expansion(kind, name))
            (void)snprintf(newer, MIGRATE_NAME, "%s", name);
        else if (breaking == NULL || kind[0] == 'm') {
            breaking = name;
            of = kind;
        }
    }
    if (breaking == NULL || (newer[0] != '\0' && of[0] == 'f'))
        return 0;
    return err_set(e, ERR_SCHEMA,
                   "LL-3101 this program (" LEDGERLOCK_VERSION
                   ") is older than the database's schema, which has %s %s; "
                   "install the newer one",
                   of, breaking);
}

int migrate_hash(struct pg *pg,
                 const char *text,
                 char hash[MIGRATE_HASH],
                 struct err *e)
{
    const struct pg_param param = pg_text(text);
    struct pg_result *res;

    if (pg_exec(pg, SQL_MIGRATE_HASH_TEXT, &param, 1, &res, e) != 0)
        return (int)e->code;
    (void)snprintf(hash, MIGRATE_HASH, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
    return 0;
}

int migrate_compare(struct pg *pg,
                    const struct pg_result *applied,
                    const struct piece *p,
                    enum piece_state *state,
                    struct err *e)
{
    const char *recorded = recorded_hash(applied, p);
    char hash[MIGRATE_HASH];

    *state = PIECE_MISSING;
    if (recorded == NULL)
        return 0;
    if (migrate_hash(pg, p->text, hash, e) != 0)
        return (int)e->code;
    *state = strcmp(recorded, hash) == 0 ? PIECE_APPLIED : PIECE_CHANGED;
    if (*state == PIECE_APPLIED || p->kind[0] != 'm')
        return 0;
    return err_set(
        e, ERR_SCHEMA,
        "LL-3102 migration %s was edited after it was applied (SHA-256 %.8s then, "
        "%.8s now); restore its text and put the change into a new migration",
        p->name, recorded, hash);
}

/* ---- checking ---- */

/* A newer program replaces functions by ones that can be called as before. */
static int check_piece(struct pg *pg,
                       const struct pg_result *applied,
                       size_t i,
                       bool is_newer,
                       struct err *e)
{
    struct piece p = migrate_piece(i);
    enum piece_state state;

    if (migrate_compare(pg, applied, &p, &state, e) != 0)
        return (int)e->code;
    if (state == PIECE_MISSING)
        return err_set(
            e, ERR_SCHEMA,
            "LL-3103 the database's schema is older than this program (%s %s is "
            "missing); %s",
            p.kind, p.name, run_it);
    if (state == PIECE_CHANGED && !is_newer)
        return err_set(
            e, ERR_SCHEMA,
            "LL-3104 function %s in the database is not the one of this program; %s",
            p.name, run_it);
    return 0;
}

int migrate_check(struct pg *pg, struct err *e)
{
    struct pg_result *applied;
    char newer[MIGRATE_NAME] = "";
    int code;

    if (migrate_read(pg, &applied, e) != 0)
        return err_wrap(e, "checking the schema");
    code = applied != NULL
               ? migrate_check_newer(applied, newer, e)
               : err_set(e, ERR_SCHEMA, "LL-3105 the database has no schema %s; %s",
                         pg_schema(pg), run_it);
    for (size_t i = 0; code == 0 && i < migrate_piece_ct(); i++)
        code = check_piece(pg, applied, i, newer[0] != '\0', e);
    pg_result_free(applied);
    return code;
}

int migrate_read_newer(struct pg *pg, char newer[MIGRATE_NAME], struct err *e)
{
    struct pg_result *applied;
    int code = migrate_read(pg, &applied, e);

    if (code == 0)
        code = migrate_check_newer(applied, newer, e);
    pg_result_free(applied);
    return code;
}

/* ---- the objects ---- */

int migrate_objects(struct pg *pg, const char **objects, struct err *e)
{
    char newer[MIGRATE_NAME]; /* the comparison of objects finds it, too */
    int code = migrate_read_newer(pg, newer, e);

    *objects = (const char *)objects_texts[OBJECTS_OBJECTS].text;
    return code;
}

/* Of the first invariant that does not hold. */
static int find_changes(struct pg *pg, struct pg_result **changes, struct err *e)
{
    static const enum audit_id shapes[] = {AUDIT_SCHEMA_AS_BUILT,
                                           AUDIT_MONTHS_AS_BUILT};

    const char *objects;
    struct pg_param param;

    if (migrate_objects(pg, &objects, e) != 0 || pg_begin_snapshot(pg, e) != 0)
        return (int)e->code;
    param = pg_role_text(objects);
    if (pg_exec(pg, SQL_MIGRATE_EXPECT_OBJECTS, &param, 1, NULL, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        pg_result_free(*changes);
        *changes = NULL;
        if (pg_exec_text(pg, (const char *)audit_texts[shapes[i]].text, changes, e) !=
                0 ||
            pg_rows(*changes) > 0)
            break;
    }
    return (int)e->code;
}

int migrate_check_objects(struct pg *pg, struct err *e)
{
    struct pg_result *changes = NULL;

    if (find_changes(pg, &changes, e) == 0 && pg_rows(changes) > 0)
        (void)err_set(
            e, ERR_SCHEMA,
            "LL-3106 the schema was changed by hand, in %zu places; %s: %s; "
            "`ledgerlock migrate` gives rights back, `ledgerlock audit` names "
            "more",
            pg_rows(changes), pg_get_text(changes, 0, 0), pg_get_text(changes, 0, 1));
    pg_result_free(changes);
    pg_rollback(pg);
    return (int)e->code;
}
