/* other_gateway: cards that the job charges at a gateway which this project did not
 * write, npm's stripe-stateful-mock, in the form of Stripe's older Charges.
 *
 * The package lacks what follows, so that no case here asks for it: PaymentIntents,
 * created[gte] of a list (which has all charges), and Stripe-Should-Retry. The
 * customer in a list of charges, charges that are pending, and the refusal of names
 * that the API does not know, are added by tests/lib/other_gateway.js. The package has
 * no TLS and keeps all in memory. */
#include "tests/lib/cards.h"

#define NODE                                                                           \
    "export NODE_PATH=$NODE_PATH:/usr/lib/node_modules:/usr/local/lib/node_modules; "

static const char *lacks(void)
{
    static int code = -1;

    if (code == -1)
        code = system(NODE "node -e 'require(\"stripe-stateful-mock\")' 2>/dev/null");
    return code == 0 ? NULL
                     : "npm's stripe-stateful-mock is not installed (npm install -g"
                       " stripe-stateful-mock@0.0.16)";
}

static void open(void)
{
    gateway_open_as(NODE "exec node $LL_TEST_SOURCE/tests/lib/other_gateway.js"
                         " 2>$GATEWAY_DIR/errors");
    world_open();
    (void)gateway_use();
    fixture_env("LEDGERLOCK_GATEWAY_KIND", "stripe-charges");
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "2000");
}

static const struct world_plan world_plan = {.lease_ms = 3000, .points = true};
GROUP(.missing = lacks,
      .plan = &world_plan,
      .open = open,
      .end = world_end,
      .close = cards_close);

#define DECLINES "tok_chargeCustomerFail"

/* A customer of the gateway who pays by the card of this token from now on; another
 * card of his, which would be charged where none is named, does the opposite. */
static void pays_by(int user, const char *token)
{
    const char *other = strcmp(token, DECLINES) == 0 ? "tok_visa" : DECLINES, *card;

    gateway_run("curl -sfg -o made -H \"$AUTH\" $U/v1/customers -d id=cus_%d_%s -d"
                " source=%s && curl -sfg -H \"$AUTH\" $U/v1/customers/cus_%d_%s/sources"
                " -d source=%s",
                user, token, other, user, token, token);
    card = strstr(gateway_said, "\"card_");
    assert_non_null(card);
    world_do("SELECT pay_with(%d, 'card', 'cus_%d_%s', '%.29s')", user, user, token,
             card + 1);
}

static void fill(int n)
{
    cards_users(n, 0);
    for (int user = 1; user <= n; user++)
        pays_by(user, "tok_visa");
    cards_periods(n);
}

static void next_calls(const char *faults)
{
    gateway_run("curl -sfg $U/_/next/%s", faults);
    gateway_shows("200 OK");
}

/* Entries of a list of the gateway with this status are the rows of the table that this
 * condition names, ct of them, by attempt, reference and amount. */
static void lists(const char *path, const char *status, const char *rows, long ct)
{
    gateway_run(
        "curl -sfg -H \"$AUTH\" $U%s | node -p '"
        "JSON.parse(fs.readFileSync(0)).data.filter(e => e.status === \"%s\")"
        ".map(e => [e.metadata.charge_id, e.metadata.attempt_id, e.id, e.amount,"
        " e.currency].join(\" \")).sort().join(\"\\n\")'",
        path, status);
    assert_int_equal(gateway_code, 0);
    gateway_said[strlen(gateway_said) - 1] = '\0'; /* the end of the line */
    promise_string_equal(
        gateway_said,
        world_text(
            "SELECT coalesce(string_agg(entry, E'\\n' ORDER BY entry COLLATE \"C\"),"
            " '') FROM (SELECT concat_ws(' ', paid, payment_key(instance_id, paid,"
            " attempt_no), reference, amount_minor, lower(currency)) AS entry FROM"
            " instance, payments, concat_ws('/', kind, source, leg) AS paid WHERE %s)"
            " AS e",
            rows));
    promise_int_equal(world_ask("SELECT count(*) FROM payments WHERE %s", rows), ct);
}

/* The gateway and the tables have the same captures and refunds, no wallet has moved,
 * and the audit holds. */
static void agrees(long captures, long refunds)
{
    lists("/v1/charges", "succeeded", "state = 'captured' AND kind <> 'refund'",
          captures);
    lists("/v1/refunds", "succeeded", "state = 'captured' AND kind = 'refund'",
          refunds);
    promise_int_equal(
        world_ask("SELECT count(*) FROM users WHERE balance_minor <> 500"), 0);
    world_runs(0, "audit");
}

/* Guarantee: A gateway that others wrote has each period and each order that is paid by
 * card as a charge, once, and a second run asks for nothing. */
