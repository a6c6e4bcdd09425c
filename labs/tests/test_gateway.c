/* The stand-in payment gateway: its keys, each of its faults, and its declines. */
#include "tests/lib/gateway.h"

GROUP(.open = gateway_open, .close = gateway_close);

/* ---- keys ---- */

CASE(key_is_replayed_and_charges_once)
{
    gateway_pay("k");
    gateway_shows("HTTP/1.1 200 OK");
    gateway_shows("\"id\":\"pi_3");
    gateway_shows("\"amount_received\":100");
    gateway_shows("\"latest_charge\":\"ch_3");
    gateway_shows("\"metadata\":{\"charge_id\":\"c1\"}");
    assert_null(strstr(gateway_said, "Idempotent-Replayed"));
    gateway_pay("k");
    gateway_shows("Idempotent-Replayed: true");
    gateway_shows("HTTP/1.1 200 OK");
    assert_int_equal(gateway_captures(), 1);
    assert_int_equal(gateway_number("/_/calls", "replayed"), 1);
}

CASE(key_with_another_body_or_path_is_an_error)
{
    gateway_pay("k");
    gateway_run(
        "curl -si -H \"$AUTH\" -H 'Idempotency-Key: k' $U/v1/payment_intents -d \"$FORM&amount=101\"");
    gateway_shows("HTTP/1.1 400");
    gateway_shows("idempotency_error");
    gateway_run(
        "curl -sig -H \"$AUTH\" -H 'Idempotency-Key: k' $U/v1/refunds -d 'payment_intent=pi_300000000000000000001'");
    gateway_shows("idempotency_error");
    gateway_run(
        "curl -sig -H 'Authorization: Bearer sk_test_2' -H 'Idempotency-Key: k' $U/v1/payment_intents -d \"$FORM&amount=101\"");
    gateway_shows("HTTP/1.1 200");
    assert_int_equal(gateway_captures(), 2);
}

CASE(key_of_a_running_call_is_told_409)
{
    gateway_behaves("slow=next:1&slow_ms=3000000");
    gateway_run(GATEWAY_PAY ">/dev/null 2>&1 & echo", "k");
    gateway_wait("/_/calls", "received", 1);
    gateway_pay("k");
    gateway_shows("HTTP/1.1 409");
    gateway_shows("idempotency_key_in_use");
    gateway_shows("Stripe-Should-Retry: true");
    assert_int_equal(gateway_captures(), 0);
    assert_int_equal(gateway_stop(SIGTERM), 0);
}

CASE(key_that_is_too_old_charges_again_and_the_witness_tells)
{
    gateway_pay("k");
    gateway_post("/_/clock", "seconds=86000");
    gateway_pay("k");
    gateway_shows("Idempotent-Replayed: true");
    gateway_post("/_/clock", "seconds=500");
    gateway_pay("k");
    gateway_shows("HTTP/1.1 200");
    assert_int_equal(gateway_captures(), 2);
    gateway_shows("\"captured\":{\"usd\":200}");
    gateway_shows("\"by_charge_id\":{\"c1\":2}");
    gateway_shows("\"duplicates\":{\"c1\":[\"pi_3");
}

/* ---- faults ---- */

static const struct {
    const char *name, *first; /* part of the answer, or NULL: none */
    int gateway_code;         /* of curl */
    long captures;
    const char *again; /* with the same key */
    long captures_then;
} faults[] = {
    {"rate_limit", "Retry-After: 1", 0, 0, "HTTP/1.1 200", 1},
    {"conflict", "HTTP/1.1 409", 0, 0, "HTTP/1.1 200", 1},
    {"unavailable", "HTTP/1.1 503", 0, 0, "HTTP/1.1 200", 1},
    {"redirect", "Location: /elsewhere", 0, 0, "HTTP/1.1 200", 1},
    {"drop_before", NULL, 52, 0, "HTTP/1.1 200", 1},
    {"fail_before", "Stripe-Should-Retry: false", 0, 0, "HTTP/1.1 500", 0},
    {"fail_after", "HTTP/1.1 500", 0, 1, "HTTP/1.1 500", 1},
    {"decline_soft", "insufficient_funds", 0, 0, "HTTP/1.1 402", 0},
    {"decline_hard", "stolen_card", 0, 0, "HTTP/1.1 402", 0},
    {"drop_after", NULL, 52, 1, "HTTP/1.1 200", 1},
    {"half", "{\"id\":\"pi_3", 18, 1, "HTTP/1.1 200", 1},
    {"html", "<html>", 0, 1, "HTTP/1.1 200", 1},
    {"no_end", "Transfer-Encoding: chunked", 23, 1, "HTTP/1.1 200", 1},
    {"date_off", "\"status\":\"succeeded\"", 0, 1, "HTTP/1.1 200", 1},
};

CASE_ROWS(fault_meets_the_next_call_alone, faults)
{
    char form[64];

    (void)snprintf(form, sizeof form, "%s=next:1", row->name);
    gateway_behaves(form);
    gateway_pay("k");
    assert_int_equal(gateway_code, row->gateway_code);
    gateway_shows(row->first != NULL ? row->first : "");
    assert_int_equal(gateway_captures(), row->captures);
    gateway_pay("k");
    gateway_shows(row->again);
    assert_int_equal(gateway_captures(), row->captures_then);
    assert_int_equal(gateway_number("/_/calls", row->name), 1);
}

