/* Cards of the demonstration: a pool beside workers under a plain lock, at one gateway
 * that loses answers. */
#include "labs/tests/lib/demo.h"
#include "tests/lib/gateway.h"

static const struct world_plan world_plan = {.lease_ms = 2000,
                                             .poll_ms = 100,
                                             .redis = true,
                                             .also = demo_mark,
                                             .undo = demo_kill};

static void open_gateway_and_world(void)
{
    gateway_open();
    world_open();
    (void)gateway_use();
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "2000");
}

static void close_gateway_and_world(void)
{
    world_close();
    gateway_close();
}

GROUP(.plan = &world_plan,
      .open = open_gateway_and_world,
      .end = world_end,
      .close = close_gateway_and_world);

static bool shows_on_page(const char *part)
{
    return http_get(demo_port, &page, "/state") == 200 &&
           strstr(page.body, part) != NULL;
}

static bool is_charged_by(const char *begin)
{
    gateway_get("/_/witness");
    return strstr(gateway_said, begin) != NULL;
}

/* Guarantee: While a gateway loses its answers, the plain lock charges cards twice, and
 * ledgerlock does not: so the witness of the gateway says, and the page. Afterwards
 * both go on, and the audit holds. */
CASE(lost_answers_charge_cards_twice_under_the_plain_lock_alone)
{
    pool_start("run -w 2");
    demo_start("--users 100 --cards 50 --orders 5 --periods 40");
    FIXTURE_AWAIT(is_charged_by("\"plain/") &&
                      super_ask("SELECT count(*) FROM ledgerlock.charges WHERE state ="
                                " 'paid'") > 20,
                  "no card is charged: %s", gateway_said);
    FIXTURE_AWAIT(shows_on_page("\"twice\":0,\"plain_twice\":0"), "%s", page.body);
    demo_press("lose-answers");
    FIXTURE_AWAIT(demo_recovered("Lose answers", "cards are charged") >= 0, "%s",
                  page.body);
    promise_true(gateway_number("/_/calls", "drop_after") > 0);
    FIXTURE_AWAIT(!shows_on_page("\"plain_twice\":0") && shows_on_page("plain_twice"),
                  "the plain lock has charged no card twice: %s", page.body);
    promise_true(shows_on_page("\"twice\":0,"));
    pool_end(&demo);
    runs(&demo_owner, 0, "audit --lag 30d --wait 60s");
    pool_stop();
    promise_int_equal(
        super_ask(
            "SELECT count(*) FROM ledgerlock.payments WHERE kind = 'charge' AND state ="
            " 'captured'"),
        super_ask("SELECT count(*) FROM ledgerlock.charges WHERE state = 'paid'"));
}

/* Guarantee: Without a gateway the page has no button that is one's. */
CASE(button_of_the_gateway_needs_a_gateway)
{
    fixture_env("LEDGERLOCK_GATEWAY_URL", "");
    demo_start("--orders 0 --periods 0 --plain 1");
    assert_int_equal(http_get(demo_port, &page, "/state"), 200);
    assert_null(strstr(page.body, "lose-answers"));
    pool_end(&demo);
    fixture_env("LEDGERLOCK_GATEWAY_URL", getenv("U"));
    demo_start("--orders 0 --periods 0 --plain 1");
    FIXTURE_AWAIT(shows_on_page("\"name\":\"lose-answers\""), "%s", page.body);
    pool_end(&demo);
}
