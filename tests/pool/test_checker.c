/* checker: it agrees with true runs (test_crash: also when workers are killed at every
 * named point), and it finds each kind of lie that is planted in the rows or in the
 * histories. */
#include "tests/lib/cards.h"
#include "tests/lib/meet.h"
#include "tests/lib/steps.h"

static const struct load_size size = {
    .users = 30, .subscriptions = 40, .orders = 80, .periods = 3, .cards = true};

static const struct world_plan world_plan = {
    .any = true, .points = true, .checker = true};

/* ---- lies ---- */

/* A world that was worked, and true: for all lies, each of which is undone. */
static void open_worked(void)
{
    cards_open();
    world_fill(&size);
    meet_begin();
    pool_start("run -w 4");
    load_clients_start(500);
    load_clients_finish();
    pool_end(&world.pool);
    meet_assert_both();
    checker_assert_holds("now", "--bound-ms 60000 --gateway $GATEWAY_DIR/journal");
}

/* NULL: none is broken. */
static void assert_says(const char *rule)
{
    char words[64] = "checker: 0 broken";

    if (rule != NULL)
        (void)snprintf(words, sizeof words, "broken: %s: ", rule);
    if (world.checker.code != (rule != NULL) ||
        strstr(world.checker.out, words) == NULL)
        fail_msg("exit %d, not \"%s\": %s (%s)", world.checker.code, words,
                 world.checker.out, getenv("CHECKER_FIRST"));
}

static void assert_finds(const char *rule, const char *options)
{
    (void)checker_run("now", options);
    assert_says(rule);
}

static void plant(const char *liar, const char *other, const char *faults)
{
    const char *const lines[] = {liar, other, faults};
    static const char *const files[] = {"liar", "other", "faults"};

    for (size_t i = 0; i < 3; i++) {
        checker_unplant(files[i]);
        if (lines[i] != NULL)
            checker_plant(files[i], "%s", lines[i]);
    }
}

static void
told(const char *liar, const char *faults, const char *options, const char *rule)
{
    plant(liar, NULL, faults);
    assert_finds(rule, options);
}

static void unplant(void)
{
    told(NULL, NULL, "", NULL);
}

/* Cases on one world, which each leaves as it was. */
GROUP(.plan = &world_plan, .start = open_worked, .stop = cards_close, .close = unplant);

/* ---- lies in the rows ---- */

/* The last charge of a subscription that has several. */
#define ONE_CHARGE                                                                     \
    "(subscription_id, period_no) IN (SELECT subscription_id, max(period_no) FROM"     \
    " charges WHERE state = 'captured' GROUP BY 1 HAVING count(*) > 2 LIMIT 1)"
#define DELETED "DELETE FROM charges WHERE " ONE_CHARGE
#define LINE_TWICE                                                                      \
    "ALTER TABLE order_lines DROP CONSTRAINT order_lines_pkey; INSERT INTO order_lines" \
    " SELECT l.* FROM order_lines AS l JOIN orders USING (order_id) WHERE state ="      \
    " 'fulfilled' LIMIT 1"
#define PARKED "UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 1"
#define SUBSCRIBE(cancel_at)                                                             \
    "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency," \
    " anchor_at, unit, next_due_at, cancel_at) SELECT 9999, user_id, 'p', 5, currency,"  \
    " '2024-01-02Z', 'month', '2024-01-02Z', " cancel_at " FROM users LIMIT 1"

