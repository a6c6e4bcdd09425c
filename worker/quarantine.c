/* quarantine: what is set aside, why, and an operator's way to give it back. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/cli.h"
#include "worker/jdoc.h"
#include "worker/migrate.h"

/* clang-format off */
static struct values {
    bool json;
    bool yes;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0, "print one JSON document instead of the table"},
    {"yes",  CLI_BOOL, offsetof(struct values, yes),  0, 0, "release without asking"},
    {NULL,   CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

/* ---- list ---- */

enum { KIND, REASON, PARKED_AT, ID, CRASHES };

static void print_table(const struct pg_result *parked, int64_t suspects)
{
    char item[48];

    if (pg_rows(parked) > 0)
        (void)printf("%-24s %-20s %7s  %s\n", "ITEM", "SINCE", "CRASHES", "REASON");
    for (size_t row = 0; row < pg_rows(parked); row++) {
        (void)snprintf(item, sizeof item, "%s:%" PRId64, pg_get_text(parked, row, KIND),
                       pg_get_int8(parked, row, ID));
        (void)printf(
            "%-24s %-20s %7" PRId64 "  %s\n", item, pg_get_text(parked, row, PARKED_AT),
            pg_get_int8(parked, row, CRASHES), pg_get_text(parked, row, REASON));
    }
    (void)printf("%zu set aside, %" PRId64 " suspects\n", pg_rows(parked), suspects);
}

static int print_json(const struct pg_result *parked, int64_t suspects, struct err *e)
{
    json_t *doc = json_pack("{s:[],s:I}", "parked", "suspects", (json_int_t)suspects);
    json_t *rows = json_object_get(doc, "parked");
    char item[48];
    int code = doc == NULL ? err_set(e, ERR_NOMEM, "out of memory") : 0;

    for (size_t row = 0; code == 0 && row < pg_rows(parked); row++) {
        (void)snprintf(item, sizeof item, "%s:%" PRId64, pg_get_text(parked, row, KIND),
                       pg_get_int8(parked, row, ID));
        code = jdoc_append(rows,
                           json_pack("{s:s,s:s,s:s,s:I}", "item", item, "reason",
                                     pg_get_text(parked, row, REASON), "since",
                                     pg_get_text(parked, row, PARKED_AT), "crashes",
                                     (json_int_t)pg_get_int8(parked, row, CRASHES)),
                           e);
    }
    if (code == 0) {
        (void)json_dumpf(doc, stdout, JSON_INDENT(2));
        (void)putchar('\n');
    }
    json_decref(doc);
    return code;
}

static int list(struct pg *pg, struct err *e)
{
    struct pg_result *parked, *suspects;
    int code = 0;

    if (pg_exec(pg, SQL_QUARANTINE_COUNT_SUSPECTS, NULL, 0, &suspects, e) != 0)
        return (int)e->code;
    if (pg_exec(pg, SQL_QUARANTINE_LIST_PARKED, NULL, 0, &parked, e) == 0) {
        if (values.json)
            code = print_json(parked, pg_get_int8(suspects, 0, 0), e);
        else
            print_table(parked, pg_get_int8(suspects, 0, 0));
        pg_result_free(parked);
    }
    pg_result_free(suspects);
    return code != 0 ? code : (int)e->code;
}

/* ---- release ---- */

/* "order:12" or "subscription:5". */
static int parse_item(const char *item, char kind[16], int64_t *id, struct err *e)
{
    const char *colon = strchr(item, ':');
    size_t n = colon != NULL ? (size_t)(colon - item) : 0;
    char *end = NULL;

    (void)snprintf(kind, 16, "%.*s", (int)(n < 15 ? n : 15), item);
    errno = 0;
    *id = 0;
    if (colon != NULL && isdigit((unsigned char)colon[1]) != 0) /* no blank, no sign */
        *id = strtoll(colon + 1, &end, 10);
    if ((strcmp(kind, "order") != 0 && strcmp(kind, "subscription") != 0) || *id <= 0 ||
        *end != '\0' || errno != 0)
        return err_set(e, ERR_INVALID,
                       "%s is no item; write order:12 or subscription:5", item);
    return 0;
}

static int confirm(const char *item, struct err *e)
{
    char answer[16] = "";

    if (values.yes)
        return 0;
    if (isatty(STDIN_FILENO) == 0)
        return err_set(e, ERR_INVALID,
                       "%s was set aside for a reason that may still be there; say "
                       "--yes to have it worked again",
                       item);
    (void)fprintf(stderr,
                  "Give %s back to the workers? If what stopped it is not mended, it "
                  "is set aside again. [y/N] ",
                  item);
    if (fgets(answer, sizeof answer, stdin) == NULL ||
        (answer[0] != 'y' && answer[0] != 'Y'))
        return err_set(e, ERR_INVALID, "nothing was released");
    return 0;
}

static int
resume(struct pg *pg, const char *item, const char *kind, int64_t id, struct err *e)
{
    const struct pg_param which[] = {pg_text(kind), pg_int8(id)};
    const struct pg_param incident[] = {
        pg_text(item),
        pg_int8(0),
        pg_text("operator"),
        pg_text("resumed"),
        pg_text("hand"),
        pg_null(),
        pg_text("ledgerlock quarantine release"),
        pg_int8(0),
    };
    struct pg_result *res;
    bool done;

    if (pg_exec(pg, SQL_QUARANTINE_RELEASE_ITEM, which, 2, &res, e) != 0)
        return (int)e->code;
    done = pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    if (!done)
        return err_set(e, ERR_INVALID, "%s is not set aside", item);
    return pg_exec(pg, SQL_POOL_JOURNAL_INCIDENT, incident, 8, NULL, e);
}

static int release(struct pg *pg, const char *item, struct err *e)
{
    char kind[16];
    int64_t id;

    if (parse_item(item, kind, &id, e) != 0 || confirm(item, e) != 0 ||
        pg_begin(pg, e) != 0)
        return (int)e->code;
    if (resume(pg, item, kind, id, e) != 0 || pg_commit(pg, e) != 0)
        return (int)e->code;
    (void)printf("released %s\n", item);
    return 0;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    struct pg *pg = NULL;
    bool is_list = argc == 0 || (argc == 1 && strcmp(argv[0], "list") == 0);
    int code;

    if (!is_list && (argc != 2 || strcmp(argv[0], "release") != 0))
        return cli_usage("quarantine", "either `list`, or `release ITEM`");
    code = cli_connect(c, "quarantine", &pg, &e);
    if (code == 0)
        code = migrate_check(pg, &e);
    if (code == 0)
        code = is_list ? list(pg, &e) : release(pg, argv[1], &e);
    pg_close(pg);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_quarantine = {
    .name = "quarantine",
    .sentence = "rows set aside, with reasons; `release ITEM` has one worked again",
    .example = "ledgerlock quarantine release order:12 --yes",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
};
