/* payment: payment intents and refunds, as records to be written. */
#define _GNU_SOURCE /* strndup */
#include "labs/gateway/gateway.h"

#include <stdlib.h>
#include <string.h>

enum { DECLINES_FIRST = 2 };

/* ---- records ---- */

json_t *record_of(enum kind kind, int status, const struct call *c)
{
    static const char *const kinds[] = {"intent", "cancel", "refund", "nothing",
                                        "clock"};

    return json_pack("{s:s, s:I, s:i, s:s*, s:I}", "kind", kinds[kind], "at",
                     (json_int_t)store_now(), "status", status, "key", c->key, "hash",
                     (json_int_t)c->hash);
}

static void keep(struct call *c, const char *name, const char *value)
{
    if (value != NULL)
        (void)json_object_set_new(c->record, name, json_string(value));
}

static void keep_number(struct call *c, const char *name, int64_t n)
{
    (void)json_object_set_new(c->record, name, json_integer(n));
}

static void keep_metadata(struct call *c)
{
    json_t *metadata = json_object(), *value;
    const char *name;

    json_object_foreach(c->form, name, value)
    {
        size_t n = strlen(name);

        if (api_begins(name, "metadata[") && n > 10 && name[n - 1] == ']') {
            char *inner = strndup(name + 9, n - 10);

            (void)json_object_set(metadata, inner, value);
            free(inner);
        }
    }
    (void)json_object_set_new(c->record, "metadata", metadata);
}

/* ---- payment intents ---- */

const char *payment_check(const struct call *c)
{
    const char *currency = call_text(c, "currency"), *confirm = call_text(c, "confirm");

    if (call_number(c, "amount") == 0)
        return "amount must be a whole number above 0.";
    if (currency == NULL || strlen(currency) != 3 ||
        strspn(currency, "abcdefghijklmnopqrstuvwxyz") != 3)
        return "currency must be three small letters.";
    if (confirm == NULL || strcmp(confirm, "true") != 0)
        return "confirm must be true: a payment_intent is charged at once here.";
    if (call_text(c, "customer") == NULL || call_text(c, "payment_method") == NULL)
        return "customer and payment_method are needed.";
    return NULL;
}

/* How often this customer was declined for this charge. */
static int declines_of(const struct call *c)
{
    const char *charge = call_text(c, "metadata[charge_id]");
    const struct entry *e =
        charge != NULL ? store_latest(store.charges, charge)
                       : store_latest(store.customers, call_text(c, "customer"));
    int n = 0;

    for (; e != NULL; e = charge != NULL ? e->before_of_charge : e->before_of_customer)
        n += e->decline != NULL;
    return n;
}

static const char *decline_of(const struct call *c)
{
    const char *customer = call_text(c, "customer");
    double above = behaviour.values[DECLINE_ABOVE];

    if (api_begins(customer, "cus_declines_as_"))
        return customer + strlen("cus_declines_as_");
    if (api_begins(customer, "cus_declines_hard"))
        return "stolen_card";
    if (api_begins(customer, "cus_declines_soft") ||
        (api_begins(customer, "cus_declines_twice_then_pays") &&
         declines_of(c) < DECLINES_FIRST) ||
        (above > 0 && (double)call_number(c, "amount") > above))
        return "insufficient_funds";
    if (fault_draw(DECLINE_HARD, DECLINE_HARD) == DECLINE_HARD)
        return "stolen_card";
    return fault_draw(DECLINE_SOFT, DECLINE_SOFT) == DECLINE_SOFT ? "insufficient_funds"
                                                                  : NULL;
}

static bool fails_before(struct call *c)
{
    if (fault_draw(FAIL_BEFORE, FAIL_BEFORE) == NO_FAULT)
        return false;
    c->record = record_of(NOTHING, 500, c);
    return true;
}

static int status_after(void)
{
    return fault_draw(FAIL_AFTER, FAIL_AFTER) == FAIL_AFTER ? 500 : 200;
}

void payment_create(struct call *c)
{
    static const char *const kept[] = {"currency", "customer", "payment_method",
                                       "description"};
    const char *decline;

    if (fails_before(c))
        return;
    decline = decline_of(c);
    c->record = record_of(INTENT, decline != NULL ? 402 : status_after(), c);
    keep_number(c, "amount", call_number(c, "amount"));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        keep(c, kept[i], call_text(c, kept[i]));
    keep(c, "decline", decline);
    keep_metadata(c);
}

/* The intent, or an answer. */
struct entry *payment_find(struct call *c, const char *id, enum kind kind)
{
    struct entry *e = store_find(id, kind);

    if (e == NULL)
        api_refuse(c, 404, "resource_missing", "There is no such object.");
    return e;
}

void payment_get(struct call *c)
{
    struct entry *e = payment_find(c, c->id, INTENT);

    if (e != NULL)
        call_answer(c, 200, store_intent_now(e));
}

/* Lines about one intent are written one after the other; another call waits. */
void payment_cancel(struct call *c)
{
    struct entry *e = payment_find(c, c->id, INTENT);

    if (e == NULL || e->is_busy)
        return;
    if (e->decline == NULL || e->is_canceled) {
        api_refuse(c, 400, "payment_intent_unexpected_state",
                   "This payment_intent can no longer be canceled.");
        return;
    }
    e->is_busy = true;
    c->busy = e;
    c->record = record_of(CANCEL, 200, c);
    keep(c, "payment_intent", c->id);
}

/* ---- refunds ---- */

const char *refund_check(const struct call *c)
{
    return call_text(c, "amount") != NULL && call_number(c, "amount") == 0
               ? "amount must be a whole number above 0."
               : NULL;
}

void refund_create(struct call *c)
{
    struct entry *e = payment_find(c, call_text(c, "payment_intent"), INTENT);
    int64_t amount = call_number(c, "amount"), left;

    if (e == NULL || e->is_busy)
        return;
    left = e->decline == NULL ? e->amount - e->refunded : 0;
    amount = amount == 0 ? left : amount;
    if (amount == 0 || amount > left) {
        api_refuse(c, 400, "charge_already_refunded",
                   "So much is not left of the payment.");
        return;
    }
    if (fails_before(c))
        return;
    e->is_busy = true;
    c->busy = e;
    c->record = record_of(REFUND, status_after(), c);
    keep_number(c, "amount", amount);
    keep(c, "payment_intent", call_text(c, "payment_intent"));
    keep_metadata(c);
}
