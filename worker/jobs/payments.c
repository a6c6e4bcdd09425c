/* payments: attempts to take money from cards, and to give it back. A batch writes down
 * that they are sent; then the gateway is called, and what it answers is settled. */
#include <stdio.h>
#include <string.h>

#include "worker/jobs/gateway.h"
#include "worker/jobs/job.h"

enum { MARGIN_MS = 5000 /* between the end of a call and its next one */ };

const char *gateway_word(enum gateway_outcome outcome)
{
    static const char *const words[] = {
        [GATEWAY_CAPTURED] = "captured", [GATEWAY_DECLINED] = "declined",
        [GATEWAY_UNKNOWN] = "unknown",   [GATEWAY_LATER] = "later",
        [GATEWAY_REFUSED] = "refused",   [GATEWAY_NOTHING] = "void",
        [GATEWAY_STORED] = "stored",
    };

    return words[outcome];
}

static int64_t answer_limit_ms(const struct config *c)
{
    return c->gateway_timeout_ms + MARGIN_MS;
}

const struct gateway_form *gateway_form_of(const struct config *c)
{
    size_t i = 0;

    while (i + 1 < GATEWAY_FORM_CT &&
           strcmp(gateway_forms[i].kind, c->gateway_kind) != 0)
        i++;
    return &gateway_forms[i];
}

/* Path and text of a payment and of its refund, whose values have all printable
 * characters: where names, their order or their encoding change, this text does. */
static const char *sample(const struct config *c)
{
    static char text[2 * (GATEWAY_BODY + 64)];
    const struct gateway_form *form = gateway_form_of(c);
    struct gateway_request r = {.key = "key",
                                .paid = "kind/1/2",
                                .amount_minor = 1234567890,
                                .currency = "USD",
                                .method = "method",
                                .names = form->names};
    size_t n = 0;

    for (char ch = ' '; ch <= '~'; ch++)
        r.customer[ch - ' '] = ch;
    for (int i = 0; i < 2; i++) {
        char body[GATEWAY_BODY];

        (void)form->write_body(&r, body);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s\n", form->path(&r),
                              body);
        (void)snprintf(r.of, sizeof r.of, "of");
    }
    return text;
}

static const struct job_calls calls = {
    .requests = SQL_PAYMENTS_READ_REQUESTS,
    .settle = SQL_PAYMENTS_SETTLE,
    .take_over = SQL_PAYMENTS_TAKE_OVER,
};

const struct job_type job_payments = {
    .name = "payments",
    .item = "payment",
    .shards = 64,
    .kinds = RESOURCE_USER + 1,
    .counters = {{"sent", false},
                 {"captured", false},
                 {"card_declined", false},
                 {"refunded", false}},
    .constraints = {"calls_of_state", "payment_state_known", "sent_has_its_time"},
    .pull = SQL_PAYMENTS_PULL_DUE,
    .pull_items = SQL_PAYMENTS_PULL_ITEMS,
    .apply = SQL_PAYMENTS_SEND_DUE,
    .apply_params = 8,
    .setting = answer_limit_ms,
    .form = sample,
    .calls = &calls,
    .feeding = SQL_PAYMENTS_COUNT_FEEDING,
    .effects = SQL_PAYMENTS_COUNT_EFFECTS,
    .park = SQL_POOL_PARK_ROWS,
    .backlog = SQL_PAYMENTS_COUNT_BACKLOG,
    .list_parked = SQL_PARKED_LIST,
    .release_parked = SQL_PARKED_RELEASE,
};
