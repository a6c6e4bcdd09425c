/* gateway_stripe: two forms of Stripe's API v1, and their refunds: PaymentIntents,
 * confirmed at once and off session, and the older Charges.
 * https://docs.stripe.com/api/payment_intents, /api/charges, /api/refunds,
 * /error-handling, /idempotent_requests
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

#include "worker/jobs/stripe_object.h"

enum { DAY_S = 86400 };

/* Names that differ between the forms. */
struct gateway_names {
    const char *path;
    const char *method;  /* the card of a payment */
    const char *payment; /* the payment that a refund, or an error, is of */
    bool is_confirmed;   /* a payment is made only if that is asked for */
};

static const struct gateway_names intents = {"/v1/payment_intents", "payment_method",
                                             "payment_intent", true};
static const struct gateway_names charges = {"/v1/charges", "source", "charge", false};

static const char *path(const struct gateway_request *r)
{
    return stripe_is_of_refunds(r) ? "/v1/refunds" : r->names->path;
}

/* The names that every request carries. */
static bool put_names(char *body, size_t *n, const struct gateway_request *r)
{
    return stripe_put(body, n, "metadata[charge_id]", r->paid) &&
           stripe_put(body, n, "metadata[attempt_id]", r->key);
}

static size_t write_body(const struct gateway_request *r, char body[GATEWAY_BODY])
{
    char amount[24], currency[4];
    size_t n = 0;

    (void)snprintf(amount, sizeof amount, "%" PRId64, r->amount_minor);
    if (r->of[0] != '\0')
        return stripe_put(body, &n, r->names->payment, r->of) &&
                       stripe_put(body, &n, "amount", amount) && put_names(body, &n, r)
                   ? n
                   : 0;
    for (size_t i = 0; i < sizeof currency; i++) /* capital ASCII letters */
        currency[i] = r->currency[i] != '\0' ? (char)(r->currency[i] | 0x20) : '\0';
    return stripe_put(body, &n, "amount", amount) &&
                   stripe_put(body, &n, "currency", currency) &&
                   stripe_put(body, &n, "customer", r->customer) &&
                   stripe_put(body, &n, r->names->method, r->method) &&
                   (!r->names->is_confirmed ||
                    (stripe_put(body, &n, "confirm", "true") &&
                     stripe_put(body, &n, "off_session", "true"))) &&
                   put_names(body, &n, r)
               ? n
               : 0;
}

/* The code of an error, the more exact one first. */
static const char *code_of(const json_t *error)
{
    static const char *const names[] = {"decline_code", "code", "type"};
    const char *code = NULL;

    for (size_t i = 0; code == NULL && i < sizeof names / sizeof names[0]; i++)
        code = stripe_text(error, names[i]);
    return code;
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
        stripe_read_object(r, root, answer);
    } else if (status == 402 && error != NULL) {
        answer->outcome = r->of[0] != '\0' ? GATEWAY_REFUSED : GATEWAY_DECLINED;
        stripe_copy(answer->reference, sizeof answer->reference,
                    stripe_id(error, r->names->payment));
        stripe_copy(answer->reason, sizeof answer->reason, code_of(error));
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
            stripe_copy(answer->reason + at, sizeof answer->reason - at, code);
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
    return (r->of[0] != '\0' ? stripe_put(query, &n, r->names->payment, r->of)
                             : stripe_put(query, &n, "created[gte]", since) &&
                                   (r->list != NULL ||
                                    stripe_put(query, &n, "customer", r->customer))) &&
                   stripe_put(query, &n, "limit", "100") &&
                   (after[0] == '\0' || stripe_put(query, &n, "starting_after", after))
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

    stripe_read_object(r, object, &answer);
    stripe_copy(of, sizeof of, stripe_id(object, r->names->payment));
    stripe_copy(key, sizeof key, stripe_text(metadata, "attempt_id"));
    stripe_copy(paid, sizeof paid, stripe_text(metadata, "charge_id"));
    stripe_copy(customer, sizeof customer, stripe_id(object, "customer"));
    stripe_copy(state, sizeof state,
                answer.outcome == GATEWAY_CAPTURED ? "captured"
                                                   : stripe_text(object, "status"));
    stripe_copy(currency, sizeof currency, stripe_text(object, "currency"));
    for (char *p = currency; *p != '\0'; p++)
        *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    stripe_copy(answer.reference, sizeof answer.reference, stripe_text(object, "id"));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "kind",
                     stripe_is_of_refunds(r) ? "refund" : "payment", "reference",
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
        if (stripe_text(object, "id") == NULL || !add_entry(r, object)) {
            stripe_copy(answer->reason, sizeof answer->reason,
                        "a list that cannot be read");
            return true;
        }
        stripe_copy(r->list->after, GATEWAY_ID, stripe_text(object, "id"));
    }
    answer->outcome = GATEWAY_CAPTURED;
    return !has_more;
}

/* The place of a request on a page; its length: it is not there. */
static size_t find(const struct gateway_request *r, const json_t *page)
{
    size_t i = 0;

    for (; i < json_array_size(page); i++) {
        const char *key = stripe_text(
            json_object_get(json_array_get(page, i), "metadata"), "attempt_id");

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
    const char *last = stripe_text(json_array_get(page, ct - 1), "id");
    const json_t *more = json_object_get(root, "has_more");
    bool has_more = json_is_true(more), is_end = true;

    *answer = (struct gateway_answer){.outcome = GATEWAY_UNKNOWN};
    if (status != 200 || !json_is_array(page) || !json_is_boolean(more) ||
        (has_more && last == NULL)) {
        (void)snprintf(answer->reason, sizeof answer->reason,
                       "look-up: HTTP %ld and no list", status);
    } else if (r->list != NULL) {
        is_end = read_page(r, page, has_more, answer);
    } else if ((at = find(r, page)) < ct) {
        stripe_read_object(r, json_array_get(page, at), answer);
    } else {
        answer->outcome = GATEWAY_NOTHING;
        stripe_copy(answer->reason, sizeof answer->reason,
                    "the gateway has nothing of it");
        is_end = !has_more;
    }
    if (!is_end)
        stripe_copy(after, GATEWAY_ID, last);
    json_decref(root);
    return is_end;
}

#define FORM(kind_, names_)                                                            \
    {                                                                                  \
        .kind = (kind_), .names = &(names_), .retry_header = "Stripe-Should-Retry",    \
        .path = path, .write_body = write_body, .read_answer = read_answer,            \
        .write_look = write_look, .read_look = read_look                               \
    }

const struct gateway_form gateway_forms[GATEWAY_FORM_CT] = {
    FORM("stripe", intents),
    FORM("stripe-charges", charges),
};
