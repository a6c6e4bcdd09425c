/* The stand-in payment gateway, asked by curl: each behaviour once, what a kill leaves,
 * and what the witness counts. */
#define _POSIX_C_SOURCE 200809L /* popen, mkdtemp */
#include <signal.h>
#include <time.h>

#include "tests/lib/test.h"

static char dir[128];
static char printed[1 << 18]; /* by the last command */
static int ended;             /* its exit code */
static pid_t gateway;
static int port;

/* ---- commands ---- */

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
    char command[4096] = "set -o pipefail; cd $GATEWAY_DIR; ";
    size_t at = strlen(command), n;
    va_list ap;
    FILE *pipe;

    va_start(ap, format);
    assert_in_range(vsnprintf(command + at, sizeof command - at, format, ap), 0,
                    sizeof command - at - 1);
    va_end(ap);
    (void)setenv("COMMAND", command, 1);
    pipe = popen("exec bash -c \"$COMMAND\"", "r");
    assert_non_null(pipe);
    n = fread(printed, 1, sizeof printed - 1, pipe);
    printed[n] = '\0';
    ended = WEXITSTATUS(pclose(pipe));
}

static void shows(const char *part)
{
    if (strstr(printed, part) == NULL)
        fail_msg("%s is not in: %s", part, printed);
}

/* Options are words for a shell; the journal stays from one start to the next. */
static void start(const char *options)
{
    char command[512], line[128] = "";
    int fds[2];

    (void)snprintf(
        command, sizeof command,
        "%s --journal $GATEWAY_DIR/journal --listen 127.0.0.1:0 %s 2>$GATEWAY_DIR/errors",
        strncmp(options, "ulimit", 6) == 0 ? "" : "exec " GATEWAY_PROGRAM, options);
    if (strncmp(options, "ulimit", 6) == 0)
        (void)snprintf(
            command, sizeof command,
            "%s; exec " GATEWAY_PROGRAM
            " --journal $GATEWAY_DIR/journal --listen 127.0.0.1:0 2>$GATEWAY_DIR/errors",
            options);
    assert_int_equal(pipe(fds), 0);
    gateway = fork();
    if (gateway == 0) {
        (void)dup2(fds[1], 1);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    for (size_t n = 0; n < sizeof line - 1 && strchr(line, '\n') == NULL; n++)
        assert_int_equal(read(fds[0], line + n, 1), 1);
    (void)close(fds[0]);
    assert_int_equal(sscanf(line, "listening on http://127.0.0.1:%d", &port), 1);
    (void)snprintf(line, sizeof line, "http://127.0.0.1:%d", port);
    (void)setenv("U", line, 1);
}

/* The exit code, or -1 after a signal. */
static int stop(int signal_number)
{
    int status = 0;

    if (gateway <= 0)
        return -1;
    (void)kill(gateway, signal_number);
    assert_int_equal(waitpid(gateway, &status, 0), gateway);
    gateway = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void open_gateway(void)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(dir, sizeof dir, "%s/gateway-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(dir));
    (void)setenv("GATEWAY_DIR", dir, 1);
    (void)setenv("FORM", "currency=usd&customer=cus_1&payment_method=pm_1&confirm=true",
                 1);
    (void)setenv("AUTH", "Authorization: Bearer sk_test_1", 1);
    start("");
}

static void close_gateway(void)
{
    (void)stop(SIGKILL);
    run("rm -rf $GATEWAY_DIR");
}

GROUP(.open = open_gateway, .close = close_gateway);

/* ---- calls ---- */

/* A payment for charge c1 of 100 with this key; at most 20,000 bytes of the answer. */
#define PAY                                                                            \
    "curl -sig -m 60 -H \"$AUTH\" -H 'Idempotency-Key: %s' $U/v1/payment_intents -d "  \
    "\"$FORM&amount=100&metadata[charge_id]=c1\" "

static void pay(const char *key)
{
    run(PAY "| head -c 20000", key);
}

static void get(const char *path)
{
    run("curl -sig -H \"$AUTH\" \"$U%s\"", path);
}

static void post(const char *path, const char *form)
{
    run("curl -sig -H \"$AUTH\" \"$U%s\" -d \"%s\"", path, form);
}

static void behaves(const char *form)
{
    post("/_/behaviour", form);
    shows("200 OK");
}

/* A number that follows a name in what a path answers. */
static long number(const char *path, const char *name)
{
    char between[64];
    const char *at;

    get(path);
    (void)snprintf(between, sizeof between, "\"%s\":", name);
    at = strstr(printed, between);
    if (at == NULL)
        fail_msg("%s is not in: %s", name, printed);
    return strtol(at + strlen(between), NULL, 10);
}

static long captures(void)
{
    return number("/_/witness", "captures");
}

static void wait_for(const char *path, const char *name, long n)
{
    static const struct timespec pause = {0, 20000000};

    for (int i = 0; i < 3000 && number(path, name) != n; i++)
        (void)nanosleep(&pause, NULL);
    assert_int_equal(number(path, name), n);
}

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

CASE(latency_is_waited_for)
{
    struct timespec began, over;

    behaves("latency_ms=300");
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    pay("k");
    (void)clock_gettime(CLOCK_MONOTONIC, &over);
    shows("HTTP/1.1 200");
    assert_true((double)(over.tv_sec - began.tv_sec) +
                    (double)(over.tv_nsec - began.tv_nsec) / 1e9 >=
                0.299);
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