static const struct {
    const char *rule, *spoil;
} lies[] = {
    {"charged_once", "ALTER TABLE charges DROP CONSTRAINT one_charge_per_period;"
                     " INSERT INTO charges SELECT * FROM charges LIMIT 1"},
    {"charged_once", "ALTER TABLE orders DROP CONSTRAINT orders_pkey CASCADE; ALTER"
                     " TABLE orders DROP CONSTRAINT"
                     " orders_user_id_idempotency_key_key; INSERT INTO orders SELECT *"
                     " FROM orders WHERE state = 'fulfilled' LIMIT 1"},
    {"right_amount", LINE_TWICE},
    {"sums", LINE_TWICE},
    {"nothing_missed", SUBSCRIBE("NULL")},
    {"nothing_missed", DELETED},
    {"ok_in_tables", DELETED},
    {"sums", DELETED},
    {"nothing_missed",
     "SELECT place_order(1, 'late', '[{\"sku\":\"sku-1\",\"qty\":1}]',"
     " now() - interval '1 hour')"},
    {"nothing_early",
     "UPDATE charges SET period_no = period_no + 9000 WHERE " ONE_CHARGE},
    {"right_payer", "UPDATE charges SET user_id = user_id + 1"},
    {"sums", "UPDATE charges SET user_id = user_id + 1"},
    {"sums", "UPDATE charges SET amount_minor = amount_minor + 1 WHERE " ONE_CHARGE},
    {"sums", "UPDATE orders SET total_minor = 1 WHERE state = 'fulfilled'"},
    {"sums", "UPDATE orders SET user_id = user_id + 2 WHERE state = 'fulfilled'"
             " AND user_id < 20"},
    {"sums", "DELETE FROM order_lines WHERE order_id IN (SELECT order_id FROM orders"
             " WHERE state = 'fulfilled')"},
    {"sums",
     "UPDATE wallet_entries SET amount_minor = amount_minor + 1 WHERE user_id = 4"},
    {"sums", "DELETE FROM wallet_entries WHERE user_id = 4"},
    {"sums", "UPDATE stock_entries SET qty = qty + 1"},
    {"sums", "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 4"},
    {"sums", "UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 4"},
    {"never_negative", "UPDATE wallet_entries SET amount_minor = 1 WHERE user_id = 1"},
    {"tokens_rise", "UPDATE charges AS c SET fence = 1 + (SELECT max(fence) FROM"
                    " charges) WHERE period_no = 0"},
    {"tokens_rise", "UPDATE charges AS c SET fence = f FROM (SELECT user_id AS u,"
                    " max(fence) AS f FROM charges GROUP BY 1) AS m WHERE u = user_id"
                    " AND fence < f"},
    {"set_aside", PARKED},
    {"nothing_unasked", "UPDATE charges SET fence = fence + 1000000 WHERE user_id = 1"},
    {"nothing_unasked", "UPDATE orders SET fence = (SELECT max(fence) FROM charges)"
                        " WHERE state = 'fulfilled'"},
    {"nothing_unasked", "UPDATE charges SET tries = 9 WHERE state = 'declined'"},
    {"right_amount", "UPDATE subscriptions SET amount_minor = amount_minor + 1 WHERE"
                     " subscription_id = 1"},
    {"right_amount", "UPDATE order_lines SET unit_price_minor = unit_price_minor + 1"
                     " WHERE order_id = (SELECT max(order_id) FROM orders)"},
    {"nothing_after_cancel",
     "UPDATE subscriptions AS s SET cancel_at = c.period_start FROM (SELECT * FROM"
     " charges WHERE " ONE_CHARGE ") AS c WHERE c.subscription_id = s.subscription_id"},
    /* there was money, there was stock */
    {"declined_truly", "UPDATE wallet_entries SET amount_minor = amount_minor + 100000"
                       " WHERE idempotency_key = '' AND user_id % 10 = 2"},
    {"rejected_truly", "UPDATE wallet_entries SET amount_minor = amount_minor + 1000000"
                       " WHERE user_id % 10 = 4"},
    {"rejected_truly", "UPDATE stock SET initial_qty = initial_qty + 1000"},
};

/* Guarantee: Each lie planted in the rows is found by the checker's rule for it and by
 * no other. */
CASE(lie_in_the_rows_is_found_by_its_rule)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        (void)checker_run_spoilt("now", lies[i].spoil);
        assert_says(lies[i].rule);
    }
}

/* Guarantee: The checker finds nothing in what is true. */
CASE(what_is_no_lie_is_not_found)
{
    (void)checker_run_spoilt("now", SUBSCRIBE("'2024-01-02Z'"));
    assert_says(NULL);
    (void)setenv("CHECKER_FIRST", PARKED, 1);
    assert_finds(NULL, "--set-aside 1 --first \"$CHECKER_FIRST\"");
}

/* ---- lies of the gateway, and about it ---- */

