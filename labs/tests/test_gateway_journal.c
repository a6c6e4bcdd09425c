/* The stand-in payment gateway: refusals, lists, refunds, and what a kill leaves. */
#include "tests/lib/gateway.h"

GROUP(.open = gateway_open, .close = gateway_close);

/* ---- refusals ---- */

static const struct {
    const char *name, *options, *part;
} refused[] = {
    {"without_a_key", "-d \"$FORM&amount=5\"", "HTTP/1.1 401"},
    {"with_a_live_key", "-H 'Authorization: Bearer sk_live_1' -d \"$FORM&amount=5\"",
     "HTTP/1.1 401"},
    {"of_json", "-H \"$AUTH\" -H 'Content-Type: application/json' -d '{\"amount\":5}'",
     "HTTP/1.1 400"},
    {"of_nothing", "-H \"$AUTH\" -d \"$FORM&amount=0\"", "HTTP/1.1 400"},
    {"of_less", "-H \"$AUTH\" -d \"$FORM&amount=-5\"", "HTTP/1.1 400"},
    {"of_a_part", "-H \"$AUTH\" -d \"$FORM&amount=5.5\"", "HTTP/1.1 400"},
    {"of_an_unknown_word", "-H \"$AUTH\" -d \"$FORM&amount=5&amuont=5\"",
     "parameter_unknown"},
    {"with_a_long_key",
     "-H \"$AUTH\" -H \"Idempotency-Key: $(printf %0256d 0)\" -d \"$FORM&amount=5\"",
     "HTTP/1.1 400"},
};

CASE_ROWS(call_is_refused, refused)
{
    gateway_run("curl -si $U/v1/payment_intents %s", row->options);
    gateway_shows(row->part);
    assert_int_equal(gateway_captures(), 0);
}

CASE(other_keys_are_refused_where_there_is_one)
{
    (void)gateway_stop(SIGKILL);
    gateway_start("--api-key sk_test_2");
    gateway_pay("k");
    gateway_shows("HTTP/1.1 401");
}

CASE(unknown_paths_ids_and_behaviours_are_refused)
{
    gateway_get("/v1/payment_intents/pi_300000000000000000001");
    gateway_shows("HTTP/1.1 404");
    gateway_shows("resource_missing");
    gateway_get("/v1/customers");
    gateway_shows("HTTP/1.1 404");
    gateway_post("/_/behaviour", "half=0.5&hafl=0.5");
    gateway_shows("there is no behaviour hafl");
    gateway_post("/_/behaviour", "half=1.5");
    gateway_shows("half must be from 0 to 1, or next:N");
    gateway_pay("k"); /* neither has set anything */
    gateway_shows("HTTP/1.1 200");
}

static const struct {
    const char *name, *options;
} options[] = {
    {"unknown", "--journal j --nonsense 1"},
    {"without_value", "--journal"},
    {"without_journal", "--seed 1"},
    {"bad_fault", "--journal j --fault half=2"},
    {"bad_address", "--journal j --listen nowhere"},
    {"live_key", "--journal j --api-key sk_live_1"},
};

CASE_ROWS(option_is_refused, options)
{
    gateway_run(GATEWAY_PROGRAM " %s 2>&1", row->options);
    assert_int_equal(gateway_code, 2);
    gateway_shows("see --help");
}

/* ---- lists, refunds, the export ---- */

CASE(list_is_newest_first_by_customer_and_by_pages)
{
    char first[25], path[160];

    gateway_run(
        "curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-5]\" -d \"$FORM&amount=5\"");
    gateway_post("/_/clock", "seconds=1000");
    gateway_run(
        "curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-5]\" -d \"${FORM/cus_1/cus_2}&amount=6\"");
    gateway_run(
        "curl -sg -H \"$AUTH\" \"$U/v1/payment_intents\" -d \"$FORM&amount=7\"");
    gateway_get("/v1/payment_intents?customer=cus_1&limit=1");
    gateway_shows("\"has_more\":true");
    gateway_shows("\"amount\":7");
    (void)snprintf(first, sizeof first, "%.24s", strstr(gateway_said, "pi_3"));
    (void)snprintf(path, sizeof path,
                   "/v1/payment_intents?customer=cus_1&limit=5&starting_after=%s",
                   first);
    gateway_get(path);
    gateway_shows("\"has_more\":false");
    assert_null(strstr(gateway_said, "\"amount\":6"));
    assert_null(strstr(gateway_said, "\"amount\":7"));
    gateway_run(
        "curl -sg -H \"$AUTH\" \"$U/v1/payment_intents?limit=100&created[gte]=$(($(date +%%s) + 500))\" | grep -o '\"amount\":' | wc -l");
    assert_int_equal(atoi(gateway_said), 6);
    gateway_get("/v1/payment_intents?limit=101");
    gateway_shows("HTTP/1.1 400");
}

