/* payment: payment intents and refunds, as records to be written. */
#include "labs/gateway/gateway.h"

#include <string.h>

enum { DECLINES_FIRST = 2 };

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
    c->record = store_record(NOTHING, 500, c);
    return true;
}

static int status_after(void)
{
    return fault_draw(FAIL_AFTER, FAIL_AFTER) == FAIL_AFTER ? 500 : 200;
}

void payment_create(struct call *c)
{
    const char *decline;

    if (fails_before(c))
        return;
    decline = decline_of(c);
    c->record = store_record(INTENT, decline != NULL ? 402 : status_after(), c);
    if (decline != NULL)
        (void)json_object_set_new(c->record, "decline", json_string(decline));
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
    (void)json_object_set_new(c->form, "payment_intent", json_string(c->id));
    c->record = store_record(CANCEL, 200, c);
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
    c->record = store_record(REFUND, status_after(), c);
    (void)json_object_set_new(c->record, "amount", json_integer(amount));
}
