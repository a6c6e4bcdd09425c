/* json: columns become keys, so a new column of a query becomes a new field. */
#include "worker/cli/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

json_t *
doc_object(const struct pg_result *res, size_t row, size_t first, size_t text_ct)
{
    json_t *object = json_object();

    for (size_t i = first; i < pg_columns(res); i++)
        set(&object, pg_column_name(res, i),
            i < first + text_ct ? json_string(pg_get_text(res, row, i))
                                : json_integer(pg_get_int8(res, row, i)));
    return object;
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