CASE(refunds_are_never_more_than_the_capture)
{
    gateway_pay("k");
    gateway_run(
        "curl -sZ --parallel-max 20 -H \"$AUTH\" \"$U/v1/refunds?[1-20]\" -d 'payment_intent=pi_300000000000000000001&amount=30' 2>/dev/null");
    gateway_get("/_/witness");
    gateway_shows("\"refunds\":3");
    gateway_shows("\"refunded\":{\"usd\":90}");
    gateway_post("/v1/refunds", "payment_intent=pi_300000000000000000001");
    gateway_shows("\"amount\":10");
    gateway_post("/v1/refunds", "payment_intent=pi_300000000000000000001");
    gateway_shows("HTTP/1.1 400");
    gateway_run(
        "curl -sg -H \"$AUTH\" \"$U/v1/refunds?payment_intent=pi_300000000000000000001\" | grep -o '\"object\":\"refund\"' | wc -l");
    assert_int_equal(atoi(gateway_said), 4);
    gateway_run("curl -s $U/_/journal | wc -l");
    assert_int_equal(atoi(gateway_said), 5);
}

CASE(refund_whose_answer_is_lost_is_replayed)
{
    gateway_pay("k");
    gateway_behaves("drop_after=next:1");
    for (int i = 0; i < 2; i++)
        gateway_run(
            "curl -si -H \"$AUTH\" -H 'Idempotency-Key: r' $U/v1/refunds -d 'payment_intent=pi_300000000000000000001'");
    gateway_shows("Idempotent-Replayed: true");
    assert_int_equal(gateway_number("/_/witness", "refunds"), 1);
}

CASE(declined_intent_can_be_canceled_and_a_capture_cannot)
{
    gateway_behaves("decline_soft=next:1");
    gateway_pay("k1");
    gateway_post("/v1/payment_intents/pi_300000000000000000001/cancel", "");
    gateway_shows("\"status\":\"canceled\"");
    gateway_pay("k1"); /* what it was then */
    gateway_shows("\"status\":\"requires_payment_method\"");
    gateway_pay("k2");
    gateway_post("/v1/payment_intents/pi_300000000000000000003/cancel", "");
    gateway_shows("payment_intent_unexpected_state");
}

/* ---- the journal ---- */

CASE(kill_between_two_calls_loses_nothing)
{
    char first[25];

    gateway_pay("k1");
    (void)snprintf(first, sizeof first, "%.24s", strstr(gateway_said, "pi_3"));
    gateway_behaves("fail_after=next:1");
    gateway_pay("k2");
    gateway_post("/_/clock", "seconds=86000");
    gateway_post("/v1/refunds", "payment_intent=pi_300000000000000000001&amount=40");
    assert_int_equal(gateway_stop(SIGKILL), -1);
    gateway_run("printf '{\"kind\":\"intent\",\"at\":17' >>journal");
    gateway_start("");
    gateway_pay("k1");
    gateway_shows("Idempotent-Replayed: true");
    gateway_shows(first);
    gateway_pay("k2");
    gateway_shows("HTTP/1.1 500");
    gateway_shows("Idempotent-Replayed: true");
    assert_int_equal(gateway_captures(), 2);
    gateway_shows("\"refunded\":{\"usd\":40}");
    gateway_post("/_/clock", "seconds=500"); /* time goes on from where it was */
    gateway_pay("k1");
    assert_int_equal(gateway_captures(), 3);
    assert_int_equal(gateway_stop(SIGTERM), 0);
    gateway_start("");
    assert_int_equal(gateway_captures(), 3);
}

CASE(journal_with_a_bad_line_or_of_another_is_refused)
{
    gateway_run(GATEWAY_PROGRAM " --journal journal --listen 127.0.0.1:0 2>&1");
    assert_int_equal(gateway_code, 1);
    gateway_shows("another gateway has journal open");
    (void)gateway_stop(SIGTERM);
    gateway_run("echo nonsense >journal; " GATEWAY_PROGRAM " --journal journal 2>&1");
    assert_int_equal(gateway_code, 1);
    gateway_shows("line 1: no line of a journal");
}

CASE(full_disk_fails_before_the_charge)
{
    (void)gateway_stop(SIGTERM);
    gateway_start("ulimit -f 1;"); /* 1,024 bytes */
    gateway_run(
        "curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-9]\" -d \"$FORM&amount=5\" -o /dev/null -w '%%{http_code} '");
    gateway_shows("200 ");
    gateway_shows(" 500 ");
    gateway_pay("k");
    gateway_shows("HTTP/1.1 500");
    gateway_shows("Nothing was charged.");
    long before = gateway_captures();

    gateway_run("cat errors");
    gateway_shows("the journal cannot be written, nothing is charged: File too large");
    (void)gateway_stop(SIGKILL);
    gateway_start("");
    assert_int_equal(gateway_captures(), before);
    gateway_pay("k");
    gateway_shows("\"status\":\"succeeded\"");
}
