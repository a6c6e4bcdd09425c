/* api: what a call of Stripe's API v1 asks for, and what it is told. */
#define _GNU_SOURCE /* strdup, asprintf */
#include "labs/gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 255, LIST_DEFAULT = 10, LIST_MAX = 100 };

static const char request_error[] = "invalid_request_error";
const char *api_key;

bool api_begins(const char *text, const char *with)
{
    return text != NULL && strncmp(text, with, strlen(with)) == 0;
}

void api_refuse(struct call *c, int status, const char *code, const char *message)
{
    call_refuse(c, status, request_error, code, message);
}

static void refuse_running(struct call *c)
{
    call_refuse(c, 409, "idempotency_error", "idempotency_key_in_use",
                "Another request with this Idempotency-Key is running.");
    c->should_retry = "true";
}

json_t *api_error_of(const struct entry *e)
{
    if (e->status >= 500)
        return json_pack("{s:{s:s, s:s}}", "error", "type", "api_error", "message",
                         "An unknown error occurred.");
    return json_pack("{s:{s:s, s:s, s:s, s:s, s:o}}", "error", "type", "card_error",
                     "code", "card_declined", "decline_code", e->decline, "message",
                     "Your card was declined.", "payment_intent", store_document(e));
}

/* ---- before a call is looked at ---- */

static bool is_authorized(const struct call *c)
{
    const char *value = http_header(c, "Authorization");

    if (!api_begins(value, "Bearer sk_test_") || value[15] == '\0')
        return false;
    return api_key == NULL || strcmp(value + 7, api_key) == 0;
}

/* Answers of layers in front of the API: no key knows of them. */
static bool meets_front(struct call *c)
{
    enum fault fault = fault_draw(RATE_LIMIT, DROP_BEFORE);

    if (fault == RATE_LIMIT)
        api_refuse(c, 429, "rate_limit", "Too many requests.");
    else if (fault == CONFLICT)
        refuse_running(c);
    else if (fault == UNAVAILABLE)
        call_refuse(c, 503, "api_error", NULL, "The service is not available.");
    else if (fault != NO_FAULT)
        call_answer(c, 302, json_object());
    if (fault == UNAVAILABLE)
        c->should_retry = "true";
    c->spoil = fault;
    return fault != NO_FAULT;
}

/* ---- idempotency: a key belongs to the account, and to what was asked with it ---- */

static void replay(struct call *c, const struct entry *e)
{
    bool is_again = e->status >= 500 && behaviour.values[REPLAY_5XX] <= 0;

    c->is_replayed = !is_again;
    calls_replayed += !is_again;
    call_answer(c, is_again ? 200 : e->status,
                is_again || e->status < 400 ? store_document(e) : api_error_of(e));
    c->should_retry = c->status >= 500 ? "false" : NULL;
    c->spoil = fault_draw(DROP_AFTER, DATE_OFF);
}

static void take_key(struct call *c)
{
    const char *key = http_header(c, "Idempotency-Key");
    json_int_t kept_since = store_now() - (int64_t)behaviour.values[KEY_RETENTION_S];
    const struct entry *e;
    const json_t *running;
    char *name;

    if (strlen(key) > KEY_MAX)
        api_refuse(c, 400, NULL, "An Idempotency-Key has at most 255 characters.");
    if (*key == '\0' || c->status != 0)
        return;
    if (asprintf(&name, "%s %s", http_header(c, "Authorization") + 7, key) < 0)
        abort();
    running = json_object_get(store.running, name);
    e = store_latest(store.keys, name);
    if (e != NULL && e->at <= kept_since)
        e = NULL;
    if ((running != NULL && (uint64_t)json_integer_value(running) != c->hash) ||
        (e != NULL && (uint64_t)e->hash != c->hash))
        call_refuse(c, 400, "idempotency_error", NULL,
                    "This Idempotency-Key was used with another path or body.");
    else if (running != NULL)
        refuse_running(c);
    else if (e != NULL && (e->status < 500 || e->kind != NOTHING ||
                           behaviour.values[REPLAY_5XX] > 0))
        replay(c, e);
    else
        c->key = strdup(name);
    if (store.running == NULL)
        store.running = json_object();
    if (c->key != NULL)
        (void)json_object_set_new(store.running, name,
                                  json_integer((json_int_t)c->hash));
    free(name);
}

/* ---- lists ---- */

static const char *check_list(const struct call *c)
{
    if (call_text(c, "limit") != NULL &&
        (call_number(c, "limit") == 0 || call_number(c, "limit") > LIST_MAX))
        return "limit must be from 1 to 100.";
    return call_text(c, "created[gte]") != NULL && call_number(c, "created[gte]") == 0
               ? "created[gte] must be a time."
               : NULL;
}

