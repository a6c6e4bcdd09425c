/* audit_invariants: each file of sql/audit, and the totals, over one connection or two:
 * the second is in the snapshot of the first, and each takes the next that nobody has.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_gen.h"
#include "ops/audit/audit.h"
#include "ops/cli/json.h"
#include "ops/cli/progress.h"

enum { SENTENCE = 256 };

/* The first sentence of the head of an SQL file. */
static void read_sentence(const char *text, char sentence[SENTENCE])
{
    size_t n = 0;

    while (strncmp(text, "-- ", 3) == 0) {
        size_t len = strcspn(text, "\n");

        for (size_t i = 3; i < len && n + 2 < SENTENCE; i++) {
            sentence[n++] = text[i];
            if (text[i] == '.' && (i + 1 == len || text[i + 1] == ' ')) {
                sentence[n] = '\0';
                return;
            }
        }
        sentence[n++] = ' ';
        text += len + (text[len] == '\n');
    }
    sentence[n] = '\0';
}

static json_t *example(const struct pg_result *res, size_t row)
{
    const char *what = pg_get_text(res, row, 0);

    if (pg_columns(res) < 2 || pg_is_null(res, row, 1))
        return json_string(what);
    return json_sprintf("%s: %s", what, pg_get_text(res, row, 1));
}

/* One invariant of the document: n violations, of which the rows of the result are
 * examples; no result, none. NULL when out of memory. */
static json_t *
describe(const struct audit_text *text, int64_t n, const struct pg_result *res)
{
    json_t *examples = json_array();
    char sentence[SENTENCE];
    bool is_whole = true;

    read_sentence((const char *)text->text, sentence);
    for (size_t i = 0; res != NULL && i < pg_rows(res); i++)
        is_whole = json_array_append_new(examples, example(res, i)) == 0 && is_whole;
    if (!is_whole) {
        json_decref(examples);
        return NULL;
    }
    return json_pack("{s:s,s:s,s:b,s:I,s:o}", "name", text->stem, "sentence", sentence,
                     "holds", n == 0, "violations", (json_int_t)n, "examples",
                     examples);
}

/* Runs a statement with the query of an invariant in its place. */
static int ask(struct pg *pg,
               const struct sql_text *around,
               const struct audit_text *text,
               struct pg_result **res,
               struct err *e)
{
    static const char place[] = "TABLE invariant\n";
    const char *query = (const char *)text->text, *outer = (const char *)around->text;
    const char *gap = strstr(outer + strcspn(outer, "("), place);
    size_t size = around->len + text->len + 1;
    char *sql = malloc(size);
    int code = 0;

    if (sql == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    (void)snprintf(sql, size, "%.*s%.*s\n%s", (int)(gap - outer), outer,
                   (int)(strrchr(query, ';') - query), query, gap + sizeof place - 1);
    if (pg_exec_text(pg, sql, res, e) != 0)
        code = err_wrap(e, "%s", text->path);
    free(sql);
    return code;
}

/* The violations are counted by the server and only the first of them are read: there
 * may be millions. */
static int
add_invariant(struct pg *pg, size_t i, json_t *rows, bool *is_broken, struct err *e)
{
    const struct audit_text *text = &audit_texts[i];
    struct pg_result *res = NULL;
    int64_t n;
    int code = 0;

    cli_progress("invariant %zu of %d, %s", i + 1, (int)AUDIT_COUNT, text->stem);
    if (ask(pg, SQL_AUDIT_COUNT_VIOLATIONS, text, &res, e) != 0)
        return (int)e->code;
    n = strtoll(pg_get_text(res, 0, 0), NULL, 10);
    pg_result_free(res);
    res = NULL;
    if (n > 0) {
        if (ask(pg, SQL_AUDIT_SHOW_VIOLATIONS, text, &res, e) != 0)
            return (int)e->code;
        *is_broken = true;
    }
    if (json_array_set_new(rows, i, describe(text, n, res)) != 0)
        code = err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg_result_free(res);
    return code;
}

bool audit_is_work_left(const char *invariant)
{
    return strcmp(invariant, "nothing_due_left") == 0 ||
           strcmp(invariant, "nothing_parked") == 0;
}

/* ---- over two connections ---- */

struct side {
    struct proof *proof;
    struct pg *pg;
    bool is_broken; /* an invariant was */
    struct err e;
};

/* The totals are asked first: the longest statements are among them, and none of them
 * comes last. */
struct proof {
    json_t *invariants; /* null for each, in whose place one side puts it */
    struct totals *totals;
    const char *now;
    size_t steps; /* the totals, and the invariants behind them */
    atomic_size_t next;
    struct side *_Atomic failed; /* the first that met an error */
    struct side sides[2];
};

static void fail(struct side *s)
{
    struct proof *p = s->proof;
    struct side *nobody = NULL;

    (void)atomic_compare_exchange_strong(&p->failed, &nobody, s);
    atomic_store(&p->next, p->steps);
    pg_cancel(p->sides[s == &p->sides[0]].pg);
}

static int step(struct side *s, size_t i)
{
    struct proof *p = s->proof;
    size_t totals = p->steps - AUDIT_COUNT;

    if (i >= totals)
        return add_invariant(s->pg, i - totals, p->invariants, &s->is_broken, &s->e);
    if (i == TOTALS_TWICE)
        return 0;
    cli_progress("totals");
    return totals_ask(s->pg, i, p->now, p->totals, &s->e);
}

static void *prove(void *side)
{
    struct side *s = side;
    struct proof *p = s->proof;
    size_t i;

    while ((i = atomic_fetch_add(&p->next, 1)) < p->steps) {
        if (step(s, i) != 0) {
            fail(s);
            break;
        }
    }
    return NULL;
}

int audit_invariants(struct pg *pg,
                     struct pg *second,
                     json_t *doc,
                     struct totals *totals,
                     bool *ok,
                     struct err *e)
{
    struct proof p = {.invariants = json_array(),
                      .totals = totals,
                      .now = doc_text(doc, "now"),
                      .steps = AUDIT_COUNT + (totals != NULL ? TOTALS : 0),
                      .sides = {{.proof = &p, .pg = pg}, {.proof = &p, .pg = second}}};
    int code = doc_put(doc, "invariants", p.invariants, e);
    pthread_t thread;
    bool is_shared;

    for (size_t i = 0; code == 0 && i < AUDIT_COUNT; i++)
        code = doc_append(p.invariants, json_null(), e);
    if (code != 0)
        return code;
    is_shared =
        second != NULL && pthread_create(&thread, NULL, prove, &p.sides[1]) == 0;
    (void)prove(&p.sides[0]);
    if (is_shared)
        (void)pthread_join(thread, NULL);
    if (p.failed != NULL) {
        *e = p.failed->e;
        return (int)e->code;
    }
    *ok = !p.sides[0].is_broken && !p.sides[1].is_broken;
    return 0;
}