CASE(charges_of_another_gateway_are_the_payments)
{
    fill(5);
    cards_orders(2, 2, 4);
    world_says(0, "7 sent, 7 captured", "run --once");
    agrees(7, 0);
    world_is(5, "SELECT count(*) FROM charges WHERE state = 'paid'");
    world_is(2, "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    world_says(0, "0 sent", "run --once");
    agrees(7, 0);
}

/* Guarantee: A card that another gateway declines leaves the period past due and the
 * order rejected, with the gateway's own words and nothing captured. */
CASE(decline_of_another_gateway_is_a_decline)
{
    fill(2);
    pays_by(1, DECLINES);
    cards_orders(1, 1, 1);
    world_says(0, "1 captured, 2 card_declined", "run --once");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'past_due'");
    world_is(1, "SELECT count(*) FROM orders WHERE reason = 'card_declined'");
    lists("/v1/charges", "failed", "state = 'declined' AND reason = 'generic_decline'",
          2);
    agrees(1, 0);
}

static const struct lost {
    const char *name, *answers;
    int calls; /* that it takes */
} losses[] = {
    {"no_answer_is_lost", "after/0", 1},
    {"an_answer_is_lost_and_the_key_is_replayed", "after/1", 2},
    {"a_call_is_lost_and_made_again", "before/1", 2},
    {"the_key_may_not_be_used_again_and_it_is_looked_up", "after/3", 4},
};

/* Guarantee: A charge at another gateway is made once, also when its answer is lost. */
CASE_ROWS(charge_is_made_once_where, losses, .every = 3)
{
    fill(1);
    next_calls(row->answers);
    world_says(0, "1 captured", "run --once");
    world_is(row->calls, "SELECT calls::bigint FROM payments");
    agrees(1, 0);
}

/* Guarantee: A refund at another gateway is made once, also when its answer is lost. */
CASE_ROWS(refund_is_made_once_where, losses, .every = 3)
{
    fill(2);
    cards_orders(1, 2, 2);
    world_says(0, "3 captured", "run --once");
    world_do("SELECT refund(2, 'charge', 2, 0, 60, 'late', 'k')");
    next_calls(row->answers);
    world_says(0, "1 refunded", "run --once");
    world_is(row->calls, "SELECT calls::bigint FROM payments WHERE kind = 'refund'");
    agrees(3, 1);
    world_do("SELECT return_units(1, order_id, 'A', 1, 'broken', 'k') FROM orders");
    world_says(0, "1 refunded", "run --once");
    agrees(3, 2);
}

/* Guarantee: A charge that another gateway does not list when it is looked up is void,
 * and the next attempt captures it. */
CASE(charge_that_is_not_listed_is_void)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "500");
    fill(1);
    next_calls("before/3");
    pool_start("run");
    cards_decided();
    world_is(1,
             "SELECT count(*) FROM payments WHERE state = 'void' AND attempt_no = 1");
    world_is(1,
             "SELECT count(*) FROM payments WHERE state = 'captured' AND attempt_no ="
             " 2");
    agrees(1, 0);
}

/* Guarantee: A charge that another gateway calls pending is looked up until it is
 * decided, and is not made again. */
CASE(pending_charge_is_looked_up)
{
    fill(1);
    next_calls("pending/1");
    world_says(0, "1 captured", "run --once");
    world_is(5, "SELECT calls::bigint FROM payments");
    agrees(1, 0);
}

/* Guarantee: A decline of another gateway whose answer was lost is found in its list as
 * a decline. */
CASE(lost_decline_is_looked_up)
{
    fill(1);
    pays_by(1, DECLINES);
    next_calls("after/3");
    world_says(0, "1 card_declined", "run --once");
    lists("/v1/charges", "failed",
          "state = 'declined' AND reason = 'card_declined' AND"
          " calls = 4",
          1);
    agrees(0, 0);
}

static const struct {
    const char *name, *place;
    int calls; /* that a payment takes */
} places[] = {
    {"after_it_is_sent", "after_commit", 2},
    {"after_the_answer", "before_settle", 2},
};

/* Guarantee: A worker that is killed when its call is sent, or when it has the answer,
 * leaves one charge at another gateway. */
CASE_ROWS(another_gateway_has_one_charge_after_a_kill, places)
{
    char once[256], order[64];

    fill(4);
    world_runs(0, "run --once --jobs billing");
    fixture_temporary(once, sizeof once, "once");
    (void)unlink(once);
    (void)snprintf(order, sizeof order, "%s=kill", row->place);
    fixture_env("LL_TEST_POINT", order);
    fixture_env("LL_TEST_POINT_ONCE", once);
    pool_start("run --jobs payments --payments 1");
    cards_decided();
    pool_logged(1, "event=pool.worker_died");
    agrees(4, 0);
    world_is(row->calls, "SELECT max(calls)::bigint FROM payments");
    (void)unlink(once);
}

/* Guarantee: The lists of another gateway are matched with the tables, and its orphan
 * is given back once. */
CASE(lists_of_another_gateway_are_matched)
{
    char id[64];

    fill(4);
    world_says(0, "4 captured", "run --once");
    world_do("SELECT refund(1, 'charge', 1, 0, 60, 'late', 'k')");
    world_says(0, "1 refunded", "run --once");
    super_do("SET session_replication_role = replica; UPDATE ledgerlock.payments SET"
             " asked_at = asked_at - interval '1 hour'");
    fixture_become(&world.f, "ledgerlock_support");
    world_says(0, "gateway and tables agree", "reconcile");
    shows("matched           payment         4              4.00 USD");
    shows("matched           refund          1              0.60 USD");
    gateway_run("curl -sfg -H \"$AUTH\" $U/v1/charges -d amount=100 -d currency=usd -d"
                " customer=cus_2_tok_visa -d source=%s -d"
                " 'metadata[charge_id]=charge/2/0'",
                world_text("SELECT card_method FROM users WHERE user_id = 2"));
    gateway_shows("\"id\":\"ch_");
    (void)snprintf(id, sizeof id, "%.23s", strstr(gateway_said, "ch_"));
    world_says(1, "duplicate", "reconcile");
    world_runs(0, "reconcile --refund %s", id);
    world_says(0, "was given back before", "reconcile --refund %s", id);
    world_says(0, "returned          payment         1", "reconcile");
    gateway_run("curl -sfg -H \"$AUTH\" \"$U/v1/refunds?charge=%s\" | grep -o"
                " '\"id\":\"re_' | wc -l",
                id);
    promise_int_equal(strtol(gateway_said, NULL, 10), 1);
}
