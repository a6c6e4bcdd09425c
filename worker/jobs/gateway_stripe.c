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
#include <stdlib.h>
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

static bool is_of_refunds(const struct gateway_request *r)
{
    return r->list != NULL ? r->list->is_refunds : r->of[0] != '\0';
}

static const char *path(const struct gateway_request *r)
{
    return is_of_refunds(r) ? "/v1/refunds" : "/v1/payment_intents";
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
    if (is_of_refunds(r))
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
    int64_t since_s = r->list != NULL ? r->list->since_s : r->sent_s - DAY_S;
    char since[24];
    size_t n = 0;

    (void)snprintf(since, sizeof since, "%" PRId64, since_s);
    return (r->of[0] != '\0'
                ? put(query, &n, "payment_intent", r->of)
                : put(query, &n, "created[gte]", since) &&
                      (r->list != NULL || put(query, &n, "customer", r->customer))) &&
                   put(query, &n, "limit", "100") &&
                   (after[0] == '\0' || put(query, &n, "starting_after", after))
               ? n
               : 0;
}

/* The names are those of function reconcile. Texts of strangers are cut to what can be
 * ours. */
static json_t *entry_of(const struct gateway_request *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    struct gateway_answer answer = {.outcome = GATEWAY_UNKNOWN};
    char of[GATEWAY_ID], key[GATEWAY_KEY], paid[64], customer[GATEWAY_ID], state[40],
        currency[4];

    read_object(r, object, &answer);
    copy(of, sizeof of, text_of(object, "payment_intent"));
    copy(key, sizeof key, text_of(metadata, "attempt_id"));
    copy(paid, sizeof paid, text_of(metadata, "charge_id"));
    copy(customer, sizeof customer, text_of(object, "customer"));
    copy(state, sizeof state,
         answer.outcome == GATEWAY_CAPTURED ? "captured" : text_of(object, "status"));
    copy(currency, sizeof currency, text_of(object, "currency"));
    for (char *p = currency; *p != '\0'; p++)
        *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    copy(answer.reference, sizeof answer.reference, text_of(object, "id"));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "kind",
                     is_of_refunds(r) ? "refund" : "payment", "reference",
                     answer.reference, "of_reference", of, "key", key, "paid", paid,
                     "customer", customer, "there", state, "there_minor",
                     json_integer_value(json_object_get(object, "amount")), "currency",
                     currency);
}

static bool add_entry(const struct gateway_request *r, const json_t *object)
{
    struct gateway_list *list = r->list;
    json_t *entry = entry_of(r, object);
    char *text = json_dumps(entry, JSON_COMPACT), *more = NULL;
    size_t n = text != NULL ? strlen(text) : 0;

    if (n > 0)
        more = realloc(list->text, list->n + n + 2);
    if (more != NULL) {
        if (list->n > 0)
            more[list->n++] = ',';
        memcpy(more + list->n, text, n + 1);
        list->text = more;
        list->n += n;
        list->ct++;
    }
    free(text);
    json_decref(entry);
    return more != NULL;
}

/* Adds a page to the list. False: it goes on. */
static bool read_page(const struct gateway_request *r,
                      const json_t *page,
                      bool has_more,
                      struct gateway_answer *answer)
{
    size_t i;
    const json_t *object;

    json_array_foreach(page, i, object)
    {
        if (text_of(object, "id") == NULL || !add_entry(r, object)) {
            copy(answer->reason, sizeof answer->reason, "a list that cannot be read");
            return true;
        }
        copy(r->list->after, GATEWAY_ID, text_of(object, "id"));
    }
    answer->outcome = GATEWAY_CAPTURED;
    return !has_more;
}

/* The place of a request on a page; its length: it is not there. */
static size_t find(const struct gateway_request *r, const json_t *page)
{
    size_t i = 0;

    for (; i < json_array_size(page); i++) {
        const char *key =
            text_of(json_object_get(json_array_get(page, i), "metadata"), "attempt_id");

        if (key != NULL && strcmp(key, r->key) == 0)
            break;
    }
    return i;
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
    const json_t *page = json_object_get(root, "data");
    size_t ct = json_array_size(page), at = 0;
    const char *last = text_of(json_array_get(page, ct - 1), "id");
    bool has_more = json_is_true(json_object_get(root, "has_more")) && last != NULL;
    bool is_end = true;

    *answer = (struct gateway_answer){.outcome = GATEWAY_UNKNOWN};
    if (status != 200 || !json_is_array(page)) {
        (void)snprintf(answer->reason, sizeof answer->reason, "look-up: HTTP %ld",
                       status);
    } else if (r->list != NULL) {
        is_end = read_page(r, page, has_more, answer);
    } else if ((at = find(r, page)) < ct) {
        read_object(r, json_array_get(page, at), answer);
    } else {
        answer->outcome = GATEWAY_NOTHING;
        copy(answer->reason, sizeof answer->reason, "the gateway has nothing of it");
        is_end = !has_more;
    }
    if (!is_end)
        copy(after, GATEWAY_ID, last);
    json_decref(root);
    return is_end;
}

const struct gateway_form gateway_stripe = {
    .retry_header = "Stripe-Should-Retry",
    .path = path,
    .write_body = write_body,
    .read_answer = read_answer,
    .write_look = write_look,
    .read_look = read_look,
};
