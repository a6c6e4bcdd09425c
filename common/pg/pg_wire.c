/* pg_wire: parameters and rows in PostgreSQL's binary form. */
#include <stdlib.h>
#include <string.h>

#include "common/pg/pg_private.h"

/* ---- parameters ---- */

struct pg_param pg_null(void)
{
    return (struct pg_param){.type = PG_NULL};
}

struct pg_param pg_int8(int64_t value)
{
    return (struct pg_param){.type = PG_INT8, .int8 = value};
}

struct pg_param pg_text(const char *text)
{
    if (text == NULL)
        return pg_null();
    return (struct pg_param){.type = PG_TEXT, .text = text};
}

struct pg_param pg_role_text(const char *text)
{
    return (struct pg_param){.type = PG_ROLE_TEXT, .text = text};
}

struct pg_param pg_int8_array(const int64_t *values, size_t n)
{
    return (struct pg_param){.type = PG_INT8_ARRAY, .array = values, .n = n};
}

struct pg_param pg_tid_array(const struct pg_tid *values, size_t n)
{
    return (struct pg_param){.type = PG_TID_ARRAY, .tids = values, .n = n};
}

enum { INT8_OID = 20, INT2_OID, INT4_OID = 23, TID_OID = 27, TIME_OID = 1184 };

enum { INT8_SIZE = 8, TID_SIZE = 6 };

enum { ARRAY_HEAD = 20, ITEM_HEAD = 4 };

/* Compilers make one or two instructions of each; they do not of a loop. */
static unsigned char *put2(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
    return p + 2;
}

static unsigned char *put4(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)(v >> 24);
    p[1] = (unsigned char)(v >> 16);
    p[2] = (unsigned char)(v >> 8);
    p[3] = (unsigned char)v;
    return p + 4;
}

static unsigned char *put8(unsigned char *p, int64_t v)
{
    p = put4(p, (uint32_t)((uint64_t)v >> 32));
    return put4(p, (uint32_t)(uint64_t)v);
}

