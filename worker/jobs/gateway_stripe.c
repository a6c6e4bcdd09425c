/* gateway_stripe: PaymentIntents of Stripe's API v1, confirmed at once and off session,
 * and their refunds.
 * https://docs.stripe.com/api/payment_intents, /api/refunds, /error-handling,
 * /idempotent_requests
 *
 * 402 declines. 400 and 404 say that the request is wrong, 401 and 403 that the key is:
 * they, 409 (a call with this key is under way) and 429 were not carried out. A 5xx may
 * stand behind a capture. */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "worker/jobs/gateway.h"

enum { DAY_S = 86400 };

/* Adds "name=value", percent-encoded; false: it does not fit. */
static bool put(char *body, size_t *n, const char *name, const char *value)
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

static const char *path(const struct gateway_request *r)
{
    return r->of[0] != '\0' ? "/v1/refunds" : "/v1/payment_intents";
}

/* The names that every request carries. */
static bool put_names(char *body, size_t *n, const struct gateway_request *r)
{
    return put(body, n, "metadata[charge_id]", r->paid) &&
           put(body, n, "metadata[attempt_id]", r->key);
}

static size_t write_body(const struct gateway_request *r, char body[GATEWAY_BODY])
{
    char amount[24], currency[4];
    size_t n = 0;

    (void)snprintf(amount, sizeof amount, "%" PRId64, r->amount_minor);
    if (r->of[0] != '\0')
        return put(body, &n, "payment_intent", r->of) &&
                       put(body, &n, "amount", amount) && put_names(body, &n, r)
                   ? n
                   : 0;
    for (size_t i = 0; i < sizeof currency; i++) /* capital ASCII letters */
        currency[i] = r->currency[i] != '\0' ? (char)(r->currency[i] | 0x20) : '\0';
    return put(body, &n, "amount", amount) && put(body, &n, "currency", currency) &&
                   put(body, &n, "customer", r->customer) &&
                   put(body, &n, "payment_method", r->method) &&
                   put(body, &n, "confirm", "true") &&
                   put(body, &n, "off_session", "true") && put_names(body, &n, r)
               ? n
               : 0;
}

