/* stripe_object: the parts of requests and answers that payments, refunds and lists of
 * Stripe have in common. */
#include "worker/jobs/stripe_object.h"

#include <stdio.h>
#include <string.h>

bool stripe_put(char *body, size_t *n, const char *name, const char *value)
{
    static const char hex[] = "0123456789ABCDEF";
    int len = snprintf(body + *n, GATEWAY_BODY - *n, "%s%s=", *n > 0 ? "&" : "", name);

    if (len < 0 || *n + (size_t)len >= GATEWAY_BODY)
        return false;
    *n += (size_t)len;
    for (const unsigned char *p = (const unsigned char *)value; *p != '\0'; p++) {
        bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                        (*p >= '0' && *p <= '9') || strchr("-_.", *p) != NULL;

        if (*n + 4 > GATEWAY_BODY)
            return false;
        if (is_plain) {
            body[(*n)++] = (char)*p;
        } else {
            body[(*n)++] = '%';
            body[(*n)++] = hex[*p >> 4];
            body[(*n)++] = hex[*p & 15];
        }
    }
    body[*n] = '\0';
    return true;
}

bool stripe_is_of_refunds(const struct gateway_request *r)
{
    return r->list != NULL ? r->list->is_refunds : r->of[0] != '\0';
}

void stripe_copy(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from != NULL && from[n] != '\0' && n + 1 < size; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = '\0';
}

const char *stripe_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *stripe_id(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_object(value) ? stripe_text(value, "id") : json_string_value(value);
}

/* The outcome that each status tells. A payment that waits for its customer will not be
 * made without him: nothing is taken for a card that asks for a confirmation off
 * session. A refund that is pending is on its way, and listed; a charge that is pending
 * may still fail.
 */
static const struct {
    const char *word;
    enum gateway_outcome payment, refund;
} states[] = {
    {"succeeded", GATEWAY_CAPTURED, GATEWAY_CAPTURED},
    {"pending", GATEWAY_UNKNOWN, GATEWAY_CAPTURED},
    {"requires_action", GATEWAY_DECLINED, GATEWAY_REFUSED},
    {"requires_payment_method", GATEWAY_DECLINED, GATEWAY_REFUSED},
    {"canceled", GATEWAY_DECLINED, GATEWAY_REFUSED},
    {"failed", GATEWAY_DECLINED, GATEWAY_REFUSED},
};

void stripe_read_object(const struct gateway_request *r,
                        const json_t *object,
                        struct gateway_answer *answer)
{
    const char *state = stripe_text(object, "status"), *id = stripe_text(object, "id"),
               *why = stripe_text(object, "failure_code");

    answer->outcome = GATEWAY_UNKNOWN;
    if (state == NULL || id == NULL) {
        (void)snprintf(answer->reason, sizeof answer->reason,
                       "an answer that makes no sense");
        return;
    }
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(state, states[i].word) == 0)
            answer->outcome =
                stripe_is_of_refunds(r) ? states[i].refund : states[i].payment;
    }
    stripe_copy(answer->reference, sizeof answer->reference, id);
    if (answer->outcome != GATEWAY_CAPTURED)
        stripe_copy(answer->reason, sizeof answer->reason, why != NULL ? why : state);
}
