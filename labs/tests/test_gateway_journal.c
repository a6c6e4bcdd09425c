/* The stand-in payment gateway: refusals, lists, refunds, and what a kill leaves. */
#include "labs/tests/lib/gateway.h"

GROUP(.open = open_gateway, .close = close_gateway);

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
    run("curl -si $U/v1/payment_intents %s", row->options);
    shows(row->part);
    assert_int_equal(captures(), 0);
}

CASE(other_keys_are_refused_where_there_is_one)
{
    (void)stop(SIGKILL);
    start("--api-key sk_test_2");
    pay("k");
    shows("HTTP/1.1 401");
}

CASE(unknown_paths_ids_and_behaviours_are_refused)
{
    get("/v1/payment_intents/pi_300000000000000000001");
    shows("HTTP/1.1 404");
    shows("resource_missing");
    get("/v1/customers");
    shows("HTTP/1.1 404");
    post("/_/behaviour", "half=0.5&hafl=0.5");
    shows("there is no behaviour hafl");
    post("/_/behaviour", "half=1.5");
    shows("half must be from 0 to 1, or next:N");
    pay("k"); /* neither has set anything */
    shows("HTTP/1.1 200");
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
    run(GATEWAY_PROGRAM " %s 2>&1", row->options);
    assert_int_equal(ended, 2);
    shows("see --help");
}

/* ---- lists, refunds, the export ---- */

CASE(list_is_newest_first_by_customer_and_by_pages)
{
    char first[25], path[160];

    run("curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-5]\" -d \"$FORM&amount=5\"");
    post("/_/clock", "seconds=1000");
    run("curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-5]\" -d \"${FORM/cus_1/cus_2}&amount=6\"");
    run("curl -sg -H \"$AUTH\" \"$U/v1/payment_intents\" -d \"$FORM&amount=7\"");
    get("/v1/payment_intents?customer=cus_1&limit=1");
    shows("\"has_more\":true");
    shows("\"amount\":7");
    (void)snprintf(first, sizeof first, "%.24s", strstr(printed, "pi_3"));
    (void)snprintf(path, sizeof path,
                   "/v1/payment_intents?customer=cus_1&limit=5&starting_after=%s",
                   first);
    get(path);
    shows("\"has_more\":false");
    assert_null(strstr(printed, "\"amount\":6"));
    assert_null(strstr(printed, "\"amount\":7"));
    run("curl -sg -H \"$AUTH\" \"$U/v1/payment_intents?limit=100&created[gte]=$(($(date +%%s) + 500))\" | grep -o '\"amount\":' | wc -l");
    assert_int_equal(atoi(printed), 6);
    get("/v1/payment_intents?limit=101");
    shows("HTTP/1.1 400");
}

CASE(refunds_are_never_more_than_the_capture)
{
    pay("k");
    run("curl -sZ --parallel-max 20 -H \"$AUTH\" \"$U/v1/refunds?[1-20]\" -d 'payment_intent=pi_300000000000000000001&amount=30' 2>/dev/null");
    get("/_/witness");
    shows("\"refunds\":3");
    shows("\"refunded\":{\"usd\":90}");
    post("/v1/refunds", "payment_intent=pi_300000000000000000001");
    shows("\"amount\":10");
    post("/v1/refunds", "payment_intent=pi_300000000000000000001");
    shows("HTTP/1.1 400");
    run("curl -sg -H \"$AUTH\" \"$U/v1/refunds?payment_intent=pi_300000000000000000001\" | grep -o '\"object\":\"refund\"' | wc -l");
    assert_int_equal(atoi(printed), 4);
    run("curl -s $U/_/journal | wc -l");
    assert_int_equal(atoi(printed), 5);
}

CASE(refund_whose_answer_is_lost_is_replayed)
{
    pay("k");
    behaves("drop_after=next:1");
    for (int i = 0; i < 2; i++)
        run("curl -si -H \"$AUTH\" -H 'Idempotency-Key: r' $U/v1/refunds -d 'payment_intent=pi_300000000000000000001'");
    shows("Idempotent-Replayed: true");
    assert_int_equal(number("/_/witness", "refunds"), 1);
}

CASE(declined_intent_can_be_canceled_and_a_capture_cannot)
{
    behaves("decline_soft=next:1");
    pay("k1");
    post("/v1/payment_intents/pi_300000000000000000001/cancel", "");
    shows("\"status\":\"canceled\"");
    pay("k1"); /* what it was then */
    shows("\"status\":\"requires_payment_method\"");
    pay("k2");
    post("/v1/payment_intents/pi_300000000000000000003/cancel", "");
    shows("payment_intent_unexpected_state");
}

/* ---- the journal ---- */

CASE(kill_between_two_calls_loses_nothing)
{
    char first[25];

    pay("k1");
    (void)snprintf(first, sizeof first, "%.24s", strstr(printed, "pi_3"));
    behaves("fail_after=next:1");
    pay("k2");
    post("/_/clock", "seconds=86000");
    post("/v1/refunds", "payment_intent=pi_300000000000000000001&amount=40");
    assert_int_equal(stop(SIGKILL), -1);
    run("printf '{\"kind\":\"intent\",\"at\":17' >>journal");
    start("");
    pay("k1");
    shows("Idempotent-Replayed: true");
    shows(first);
    pay("k2");
    shows("HTTP/1.1 500");
    shows("Idempotent-Replayed: true");
    assert_int_equal(captures(), 2);
    shows("\"refunded\":{\"usd\":40}");
    post("/_/clock", "seconds=500"); /* time goes on from where it was */
    pay("k1");
    assert_int_equal(captures(), 3);
    assert_int_equal(stop(SIGTERM), 0);
    start("");
    assert_int_equal(captures(), 3);
}

CASE(journal_with_a_bad_line_or_of_another_is_refused)
{
    run(GATEWAY_PROGRAM " --journal journal --listen 127.0.0.1:0 2>&1");
    assert_int_equal(ended, 1);
    shows("another gateway has journal open");
    (void)stop(SIGTERM);
    run("echo nonsense >journal; " GATEWAY_PROGRAM " --journal journal 2>&1");
    assert_int_equal(ended, 1);
    shows("line 1: no line of a journal");
}

CASE(full_disk_fails_before_the_charge)
{
    (void)stop(SIGTERM);
    start("ulimit -f 1"); /* 1,024 bytes */
    run("curl -s -H \"$AUTH\" \"$U/v1/payment_intents?[1-9]\" -d \"$FORM&amount=5\" -o /dev/null -w '%%{http_code} '");
    shows("200 ");
    shows(" 500 ");
    pay("k");
    shows("HTTP/1.1 500");
    shows("Nothing was charged.");
    long before = captures();

    run("cat errors");
    shows("the journal cannot be written, nothing is charged: File too large");
    (void)stop(SIGKILL);
    start("");
    assert_int_equal(captures(), before);
    pay("k");
    shows("\"status\":\"succeeded\"");
}