/* Commands of sed that tell the journal otherwise, and statements that spoil the rows.
 */
static const struct {
    const char *rule, *journal, *spoil;
} card_lies[] = {
    {"captured_once", "/\"intent\"/{p;p}", ""},
    {"paid_is_captured", "/\"intent\"/!p", ""},
    {"paid_is_captured", "s/\"amount\":/&9/p", ""},
    {"captured_is_paid", "s/\"amount\":/&9/p", ""},
    {"captured_is_paid", "s/cus_/&9/p", ""},
    {"captured_is_paid", "p", "DELETE FROM payments WHERE state = 'captured'"},
    {"served_is_paid", "p", "DELETE FROM payments WHERE state = 'captured'"},
    {"paid_is_served", "p", "DELETE FROM charges WHERE state = 'paid'"},
    {"paid_is_served", "p",
     "UPDATE orders SET by_card = false WHERE by_card AND state = 'fulfilled'"},
    {"nothing_missed", "p", "UPDATE payments SET state = 'unknown'"},
    {"nothing_unasked", "p", "UPDATE payments SET fence = fence + 1000000"},
};

/* Guarantee: The checker compares the gateway's own journal with the rows, and finds
 * each lie in it and about it. */
CASE(lie_about_cards_is_found)
{
    for (size_t i = 0; i < sizeof card_lies / sizeof card_lies[0]; i++) {
        gateway_run("sed -n '%s' journal >told", card_lies[i].journal);
        (void)setenv("CHECKER_FIRST", card_lies[i].spoil, 1);
        assert_finds(card_lies[i].rule,
                     "--gateway $GATEWAY_DIR/told --first \"$CHECKER_FIRST\"");
    }
}

/* ---- lies in the histories ---- */

#define OF(event, worker, t)                                                           \
    "{\"event\":\"" event "\",\"worker\":\"" worker "\",\"pid\":1,\"seq\":1,"          \
    "\"job\":\"billing\",\"t\":" t
#define INVOKE(t, token)                                                               \
    OF("invoke", "liar", t)                                                            \
    ",\"token\":" token ",\"keys\":[\"user:1\"],\"items\":[1]}\n"
#define INVOKED INVOKE("1", "77")
#define END(event) OF(event, "liar", "5") ",\"token\":77,\"xid\":9,\"charged\":1}\n"
/* A key that is held until COMMIT is sent. */
#define HOLD(worker, token, from, until)                                               \
    OF("invoke", worker, from)                                                         \
    ",\"token\":" token ",\"keys\":[\"user:1\",\"user:2\"],\"items\":[]}\n" OF(        \
        "commit", worker, until) ",\"xid\":1}\n" OF("fail", worker, "9999") "}\n"
#define LOST(t) "{\"event\":\"lost\",\"t\":" t "}\n"
#define KILLED(pid, t) "{\"event\":\"killed\",\"pid\":" pid ",\"t\":" t "}\n"

/* Each is about to commit while the other one is, over one key. */
/* Guarantee: The checker finds a key that two workers held at once, unless Redis forgot
 * it. */
CASE(key_of_two_holders_is_found_unless_redis_forgot_it)
{
    static const char forgot[] = "{\"event\":\"forgot\",\"t\":4000}\n";
    static const char liar[] = HOLD("liar", "77", "5000", "9000");
    static const char other[] = HOLD("other", "78", "8000", "9500");

    plant(liar, other, NULL);
    assert_finds("one_holder", "");
    plant(liar, other, forgot);
    assert_finds("one_holder", "");
    assert_finds(NULL, "--lease-ms 1");
    plant(liar, HOLD("other", "78", "9000", "9500"), NULL); /* one behind the other */
    assert_finds(NULL, "");
}

/* On a quorum two batches of different rows that were taken at the same moment may. */
CASE(token_of_two_holders_is_found_unless_of_different_rows_on_a_quorum)
{
    checker_plant("liar", INVOKE("1", "%" PRId64),
                  world_ask("SELECT fence FROM orders LIMIT 1"));
    assert_finds("one_holder", "--kills");
    assert_finds(NULL, "--kills --quorum");
    plant(NULL, NULL, NULL); /* of one row */
    checker_plant("liar", INVOKE("1", "%" PRId64),
                  world_ask("SELECT fence FROM charges WHERE subscription_id = 1 AND"
                            " period_no = 0"));
    assert_finds("one_holder", "--kills --quorum");
}

