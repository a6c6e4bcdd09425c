/* jdoc: columns become keys, so that a new column of a query is a new field. */
#include "worker/jdoc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int jdoc_put(json_t *object, const char *key, json_t *value, struct err *e)
{
    if (json_object_set_new(object, key, value) != 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

int jdoc_append(json_t *array, json_t *value, struct err *e)
{
    if (json_array_append_new(array, value) != 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

json_t *
jdoc_object(const struct pg_result *res, size_t row, size_t first, size_t text_ct)
{
    json_t *object = json_object();

    for (size_t i = first; object != NULL && i < pg_columns(res); i++) {
        json_t *value = i < first + text_ct ? json_string(pg_get_text(res, row, i))
                                            : json_integer(pg_get_int8(res, row, i));

        if (json_object_set_new(object, pg_column_name(res, i), value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *sum(const char *digits)
{
    long long n;

    errno = 0;
    n = strtoll(digits, NULL, 10);
    return errno == ERANGE ? json_string(digits) : json_integer(n);
}

json_t *jdoc_sums(const struct pg_result *res, size_t row, size_t first, size_t n)
{
    json_t *object = json_object();

    for (size_t i = first; object != NULL && i < first + n; i++) {
        if (json_object_set_new(object, pg_column_name(res, i),
                                sum(pg_get_text(res, row, i))) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

json_t *jdoc_pairs(const struct pg_result *res)
{
    json_t *object = json_object();

    for (size_t i = 0; object != NULL && i < pg_rows(res); i++) {
        if (json_object_set_new(object, pg_get_text(res, i, 0),
                                json_integer(pg_get_int8(res, i, 1))) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

long long jdoc_int(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

const char *jdoc_digits(const json_t *doc, const char *key, char *buf, size_t size)
{
    const char *text = json_string_value(json_object_get(doc, key));

    (void)snprintf(buf, size, "%lld", jdoc_int(doc, key));
    return text != NULL ? text : buf;
}

const char *jdoc_text(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL ? text : "";
}
