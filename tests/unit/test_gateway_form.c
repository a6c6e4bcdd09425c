/* gateway_form: what is asked of a gateway, to the byte, and what its answers mean. */
#include "tests/lib/test.h"

#include "worker/jobs/gateway.h"

static const struct gateway_request taken = {.key = "ll_k",
                                             .paid = "charge/7/0",
                                             .amount_minor = 1999,
                                             .currency = "USD",
                                             .customer = "cus_1",
                                             .method = "pm_1"};

/* The request of a form; with `of` it gives that payment back. */
static struct gateway_request request_of(const struct gateway_form *form,
                                         const char *of)
{
    struct gateway_request r = taken;

    r.names = form->names;
    (void)snprintf(r.of, sizeof r.of, "%s", of);
    return r;
}

/* ---- requests ---- */

static const struct {
    const char *name, *of, *path, *body;
} requests[][2] = {
    {{"payment_by_intents", "", "/v1/payment_intents",
      "amount=1999&currency=usd&customer=cus_1&payment_method=pm_1&confirm=true&"
      "off_session=true&metadata[charge_id]=charge%2F7%2F0&metadata[attempt_id]=ll_k"},
     {"refund_of_intents", "pi_1", "/v1/refunds",
      "payment_intent=pi_1&amount=1999&metadata[charge_id]=charge%2F7%2F0&"
      "metadata[attempt_id]=ll_k"}},
    {{"payment_by_charges", "", "/v1/charges",
      "amount=1999&currency=usd&customer=cus_1&source=pm_1&"
      "metadata[charge_id]=charge%2F7%2F0&metadata[attempt_id]=ll_k"},
     {"refund_of_charges", "ch_1", "/v1/refunds",
      "charge=ch_1&amount=1999&metadata[charge_id]=charge%2F7%2F0&"
      "metadata[attempt_id]=ll_k"}},
};

/* A gateway refuses a key that comes with another text, so this text never changes: a
 * payment may be asked for by one version of the program and again by the next. */
/* Guarantee: The request of an attempt is the same text, byte for byte, in every
 * version of the program. */
CASE(requests_are_the_same_bytes)
{
    for (size_t i = 0; i < GATEWAY_FORM_CT; i++) {
        for (size_t k = 0; k < 2; k++) {
            struct gateway_request r = request_of(&gateway_forms[i], requests[i][k].of);
            char body[GATEWAY_BODY];

            assert_string_equal(gateway_forms[i].path(&r), requests[i][k].path);
            assert_int_equal(gateway_forms[i].write_body(&r, body),
                             strlen(requests[i][k].body));
            assert_string_equal(body, requests[i][k].body);
        }
    }
}

/* Guarantee: The longest request, and the longest question about it, have room. */
CASE(longest_request_has_room)
{
    for (size_t i = 0; i < GATEWAY_FORM_CT; i++) {
        struct gateway_request r = request_of(&gateway_forms[i], "");
        char body[GATEWAY_BODY], after[GATEWAY_ID] = "";

        r.amount_minor = INT64_MAX; /* and each '/' takes three bytes: */
        memset(r.customer, '/', sizeof r.customer - 1);
        memset(r.method, '/', sizeof r.method - 1);
        memset(r.key, 'f', sizeof r.key - 1);
        memset(r.paid, '9', sizeof r.paid - 1);
        memset(after, '/', sizeof after - 1);
        promise_true(gateway_forms[i].write_body(&r, body) > 0);
        promise_true(gateway_forms[i].write_look(&r, after, body) > 0);
        memset(r.of, '/', sizeof r.of - 1);
        promise_true(gateway_forms[i].write_body(&r, body) > 0);
        promise_true(gateway_forms[i].write_look(&r, after, body) > 0);
    }
}

/* ---- answers ---- */

#define ERROR(fields) "{\"error\":{" fields "}}"
#define CARD ERROR("\"code\":\"card_declined\",\"decline_code\":\"stolen_card\"")

static const struct {
    const char *name;
    long status;
    const char *body;
    enum gateway_outcome payment, refund;
    const char *reason;
} answers[] = {
    {"succeeded", 200, "{\"id\":\"x_1\",\"status\":\"succeeded\"}", GATEWAY_CAPTURED,
     GATEWAY_CAPTURED, ""},
    {"no_id", 200, "{\"status\":\"succeeded\"}", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN,
     NULL},
    {"no_status", 200, "{\"id\":\"x_1\"}", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, NULL},
    {"another_status", 200, "{\"id\":\"x_1\",\"status\":\"nonsense\"}", GATEWAY_UNKNOWN,
     GATEWAY_UNKNOWN, NULL},
    {"status_is_a_number", 200, "{\"id\":\"x_1\",\"status\":1}", GATEWAY_UNKNOWN,
     GATEWAY_UNKNOWN, NULL},
    {"an_array", 200, "[1]", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, NULL},
    {"half", 200, "{\"id\":\"x_1\",\"status\":\"succ", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN,
     NULL},
    {"twice_a_status", 200,
     "{\"id\":\"x_1\",\"status\":\"succeeded\",\"status\":\"failed\"}", GATEWAY_UNKNOWN,
     GATEWAY_UNKNOWN, NULL},
    {"html", 200, "<html>ok</html>", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, NULL},
    {"empty", 200, "", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, NULL},
    {"created", 201, "{\"id\":\"x_1\",\"status\":\"succeeded\"}", GATEWAY_UNKNOWN,
     GATEWAY_UNKNOWN, "HTTP 201"},
    {"redirect", 302, "", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, "HTTP 302"},
    {"declined", 402, CARD, GATEWAY_DECLINED, GATEWAY_REFUSED, "stolen_card"},
    {"declined_without_words", 402, "", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, "HTTP 402"},
    {"wrong", 400, ERROR("\"type\":\"invalid_request_error\""), GATEWAY_REFUSED,
     GATEWAY_REFUSED, "HTTP 400 invalid_request_error"},
    {"wrong_of_a_proxy", 400, "<html>", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, "HTTP 400"},
    {"not_found", 404, ERROR("\"code\":\"resource_missing\""), GATEWAY_REFUSED,
     GATEWAY_REFUSED, "HTTP 404 resource_missing"},
    {"key_is_wrong", 401, "", GATEWAY_LATER, GATEWAY_LATER, "HTTP 401"},
    {"forbidden", 403, "", GATEWAY_LATER, GATEWAY_LATER, "HTTP 403"},
    {"in_use", 409, ERROR("\"code\":\"idempotency_key_in_use\""), GATEWAY_LATER,
     GATEWAY_LATER, "HTTP 409 idempotency_key_in_use"},
    {"too_many", 429, "", GATEWAY_LATER, GATEWAY_LATER, "HTTP 429"},
    {"server_error", 500, ERROR("\"type\":\"api_error\""), GATEWAY_UNKNOWN,
     GATEWAY_UNKNOWN, "HTTP 500 api_error"},
    {"bad_gateway", 502, "", GATEWAY_UNKNOWN, GATEWAY_UNKNOWN, "HTTP 502"},
};

