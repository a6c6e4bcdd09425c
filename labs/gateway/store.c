/* store: each line of the journal is an entry. A restart and a call that has just been
 * written change the store by the same function. */
#define _GNU_SOURCE /* strdup */
#include "labs/gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct store store;

static const char *const kinds[] = {"intent", "cancel", "refund", "nothing", "clock"};
static const char *const ids[] = {"pi_3", NULL, "re_3", NULL, NULL};

int64_t store_now(void)
{
    return (int64_t)time(NULL) + store.clock_s;
}

/* ---- finding ---- */

struct entry *store_latest(const json_t *names, const char *name)
{
    const json_t *n = name != NULL ? json_object_get(names, name) : NULL;

    return n != NULL ? store.entries[json_integer_value(n)] : NULL;
}

void store_id(char id[ID_SIZE], enum kind kind, int64_t n)
{
    (void)snprintf(id, ID_SIZE, "%s%020lld", ids[kind], (long long)n);
}

struct entry *store_find(const char *id, enum kind kind)
{
    int64_t n = id != NULL && strlen(id) == 24 ? strtoll(id + 4, NULL, 10) : 0;
    char same[ID_SIZE];

    store_id(same, kind, n);
    return n > 0 && n <= store.ct && store.entries[n]->kind == kind &&
                   strcmp(same, id) == 0
               ? store.entries[n]
               : NULL;
}

/* ---- changes ---- */

static struct entry *add(struct entry *e)
{
    if ((store.ct & (store.ct + 1)) == 0) {
        size_t room = 2 * (size_t)store.ct + 2;

        store.entries = realloc(store.entries, room * sizeof(struct entry *));
        if (store.entries == NULL)
            abort();
    }
    e->n = ++store.ct;
    store.entries[e->n] = e;
    return e;
}

/* The entry is the latest of this name; the one before is told. */
static struct entry *chain(json_t **names, const char *name, const struct entry *e)
{
    struct entry *before = store_latest(*names, name);

    if (*names == NULL)
        *names = json_object();
    if (name != NULL)
        (void)json_object_set_new(*names, name, json_integer(e->n));
    return before;
}

json_t *store_record(enum kind kind, int status, const struct call *c)
{
    return json_pack("{s:s, s:I, s:i, s:s*, s:I, s:I, s:O}", "kind", kinds[kind], "at",
                     (json_int_t)store_now(), "status", status, "key", c->key, "hash",
                     (json_int_t)c->hash, "amount",
                     (json_int_t)call_number(c, "amount"), "form", c->form);
}

struct entry *store_apply(json_t *record, const char *line)
{
    struct entry *e = calloc(1, sizeof *e);
    const char *kind = "", *key = NULL, *customer = NULL, *charge = NULL, *of = NULL;
    const char *decline = NULL, *currency = "";
    json_int_t at = 0, amount = 0, hash = 0;

    if (json_unpack(record,
                    "{s:s, s:I, s:i, s?s, s:I, s:I, s?s, s:{s?s, s?s, s?s, s?s}}",
                    "kind", &kind, "at", &at, "status", &e->status, "key", &key, "hash",
                    &hash, "amount", &amount, "decline", &decline, "form",
                    "payment_intent", &of, "currency", &currency, "customer", &customer,
                    "metadata[charge_id]", &charge) != 0)
        return NULL;
    while (e->kind < KIND_CT && strcmp(kinds[e->kind], kind) != 0)
        e->kind++;
    e->of = store_find(of, INTENT);
    if (e->kind == KIND_CT ||
        ((e->kind == REFUND || e->kind == CANCEL) && e->of == NULL))
        return NULL;
    e->at = at;
    e->amount = amount;
    e->hash = hash;
    e->line = strdup(line);
    (void)snprintf(e->currency, sizeof e->currency, "%.3s", currency);
    e->decline = decline != NULL ? strdup(decline) : NULL;
    (void)add(e);
    if (e->kind == INTENT) {
        e->before_of_customer = chain(&store.customers, customer, e);
        e->before_of_charge = chain(&store.charges, charge, e);
    } else if (e->kind == REFUND) {
        e->of->refunded += e->amount;
    } else if (e->kind == CANCEL) {
        e->of->is_canceled = true;
    } else if (e->kind == CLOCK) {
        store.clock_s += e->amount;
    }
    (void)chain(&store.keys, key, e);
    return e;
}

/* ---- documents ---- */

static json_t *form_of(const struct entry *e)
{
    json_t *record = json_loads(e->line, 0, NULL);
    json_t *form = json_incref(json_object_get(record, "form"));

    json_decref(record);
    return form;
}

static json_t *metadata_of(json_t *form)
{
    json_t *metadata = json_object(), *value;
    const char *name;

    json_object_foreach(form, name, value)
    {
        size_t n = strlen(name);

        if (strncmp(name, "metadata[", 9) == 0 && n > 10 && name[n - 1] == ']')
            (void)json_object_setn(metadata, name + 9, n - 10, value);
    }
    return metadata;
}

static json_t *intent_document(const struct entry *e, bool is_canceled)
{
    json_t *form = form_of(e), *document;
    const char *status = is_canceled          ? "canceled"
                         : e->decline != NULL ? "requires_payment_method"
                                              : "succeeded";
    char id[ID_SIZE];

    store_id(id, INTENT, e->n);
    document = json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:s, s:s+, s:I, s:b, s:O?, s:O?, s:O?, s:o}", "id",
        id, "object", "payment_intent", "amount", (json_int_t)e->amount,
        "amount_received", (json_int_t)(e->decline == NULL ? e->amount : 0), "currency",
        e->currency, "status", status, "latest_charge", "ch_3", id + 4, "created",
        (json_int_t)e->at, "livemode", 0, "customer", json_object_get(form, "customer"),
        "payment_method", json_object_get(form, "payment_method"), "description",
        json_object_get(form, "description"), "metadata", metadata_of(form));
    json_decref(form);
    return document;
}

json_t *store_intent_now(const struct entry *e)
{
    return intent_document(e, e->is_canceled);
}

static json_t *refund_document(const struct entry *e)
{
    json_t *form = form_of(e), *document;
    char id[ID_SIZE], of[ID_SIZE];

    store_id(id, REFUND, e->n);
    store_id(of, INTENT, e->of->n);
    document = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s+, s:s, s:I, s:o}", "id", id,
                         "object", "refund", "amount", (json_int_t)e->amount,
                         "currency", e->of->currency, "payment_intent", of, "charge",
                         "ch_3", of + 4, "status", "succeeded", "created",
                         (json_int_t)e->at, "metadata", metadata_of(form));
    json_decref(form);
    return document;
}

json_t *store_document(const struct entry *e)
{
    if (e->kind == REFUND)
        return refund_document(e);
    if (e->kind == CLOCK)
        return json_pack("{s:I}", "now", (json_int_t)store_now());
    return e->kind == CANCEL ? intent_document(e->of, true) : intent_document(e, false);
}