/* The first of two captured charges, as if it had been committed last. */
/* Guarantee: The checker finds a token that was written after a higher one. */
CASE(token_written_after_a_higher_one_is_found)
{
    plant(NULL, NULL, NULL);
    checker_plant("liar",
                  "{\"event\":\"client\",\"xid\":%" PRId64 ",\"t\":9000000000000000}\n",
                  world_ask("SELECT c.xmin::text::bigint FROM charges AS c JOIN charges"
                            " AS d USING (subscription_id) WHERE c.state = 'captured'"
                            " AND d.state = 'captured' AND c.fence < d.fence ORDER BY"
                            " c.fence LIMIT 1"));
    assert_finds("tokens_rise", "");
}

/* Guarantee: The checker finds work that a worker was told is done and that is not in
 * the tables. */
CASE(ok_without_its_rows_is_found)
{
    told(INVOKED END("ok"), NULL, "", "ok_in_tables");
}

/* Guarantee: The checker finds rows of work that was rolled back. */
CASE(fail_that_left_rows_is_found)
{
    checker_forge("\"charged\":", "\"nothing\":");
    assert_finds("fail_without_effect", "");
    checker_forge("\"nothing\":", "\"charged\":");
}

CASE(invoke_without_an_end_is_the_killed_workers_own)
{
    told(INVOKED, NULL, "", "invoke_ends");
    assert_finds(NULL, "--kills");
    told(INVOKED, KILLED("2", "5"), "", "invoke_ends");
    told(INVOKED, KILLED("1", "0"), "", "invoke_ends"); /* it lived on */
    told(INVOKED, KILLED("1", "5"), "", NULL);
}

/* Only what was begun before. */
CASE(ok_may_be_lost_with_its_server)
{
    told(INVOKE("2", "77") END("ok"), LOST("2"), "", "ok_in_tables");
    told(INVOKE("2", "77") END("ok"), LOST("3"), "", NULL);
}

/* Guarantee: The checker finds a COMMIT in doubt that nobody settled. */
CASE(unknown_that_was_never_settled_is_found)
{
    told(INVOKED END("unknown"), NULL, "", "unknown_settled");
    told(INVOKED END("unknown") END("fail"), NULL, "", NULL);
    /* passed over, whatever was killed */
    told(INVOKED END("unknown") INVOKE("9", "78"), NULL, "--kills", "unknown_settled");
}

/* Guarantee: The checker finds rows of a dead worker that were worked too late. */
CASE(work_taken_up_too_late_is_found)
{
    told(INVOKED, NULL, "--kills", NULL);
    assert_finds("recovery_bounded", "--kills --bound-ms 1000");
}

/* The worker died in the middle of a fault: its work waits for the end of that. */
CASE(work_of_the_dead_is_timed_from_the_end_of_the_fault)
{
    told(INVOKED, KILLED("1", "5"), "--bound-ms 1000", "recovery_bounded");
    checker_mark("healed", 0, 0);
    checker_plant("other", "%s",
                  OF("invoke", "other", "9000000000000000") "}\n" OF(
                      "ok", "other", "9000000000000000") "}\n");
    assert_finds(NULL, "");
}

CASE(pool_that_comes_back_too_late_or_never_is_found)
{
    checker_mark("healed", 0, 1);
    assert_finds("recovery_bounded", "--bound-ms 1000");
    plant(NULL, NULL, NULL);
    checker_mark("healed", 0, 0);
    assert_finds("recovery_bounded", "");
}

CASE(torn_last_line_is_forgiven_and_a_broken_one_refused)
{
    told(INVOKED "{\"event\":\"o", NULL, "--kills", NULL);
    fixture_assert_contains(world.checker.out, "1 lines torn");
    checker_plant("liar", "\n");
    assert_int_equal(checker_run("now", ""), 3);
    fixture_assert_contains(world.checker.out, "liar.jsonl:2");
}
