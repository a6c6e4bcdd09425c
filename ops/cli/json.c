/* json: columns become keys, so a new column of a query becomes a new field. */
#include "ops/cli/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cli/progress.h"
#include "worker/jobs/job.h"

int doc_put(json_t *object, const char *key, json_t *value, struct err *e)
{
    if (json_object_set_new(object, key, value) != 0)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    return 0;
}

int doc_append(json_t *array, json_t *value, struct err *e)
{
    if (json_array_append_new(array, value) != 0)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    return 0;
}

/* Takes ownership of value; *object is NULL once memory has run out. */
static void set(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

json_t *doc_row(const struct pg_result *res, size_t row, size_t first)
{
    json_t *object = json_object();

    for (size_t i = first; i < pg_columns(res); i++) {
        if (!pg_is_null(res, row, i))
            set(&object, pg_column_name(res, i),
                pg_is_number(res, i) ? json_integer(pg_get_int8(res, row, i))
                                     : json_string(pg_get_text(res, row, i)));
    }
    return object;
}

int doc_rows(json_t *doc,
             const char *key,
             struct pg *pg,
             const struct sql_text *sql,
             const struct pg_param *params,
             size_t n,
             struct err *e)
{
    struct pg_result *res = NULL;
    json_t *rows = json_object_get(doc, key);
    int code = 0;

    if (rows == NULL)
        code = doc_put(doc, key, rows = json_array(), e);
    if (code == 0)
        code = pg_exec(pg, sql, params, n, &res, e);
    for (size_t i = 0; code == 0 && i < pg_rows(res); i++)
        code = doc_append(rows, doc_row(res, i, 0), e);
    pg_result_free(res);
    return code;
}

int doc_first(json_t *doc,
              const char *key,
              struct pg *pg,
              const struct sql_text *sql,
              const struct pg_param *params,
              size_t n,
              struct err *e)
{
    struct pg_result *res;
    int code = pg_exec(pg, sql, params, n, &res, e);

    if (code == 0 && pg_rows(res) > 0)
        code = doc_put(doc, key, doc_row(res, 0, 0), e);
    pg_result_free(res);
    return code;
}

int doc_jobs(json_t *doc, struct pg *pg, const char *now, struct err *e)
{
    const struct pg_param at = pg_text(now);
    json_t *jobs = json_object();
    int code = doc_put(doc, "jobs", jobs, e);

    for (int i = 0; code == 0 && i < JOB_TYPE_CT; i++)
        code =
            doc_first(jobs, job_types[i]->name, pg, job_types[i]->backlog, &at, 1, e);
    return code;
}

int doc_read(json_t **out,
             struct pg *pg,
             const struct sql_text *sql,
             const struct pg_param *params,
             size_t n,
             struct err *e)
{
    struct pg_result *res;
    int code = pg_exec(pg, sql, params, n, &res, e);

    *out = NULL;
    if (code == 0)
        *out = pg_is_null(res, 0, 0) ? json_null()
                                     : json_loads(pg_get_text(res, 0, 0), 0, NULL);
    if (code == 0 && *out == NULL)
        code = err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg_result_free(res);
    return code;
}

static json_t *sum(const char *digits)
{
    long long n;

    errno = 0;
    n = strtoll(digits, NULL, 10);
    return errno == ERANGE ? json_string(digits) : json_integer(n);
}

json_t *doc_sums(const struct pg_result *res, size_t row, size_t first, size_t n)
{
    json_t *object = json_object();

    for (size_t i = first; i < first + n; i++)
        set(&object, pg_column_name(res, i), sum(pg_get_text(res, row, i)));
    return object;
}

json_t *doc_pairs(const struct pg_result *res)
{
    json_t *object = json_object();

    for (size_t i = 0; i < pg_rows(res); i++)
        set(&object, pg_get_text(res, i, 0), json_integer(pg_get_int8(res, i, 1)));
    return object;
}

long long doc_int(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

const char *doc_digits(const json_t *doc, const char *key, char *buf, size_t size)
{
    const char *text = json_string_value(json_object_get(doc, key));

    (void)snprintf(buf, size, "%lld", doc_int(doc, key));
    return text != NULL ? text : buf;
}

json_t *doc_string(const char *text)
{
    size_t n = strlen(text);
    json_t *value = json_stringn(text, n);

    while (value == NULL && n > 0)
        value = json_stringn(text, --n);
    return value;
}

const char *doc_text(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL ? text : "";
}

void doc_print(const json_t *doc)
{
    (void)json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    (void)putchar('\n');
}

void doc_show(const json_t *doc, bool as_json, void (*print)(const json_t *doc))
{
    cli_progress_end();
    if (as_json)
        doc_print(doc);
    else
        print(doc);
}