/* Guarantee: Only a payment that the gateway names as made is captured, and only a
 * refusal in words is a decline; each other answer is unknown, later or wrong. */
CASE_ROWS(answer_means_what_it_says, answers)
{
    for (size_t i = 0; i < GATEWAY_FORM_CT; i++) {
        for (int refund = 0; refund < 2; refund++) {
            struct gateway_request r =
                request_of(&gateway_forms[i], refund == 1 ? "x_0" : "");
            struct gateway_answer answer;

            gateway_forms[i].read_answer(&r, row->status, row->body, strlen(row->body),
                                         &answer);
            promise_int_equal(answer.outcome, refund == 1 ? row->refund : row->payment);
            if (row->reason != NULL)
                assert_string_equal(answer.reason, row->reason);
            if (answer.outcome == GATEWAY_CAPTURED)
                assert_string_equal(answer.reference, "x_1");
        }
    }
}

/* Guarantee: Control characters and long words of a gateway reach no row and no log.
 */
CASE(answer_of_a_stranger_is_cut_to_what_is_printable)
{
    struct gateway_request r = request_of(&gateway_forms[0], "");
    char body[1024] = "{\"error\":{\"code\":\"a\\u0007\\n\\u00e4", *at;
    struct gateway_answer answer;

    at = body + strlen(body);
    memset(at, 'x', 600);
    (void)strcpy(at + 600, "\"}}");
    gateway_forms[0].read_answer(&r, 402, body, strlen(body), &answer);
    assert_int_equal(answer.outcome, GATEWAY_DECLINED);
    assert_int_equal(strlen(answer.reason), sizeof answer.reason - 1);
    for (const char *p = answer.reason; *p != '\0'; p++)
        promise_true(*p >= ' ' && *p <= '~');
}

/* ---- look-ups ---- */

#define PAGE(entries, more) "{\"data\":[" entries "],\"has_more\":" more "}"
#define ENTRY(id, key)                                                                 \
    "{\"id\":\"" id "\",\"status\":\"succeeded\",\"metadata\":{\"attempt_id\":\"" key  \
    "\"}}"

static const struct {
    const char *name;
    long status;
    const char *page;
    bool is_end;
    enum gateway_outcome outcome;
    const char *after; /* "": the look-up is over */
} pages[] = {
    {"found", 200, PAGE(ENTRY("a", "ll_x") "," ENTRY("b", "ll_k"), "true"), true,
     GATEWAY_CAPTURED, ""},
    {"nothing", 200, PAGE(ENTRY("a", "ll_x"), "false"), true, GATEWAY_NOTHING, ""},
    {"empty", 200, PAGE("", "false"), true, GATEWAY_NOTHING, ""},
    {"more", 200, PAGE(ENTRY("a", "ll_x"), "true"), false, GATEWAY_NOTHING, "a"},
    {"more_behind_nothing", 200, PAGE("", "true"), true, GATEWAY_UNKNOWN, ""},
    {"more_behind_no_name", 200, PAGE("{}", "true"), true, GATEWAY_UNKNOWN, ""},
    {"no_word_of_more", 200, "{\"data\":[]}", true, GATEWAY_UNKNOWN, ""},
    {"no_list", 200, "{}", true, GATEWAY_UNKNOWN, ""},
    {"half", 200, "{\"data\":[", true, GATEWAY_UNKNOWN, ""},
    {"error", 500, PAGE("", "false"), true, GATEWAY_UNKNOWN, ""},
};

/* Guarantee: A payment is void only when the gateway has listed all, and it is not
 * there. */
CASE_ROWS(look_up_finds, pages)
{
    for (size_t i = 0; i < GATEWAY_FORM_CT; i++) {
        struct gateway_request r = request_of(&gateway_forms[i], "");
        struct gateway_answer answer;
        char after[GATEWAY_ID] = "";

        r.is_look = true;
        assert_int_equal(gateway_forms[i].read_look(&r, row->status, row->page,
                                                    strlen(row->page), after, &answer),
                         row->is_end);
        if (row->is_end)
            promise_int_equal(answer.outcome, row->outcome);
        assert_string_equal(after, row->after);
    }
}