CASE(call_that_hangs_has_charged_and_its_key_is_free)
{
    gateway_behaves("hang=next:1");
    gateway_run(GATEWAY_PAY ">/dev/null 2>&1 & echo", "k");
    gateway_wait("/_/witness", "captures", 1);
    gateway_pay("k");
    gateway_shows("Idempotent-Replayed: true");
    assert_int_equal(gateway_captures(), 1);
    assert_int_equal(gateway_stop(SIGTERM), 0);
}

CASE(date_can_be_a_day_behind)
{
    char today[64];

    gateway_pay("k1");
    (void)snprintf(today, sizeof today, "%.16s", strstr(gateway_said, "Date: "));
    gateway_behaves("date_off=next:1");
    gateway_pay("k2");
    assert_null(strstr(gateway_said, today));
}

CASE(stored_500_is_run_again_in_the_second_form)
{
    gateway_behaves("replay_5xx=0&fail_after=next:1");
    gateway_pay("k1");
    gateway_shows("HTTP/1.1 500");
    gateway_shows("Stripe-Should-Retry: true");
    gateway_pay("k1");
    gateway_shows("\"status\":\"succeeded\"");
    assert_int_equal(gateway_captures(), 1);
    gateway_behaves("fail_before=next:1");
    gateway_pay("k2");
    gateway_shows("HTTP/1.1 500");
    gateway_pay("k2");
    gateway_shows("\"status\":\"succeeded\"");
    assert_int_equal(gateway_captures(), 2);
}

CASE(faults_fall_on_reads_when_asked)
{
    gateway_behaves("unavailable=1");
    gateway_get("/v1/payment_intents");
    gateway_shows("HTTP/1.1 200");
    gateway_behaves("reads=1");
    gateway_get("/v1/payment_intents");
    gateway_shows("HTTP/1.1 503");
    gateway_behaves("reset=1");
    gateway_get("/v1/payment_intents");
    gateway_shows("HTTP/1.1 200");
}

static void draw(const char *seed, char *statuses)
{
    (void)gateway_stop(SIGKILL);
    gateway_run("rm $GATEWAY_DIR/journal");
    gateway_start(seed);
    gateway_run(
        "curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-40]\" -d \"$FORM&amount=5\" -o /dev/null -w '%%{http_code} '");
    assert_int_equal(strlen(gateway_said), 160);
    memcpy(statuses, gateway_said, 161);
}

CASE(faults_are_drawn_from_the_seed)
{
    char first[161], second[161], other[161];

    draw("--fault decline_soft=0.5 --seed 7", first);
    draw("--fault decline_soft=0.5 --seed 7", second);
    draw("--fault decline_soft=0.5 --seed 8", other);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
    assert_non_null(strstr(first, "200"));
    assert_non_null(strstr(first, "402"));
}

/* The charge comes after a share of the latency, and the key is taken up to its end. */
CASE(call_is_run_in_its_latency)
{
    gateway_behaves("latency_ms=600000&run_at=0");
    gateway_run(GATEWAY_PAY ">/dev/null 2>&1 & echo", "k1");
    gateway_wait("/_/witness", "captures", 1);
    gateway_behaves("run_at=100");
    gateway_run(GATEWAY_PAY ">/dev/null 2>&1 & echo", "k2");
    gateway_wait("/_/calls", "received", 2);
    gateway_behaves("latency_ms=0");
    gateway_pay("k1");
    gateway_shows("HTTP/1.1 409");
    gateway_pay("k2");
    gateway_shows("HTTP/1.1 409");
    assert_int_equal(gateway_captures(), 1);
}

/* ---- declines ---- */

CASE(customers_and_amounts_are_declined)
{
    gateway_post(
        "/v1/payment_intents",
        "$FORM&amount=5&customer=cus_declines_as_expired_card"); /* the later counts */
    gateway_shows("HTTP/1.1 402");
    gateway_run(
        "curl -si -H \"$AUTH\" $U/v1/payment_intents -d \"${FORM/cus_1/cus_declines_hard_7}&amount=5\"");
    gateway_shows("\"decline_code\":\"stolen_card\"");
    gateway_run(
        "curl -si -H \"$AUTH\" $U/v1/payment_intents -d \"${FORM/cus_1/cus_declines_soft}&amount=5\"");
    gateway_shows("\"decline_code\":\"insufficient_funds\"");
    gateway_shows("\"status\":\"requires_payment_method\"");
    gateway_behaves("decline_above=1000");
    gateway_post("/v1/payment_intents", "$FORM&amount=1001");
    gateway_shows("HTTP/1.1 402");
    gateway_post("/v1/payment_intents", "$FORM&amount=1000");
    gateway_shows("HTTP/1.1 200");
    assert_int_equal(gateway_captures(), 1);
}

CASE(customer_is_declined_twice_for_each_charge_and_then_pays)
{
    for (int i = 0; i < 6; i++) {
        gateway_run(
            "curl -sig -H \"$AUTH\" $U/v1/payment_intents -d "
            "\"${FORM/cus_1/cus_declines_twice_then_pays}&amount=5&metadata[charge_id]=%d\"",
            i / 3);
        gateway_shows(i % 3 < 2 ? "HTTP/1.1 402" : "HTTP/1.1 200");
    }
}