static void copy(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from != NULL && from[n] != '\0' && n + 1 < size; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = '\0';
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* The code of an error, the more exact one first. */
static const char *code_of(const json_t *error)
{
    static const char *const names[] = {"decline_code", "code", "type"};
    const char *code = NULL;

    for (size_t i = 0; code == NULL && i < sizeof names / sizeof names[0]; i++)
        code = text_of(error, names[i]);
    return code;
}

/* A payment that waits for its customer will not be made without him: nothing is taken
 * for a card that asks for a confirmation off session. */
static void read_intent(const json_t *intent, struct gateway_answer *answer)
{
    const char *state = text_of(intent, "status"), *id = text_of(intent, "id");

    if (state != NULL && id != NULL && strcmp(state, "succeeded") == 0) {
        answer->outcome = GATEWAY_CAPTURED;
        copy(answer->reference, sizeof answer->reference, id);
    } else if (state != NULL && (strcmp(state, "requires_action") == 0 ||
                                 strcmp(state, "requires_payment_method") == 0 ||
                                 strcmp(state, "canceled") == 0)) {
        answer->outcome = GATEWAY_DECLINED;
        copy(answer->reference, sizeof answer->reference, id);
        copy(answer->reason, sizeof answer->reason, state);
    } else {
        (void)snprintf(answer->reason, sizeof answer->reason,
                       "an answer that makes no sense");
    }
}

/* A refund that is pending is on its way, and listed. */
static void read_refund(const json_t *refund, struct gateway_answer *answer)
{
    const char *state = text_of(refund, "status"), *id = text_of(refund, "id");

    if (state == NULL || id == NULL) {
        (void)snprintf(answer->reason, sizeof answer->reason,
                       "an answer that makes no sense");
        return;
    }
    copy(answer->reference, sizeof answer->reference, id);
    if (strcmp(state, "succeeded") == 0 || strcmp(state, "pending") == 0) {
        answer->outcome = GATEWAY_CAPTURED;
    } else {
        answer->outcome = GATEWAY_REFUSED;
        copy(answer->reason, sizeof answer->reason, state);
    }
}

static void read_object(const struct gateway_request *r,
                        const json_t *object,
                        struct gateway_answer *answer)
{
    if (r->of[0] != '\0')
        read_refund(object, answer);
    else
        read_intent(object, answer);
}

static void read_answer(const struct gateway_request *r,
                        long status,
                        const char *body,
                        size_t n,
                        struct gateway_answer *answer)
{
    json_error_t ignored;
    json_t *root = json_loadb(body, n, JSON_REJECT_DUPLICATES, &ignored);
    const json_t *error = json_object_get(root, "error");

    *answer = (struct gateway_answer){.outcome = GATEWAY_UNKNOWN};
    if (status == 200) {
        read_object(r, root, answer);
    } else if (status == 402 && error != NULL) {
        answer->outcome = r->of[0] != '\0' ? GATEWAY_REFUSED : GATEWAY_DECLINED;
        copy(answer->reference, sizeof answer->reference,
             text_of(json_object_get(error, "payment_intent"), "id"));
        copy(answer->reason, sizeof answer->reason, code_of(error));
    } else {
        const char *code = code_of(error);

        if ((status == 400 || status == 404) && error != NULL)
            answer->outcome = GATEWAY_REFUSED;
        else if (status == 401 || status == 403 || status == 409 || status == 429)
            answer->outcome = GATEWAY_LATER;
        (void)snprintf(answer->reason, sizeof answer->reason, "HTTP %ld", status);
        if (code != NULL) {
            size_t at = strlen(answer->reason);

            answer->reason[at++] = ' ';
            copy(answer->reason + at, sizeof answer->reason - at, code);
        }
    }
    json_decref(root);
}

/* The list tells of what was written a moment ago, which the search does not. A day is
 * left for a clock that is wrong. */
static size_t
write_look(const struct gateway_request *r, const char *after, char query[GATEWAY_BODY])
{
    char since[24];
    size_t n = 0;

    if (r->of[0] != '\0')
        return put(query, &n, "payment_intent", r->of) &&
                       put(query, &n, "limit", "100") &&
                       (after[0] == '\0' || put(query, &n, "starting_after", after))
                   ? n
                   : 0;
    (void)snprintf(since, sizeof since, "%" PRId64, r->sent_s - DAY_S);
    return put(query, &n, "customer", r->customer) && put(query, &n, "limit", "100") &&
                   put(query, &n, "created[gte]", since) &&
                   (after[0] == '\0' || put(query, &n, "starting_after", after))
               ? n
               : 0;
}

static bool read_look(const struct gateway_request *r,
                      long status,
                      const char *body,
                      size_t n,
                      char after[GATEWAY_ID],
                      struct gateway_answer *answer)
{
    json_error_t ignored;
    json_t *root = json_loadb(body, n, JSON_REJECT_DUPLICATES, &ignored);
    const json_t *list = json_object_get(root, "data");
    const char *last = text_of(json_array_get(list, json_array_size(list) - 1), "id");
    bool has_more = json_is_true(json_object_get(root, "has_more")) && last != NULL;
    size_t i = 0;

    *answer = (struct gateway_answer){.outcome = GATEWAY_UNKNOWN};
    if (status != 200 || !json_is_array(list)) {
        (void)snprintf(answer->reason, sizeof answer->reason, "look-up: HTTP %ld",
                       status);
        json_decref(root);
        return true;
    }
    for (; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        const char *key = text_of(json_object_get(object, "metadata"), "attempt_id");

        if (key != NULL && strcmp(key, r->key) == 0) {
            read_object(r, object, answer);
            break;
        }
    }
    if (i == json_array_size(list)) {
        answer->outcome = GATEWAY_NOTHING;
        copy(answer->reason, sizeof answer->reason, "the gateway has nothing of it");
        copy(after, GATEWAY_ID, last);
    }
    has_more = has_more && i == json_array_size(list);
    json_decref(root);
    return !has_more;
}

const struct gateway_form gateway_stripe = {
    .retry_header = "Stripe-Should-Retry",
    .path = path,
    .write_body = write_body,
    .read_answer = read_answer,
    .write_look = write_look,
    .read_look = read_look,
};
