/* The stand-in payment gateway: its keys, each of its faults, and its declines. */
#include "labs/tests/lib/gateway.h"

GROUP(.open = open_gateway, .close = close_gateway);

/* ---- keys ---- */

CASE(key_is_replayed_and_charges_once)
{
    pay("k");
    shows("HTTP/1.1 200 OK");
    shows("\"id\":\"pi_3");
    shows("\"amount_received\":100");
    shows("\"latest_charge\":\"ch_3");
    shows("\"metadata\":{\"charge_id\":\"c1\"}");
    assert_null(strstr(printed, "Idempotent-Replayed"));
    pay("k");
    shows("Idempotent-Replayed: true");
    shows("HTTP/1.1 200 OK");
    assert_int_equal(captures(), 1);
    assert_int_equal(number("/_/calls", "replayed"), 1);
}

CASE(key_with_another_body_or_path_is_an_error)
{
    pay("k");
    run("curl -si -H \"$AUTH\" -H 'Idempotency-Key: k' $U/v1/payment_intents -d \"$FORM&amount=101\"");
    shows("HTTP/1.1 400");
    shows("idempotency_error");
    run("curl -sig -H \"$AUTH\" -H 'Idempotency-Key: k' $U/v1/refunds -d 'payment_intent=pi_300000000000000000001'");
    shows("idempotency_error");
    run("curl -sig -H 'Authorization: Bearer sk_test_2' -H 'Idempotency-Key: k' $U/v1/payment_intents -d \"$FORM&amount=101\"");
    shows("HTTP/1.1 200");
    assert_int_equal(captures(), 2);
}

CASE(key_of_a_running_call_is_told_409)
{
    behaves("slow=next:1&slow_ms=3000000");
    run(PAY ">/dev/null 2>&1 & echo", "k");
    wait_for("/_/calls", "received", 1);
    pay("k");
    shows("HTTP/1.1 409");
    shows("idempotency_key_in_use");
    shows("Stripe-Should-Retry: true");
    assert_int_equal(captures(), 0);
    assert_int_equal(stop(SIGTERM), 0);
}

CASE(key_that_is_too_old_charges_again_and_the_witness_tells)
{
    pay("k");
    post("/_/clock", "seconds=86000");
    pay("k");
    shows("Idempotent-Replayed: true");
    post("/_/clock", "seconds=500");
    pay("k");
    shows("HTTP/1.1 200");
    assert_int_equal(captures(), 2);
    shows("\"captured\":{\"usd\":200}");
    shows("\"by_charge_id\":{\"c1\":2}");
    shows("\"duplicates\":{\"c1\":[\"pi_3");
}

/* ---- faults ---- */

static const struct {
    const char *name, *first; /* part of the answer, or NULL: none */
    int ended;                /* of curl */
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
    behaves(form);
    pay("k");
    assert_int_equal(ended, row->ended);
    shows(row->first != NULL ? row->first : "");
    assert_int_equal(captures(), row->captures);
    pay("k");
    shows(row->again);
    assert_int_equal(captures(), row->captures_then);
    assert_int_equal(number("/_/calls", row->name), 1);
}

CASE(call_that_hangs_has_charged_and_its_key_is_free)
{
    behaves("hang=next:1");
    run(PAY ">/dev/null 2>&1 & echo", "k");
    wait_for("/_/witness", "captures", 1);
    pay("k");
    shows("Idempotent-Replayed: true");
    assert_int_equal(captures(), 1);
    assert_int_equal(stop(SIGTERM), 0);
}

CASE(date_can_be_a_day_behind)
{
    char today[64];

    pay("k1");
    (void)snprintf(today, sizeof today, "%.16s", strstr(printed, "Date: "));
    behaves("date_off=next:1");
    pay("k2");
    assert_null(strstr(printed, today));
}

CASE(stored_500_is_run_again_in_the_second_form)
{
    behaves("replay_5xx=0&fail_after=next:1");
    pay("k1");
    shows("HTTP/1.1 500");
    shows("Stripe-Should-Retry: true");
    pay("k1");
    shows("\"status\":\"succeeded\"");
    assert_int_equal(captures(), 1);
    behaves("fail_before=next:1");
    pay("k2");
    shows("HTTP/1.1 500");
    pay("k2");
    shows("\"status\":\"succeeded\"");
    assert_int_equal(captures(), 2);
}

CASE(faults_fall_on_reads_when_asked)
{
    behaves("unavailable=1");
    get("/v1/payment_intents");
    shows("HTTP/1.1 200");
    behaves("reads=1");
    get("/v1/payment_intents");
    shows("HTTP/1.1 503");
    behaves("reset=1");
    get("/v1/payment_intents");
    shows("HTTP/1.1 200");
}

static void draw(const char *seed, char *statuses)
{
    (void)stop(SIGKILL);
    run("rm $GATEWAY_DIR/journal");
    start(seed);
    run("curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-40]\" -d \"$FORM&amount=5\" -o /dev/null -w '%%{http_code} '");
    assert_int_equal(strlen(printed), 160);
    memcpy(statuses, printed, 161);
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
    behaves("latency_ms=600000&run_at=0");
    run(PAY ">/dev/null 2>&1 & echo", "k1");
    wait_for("/_/witness", "captures", 1);
    behaves("run_at=100");
    run(PAY ">/dev/null 2>&1 & echo", "k2");
    wait_for("/_/calls", "received", 2);
    behaves("latency_ms=0");
    pay("k1");
    shows("HTTP/1.1 409");
    pay("k2");
    shows("HTTP/1.1 409");
    assert_int_equal(captures(), 1);
}

/* ---- declines ---- */

CASE(customers_and_amounts_are_declined)
{
    post("/v1/payment_intents",
         "$FORM&amount=5&customer=cus_declines_as_expired_card"); /* the later counts */
    shows("HTTP/1.1 402");
    run("curl -si -H \"$AUTH\" $U/v1/payment_intents -d \"${FORM/cus_1/cus_declines_hard_7}&amount=5\"");
    shows("\"decline_code\":\"stolen_card\"");
    run("curl -si -H \"$AUTH\" $U/v1/payment_intents -d \"${FORM/cus_1/cus_declines_soft}&amount=5\"");
    shows("\"decline_code\":\"insufficient_funds\"");
    shows("\"status\":\"requires_payment_method\"");
    behaves("decline_above=1000");
    post("/v1/payment_intents", "$FORM&amount=1001");
    shows("HTTP/1.1 402");
    post("/v1/payment_intents", "$FORM&amount=1000");
    shows("HTTP/1.1 200");
    assert_int_equal(captures(), 1);
}

CASE(customer_is_declined_twice_for_each_charge_and_then_pays)
{
    for (int i = 0; i < 6; i++) {
        run("curl -sig -H \"$AUTH\" $U/v1/payment_intents -d "
            "\"${FORM/cus_1/cus_declines_twice_then_pays}&amount=5&metadata[charge_id]=%d\"",
            i / 3);
        shows(i % 3 < 2 ? "HTTP/1.1 402" : "HTTP/1.1 200");
    }
}