/* Newest first; one more than the limit tells that there are more. */
static void list(struct call *c)
{
    enum kind kind = strcmp(c->url, "/v1/refunds") == 0 ? REFUND : INTENT;
    const char *customer = call_text(c, "customer");
    const char *after = call_text(c, "starting_after");
    const char *intent = call_text(c, "payment_intent");
    int64_t number = call_number(c, "limit"), since = call_number(c, "created[gte]");
    size_t limit = number > 0 ? (size_t)number : LIST_DEFAULT;
    const struct entry *first = after != NULL ? payment_find(c, after, kind) : NULL, *e;
    int64_t n = first != NULL ? first->n - 1 : store.ct;
    json_t *rows;

    if (c->status != 0)
        return;
    e = customer != NULL ? store_latest(store.customers, customer) : NULL;
    while (e != NULL && e->n > n)
        e = e->before_of_customer;
    rows = json_array();
    while (json_array_size(rows) <= limit) {
        if (customer == NULL)
            e = n > 0 ? store.entries[n--] : NULL;
        if (e == NULL || e->at < since)
            break;
        if (e->kind == kind && (intent == NULL || e->of == store_find(intent, INTENT)))
            (void)json_array_append_new(rows, kind == INTENT ? store_intent_now(e)
                                                             : store_document(e));
        e = e->before_of_customer;
    }
    number = json_array_size(rows) > limit;
    (void)json_array_remove(rows, limit);
    call_answer(c, 200,
                json_pack("{s:s, s:o, s:b}", "object", "list", "data", rows, "has_more",
                          (int)number));
}

/* ---- paths ---- */

/* clang-format off */
static const struct route {
    bool is_post;
    const char *before, *after; /* the id; NULL: there is none */
    const char *(*check)(const struct call *c); /* tells what is wrong, or NULL */
    void (*run)(struct call *c);
    const char *parameters; /* each between blanks */
} routes[] = {
    {true,  "/v1/payment_intents",  NULL,      payment_check, payment_create,       " amount currency customer payment_method confirm off_session description "},
    {true,  "/v1/payment_intents/", "/cancel", NULL,         payment_cancel,       " cancellation_reason "},
    {true,  "/v1/refunds",          NULL,      refund_check, refund_create,       " payment_intent amount reason "},
    {false, "/v1/payment_intents",  NULL,      check_list,   list,         " customer created[gte] limit starting_after "},
    {false, "/v1/payment_intents/", "",        NULL,         payment_get,          " "},
    {false, "/v1/refunds",          NULL,      check_list,   list, " payment_intent created[gte] limit starting_after "},
};

/* clang-format on */

static bool is_route(const struct route *r, struct call *c)
{
    size_t before = strlen(r->before), length = strlen(c->url);
    size_t after = r->after != NULL ? strlen(r->after) : 0;

    if (r->is_post != c->is_post || !api_begins(c->url, r->before) ||
        length < before + after)
        return false;
    (void)snprintf(c->id, ID_SIZE, "%.*s", (int)(length - before - after),
                   c->url + before);
    return r->after == NULL ? length == before
                            : strcmp(c->url + length - after, r->after) == 0 &&
                                  strchr(c->id, '/') == NULL;
}

static const char *unknown_of(const struct route *r, const struct call *c)
{
    const char *name;
    json_t *value;
    char between[64];

    json_object_foreach(c->form, name, value)
    {
        (void)snprintf(between, sizeof between, " %.60s ", name);
        if (strstr(r->parameters, between) == NULL &&
            !(c->is_post && api_begins(name, "metadata[")))
            return name;
    }
    return NULL;
}

void api_arrive(struct call *c)
{
    bool has_faults = c->is_post || behaviour.values[READS] > 0;
    int64_t latency = fault_draw_latency_ms(has_faults);
    const struct route *r = routes, *last = routes + sizeof routes / sizeof routes[0];
    const char *wrong;

    calls_received++;
    c->run_at_ms += (int64_t)((double)latency * behaviour.values[RUN_AT] / 100);
    c->answer_at_ms += latency;
    if (!is_authorized(c)) {
        api_refuse(c, 401, NULL,
                   "A key that begins with sk_test_ is needed, and known.");
        return;
    }
    if (has_faults && meets_front(c))
        return;
    while (r < last && !is_route(r, c))
        r++;
    if (r == last) {
        api_refuse(c, 404, NULL, "There is no such path.");
        return;
    }
    wrong = r->check != NULL ? r->check(c) : NULL;
    if (c->is_bad_body)
        api_refuse(c, 400, NULL, "The body must be application/x-www-form-urlencoded.");
    else if (unknown_of(r, c) != NULL)
        api_refuse(c, 400, "parameter_unknown", unknown_of(r, c));
    else if (wrong != NULL)
        api_refuse(c, 400, "parameter_invalid", wrong);
    else if (c->is_post)
        take_key(c);
    c->run = r->run;
}