static uint32_t get4(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t get8(const unsigned char *p)
{
    return (int64_t)((uint64_t)get4(p) << 32 | get4(p + 4));
}

/* An array on the wire: dimensions, has-null flag, element type, then per dimension its
 * length and lower bound, then every element with its length before it. */
static size_t array_size(size_t n, size_t item)
{
    return n == 0 ? 12 : ARRAY_HEAD + n * (ITEM_HEAD + item);
}

static unsigned char *put_array_head(unsigned char *p, uint32_t oid, size_t n)
{
    p = put4(p, n == 0 ? 0 : 1);
    p = put4(p, 0);
    p = put4(p, oid);
    if (n == 0)
        return p;
    p = put4(p, (uint32_t)n);
    return put4(p, 1);
}

static unsigned char *put_int8_array(unsigned char *p, const int64_t *values, size_t n)
{
    p = put_array_head(p, INT8_OID, n);
    for (size_t i = 0; i < n; i++) {
        p = put4(p, INT8_SIZE);
        p = put8(p, values[i]);
    }
    return p;
}

static unsigned char *
put_tid_array(unsigned char *p, const struct pg_tid *values, size_t n)
{
    p = put_array_head(p, TID_OID, n);
    for (size_t i = 0; i < n; i++) {
        p = put4(p, TID_SIZE);
        p = put4(p, values[i].block);
        p = put2(p, values[i].offset);
    }
    return p;
}

static size_t param_size(const struct pg *pg, const struct pg_param *p)
{
    if (p->type == PG_INT8)
        return INT8_SIZE;
    if (p->type == PG_TID_ARRAY)
        return array_size(p->n, TID_SIZE);
    if (p->type == PG_ROLE_TEXT)
        return pg_name_roles(pg->role_prefix, p->text, NULL, 0) + 1;
    return p->type == PG_INT8_ARRAY ? array_size(p->n, INT8_SIZE) : 0;
}

static int
reserve_scratch(struct pg *pg, const struct pg_param *params, size_t n, struct err *e)
{
    size_t need = 1;
    unsigned char *bigger;

    for (size_t i = 0; i < n; i++)
        need += param_size(pg, &params[i]);
    if (need <= pg->scratch_size)
        return 0;
    bigger = realloc(pg->scratch, need);
    if (bigger == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg->scratch = bigger;
    pg->scratch_size = need;
    return 0;
}

int pg_encode(struct pg *pg,
              const struct pg_param *params,
              size_t n,
              struct pg_wire *w,
              struct err *e)
{
    unsigned char *p;

    if (n > PG_MAX_PARAMS)
        return err_set(e, ERR_BUG, "LL-9004 too many parameters");
    if (reserve_scratch(pg, params, n, e) != 0)
        return (int)e->code;
    p = pg->scratch;
    for (size_t i = 0; i < n; i++) {
        const struct pg_param *param = &params[i];

        w->formats[i] = param->type != PG_TEXT && param->type != PG_ROLE_TEXT;
        w->lengths[i] = (int)param_size(pg, param);
        w->values[i] = param->type == PG_NULL ? NULL : (const char *)p;
        if (param->type == PG_TEXT)
            w->values[i] = param->text;
        else if (param->type == PG_INT8)
            p = put8(p, param->int8);
        else if (param->type == PG_ROLE_TEXT)
            p += pg_name_roles(pg->role_prefix, param->text, (char *)p,
                               (size_t)w->lengths[i]) +
                 1;
        else if (param->type == PG_INT8_ARRAY)
            p = put_int8_array(p, param->array, param->n);
        else if (param->type == PG_TID_ARRAY)
            p = put_tid_array(p, param->tids, param->n);
    }
    return 0;
}

/* ---- rows ---- */

size_t pg_rows(const struct pg_result *res)
{
    return (size_t)PQntuples(res->res);
}

size_t pg_columns(const struct pg_result *res)
{
    return (size_t)PQnfields(res->res);
}

bool pg_is_null(const struct pg_result *res, size_t row, size_t column)
{
    return PQgetisnull(res->res, (int)row, (int)column) == 1;
}

int64_t pg_get_int8(const struct pg_result *res, size_t row, size_t column)
{
    const char *value = PQgetvalue(res->res, (int)row, (int)column);
    int n = PQgetlength(res->res, (int)row, (int)column);
    uint64_t v;

    if (pg_is_null(res, row, column))
        return 0;
    if (PQfformat(res->res, (int)column) == 0)
        return strtoll(value, NULL, 10);
    v = n > 0 && ((unsigned char)value[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | (unsigned char)value[i];
    return (int64_t)v;
}

const char *pg_get_text(const struct pg_result *res, size_t row, size_t column)
{
    return PQgetvalue(res->res, (int)row, (int)column);
}

const char *pg_column_name(const struct pg_result *res, size_t column)
{
    return PQfname(res->res, (int)column);
}

bool pg_is_number(const struct pg_result *res, size_t column)
{
    Oid type = PQftype(res->res, (int)column);

    return type == INT8_OID || type == INT4_OID || type == INT2_OID;
}

void pg_result_free(struct pg_result *res)
{
    if (res == NULL)
        return;
    PQclear(res->res);
    free(res);
}

/* ---- arrays ---- */

static struct pg_array get_array(
    const struct pg_result *res, size_t row, size_t column, uint32_t oid, size_t item)
{
    const unsigned char *p =
        (const unsigned char *)PQgetvalue(res->res, (int)row, (int)column);
    size_t size = (size_t)PQgetlength(res->res, (int)row, (int)column);
    size_t n = size < ARRAY_HEAD ? 0 : get4(p + 12);

    /* a null element has no value, so the size differs */
    if (n == 0 || get4(p) != 1 || get4(p + 8) != oid || size != array_size(n, item))
        return (struct pg_array){0};
    return (struct pg_array){.n = n, .items = p + ARRAY_HEAD};
}

struct pg_array pg_get_int8s(const struct pg_result *res, size_t row, size_t column)
{
    return get_array(res, row, column, INT8_OID, INT8_SIZE);
}

struct pg_array pg_get_tids(const struct pg_result *res, size_t row, size_t column)
{
    return get_array(res, row, column, TID_OID, TID_SIZE);
}

struct pg_array pg_get_times(const struct pg_result *res, size_t row, size_t column)
{
    return get_array(res, row, column, TIME_OID, INT8_SIZE);
}

int64_t pg_int8_at(const struct pg_array *array, size_t i)
{
    if (i >= array->n)
        return 0;
    return get8(array->items + i * (ITEM_HEAD + INT8_SIZE) + ITEM_HEAD);
}

struct pg_tid pg_tid_at(const struct pg_array *array, size_t i)
{
    const unsigned char *p;

    if (i >= array->n)
        return (struct pg_tid){0, 0};
    p = array->items + i * (ITEM_HEAD + TID_SIZE) + ITEM_HEAD;
    return (struct pg_tid){get4(p), (uint16_t)(p[4] << 8 | p[5])};
}
