/* held: a quorum's answers about one key become one row. */
#include <ledgerlock/lock_held.h>

#include "ops/cli/held.h"

#include <stdio.h>

#include "ops/cli/json.h"

enum { KEY_AND_HOLDER = 2 * RLOCK_KEY_MAX + 2 };

int held_error(struct rlock_client *locks, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "LL-4002 %s (%s)", rlock_strerror(code),
                   rlock_error(locks));
}

static void raise_to(json_t *row, const char *name, int64_t value)
{
    if (value > doc_int(row, name))
        (void)json_object_set_new(row, name, json_integer(value));
}

/* A quorum reports a key once for each server: these become one row with the highest
 * token and the longest time. */
static void collect(const struct rlock_held *held, void *arg)
{
    char name[KEY_AND_HOLDER];
    json_t *row;

    (void)snprintf(name, sizeof name, "%s %s", held->name, held->holder);
    row = json_object_get(arg, name);
    if (row == NULL) {
        row = json_pack("{s:s,s:s,s:I,s:I,s:I}", "key", held->name, "holder",
                        held->holder, "token", (json_int_t)held->token, "left_ms",
                        (json_int_t)held->left_ms, "servers", (json_int_t)1);
        (void)json_object_set_new(arg, name, row);
        return;
    }
    raise_to(row, "token", held->token);
    raise_to(row, "left_ms", held->left_ms);
    raise_to(row, "servers", doc_int(row, "servers") + 1);
}

int held_read(struct rlock_client *locks, json_t *rows, struct err *e)
{
    json_t *by_name = json_object(), *row;
    const char *name;
    int code = by_name == NULL ? RLOCK_E_NOMEM : rlock_list(locks, collect, by_name);

    json_object_foreach(by_name, name, row)
    {
        (void)json_array_append(rows, row);
    }
    json_decref(by_name);
    return code == RLOCK_OK ? 0 : held_error(locks, code, e);
}
