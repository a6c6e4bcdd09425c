/* The verdict of the page, and that of `top`: what it would say if a guard had failed.
 */
#include "tests/lib/forged_rows.h"
#include "tests/lib/http.h"
#include "tests/lib/steps.h"

static struct http_answer a;

static void put_rows(void)
{
    super_do("%s", forged_rows);
}

WORLD(.poll_ms = 100, .also = put_rows);

#define VERDICT                                                                        \
    "SELECT concat_ws(' ', charges, wallets, skus, charged_twice, oversold, "          \
    "wrong_totals) FROM check_newest(NULL, 20)"

/* clang-format off */
static const struct {
    const char *name, *forged, *verdict;
} guards[] = {
    {"all_hold",             "",             "4 1 1 0 0 0"},
    {"charge_of_a_period",   FORGED_CHARGE,  "5 1 1 1 0 0"},
    {"payment_of_an_order",  FORGED_PAYMENT, "4 1 1 1 0 0"},
    {"sale_of_an_order",     FORGED_SALE,    "4 1 1 1 0 0"},
    {"stock_below_nothing",  FORGED_UNIT,    "4 1 1 0 1 0"},
    {"stock_without_source", FORGED_SHELF,   "4 1 1 0 0 1"},
    {"money_without_source", FORGED_WALLET,  "4 1 1 0 0 1"},
    {"charge_and_transfer",  FORGED_CHARGE
     "ALTER TABLE transfers DROP CONSTRAINT one_transfer_per_source; INSERT INTO transfers SELECT * FROM transfers WHERE kind = 'charge';"
     "UPDATE users SET balance_minor = balance_minor - 100 WHERE user_id = 1", "5 1 1 1 0 0"},
    {"what_is_older",        "UPDATE charges SET charged_at = now() - interval '6 minutes', period_start = period_start - interval '1 second',"
                             " period_end = period_end", "0 1 1 0 0 0"},
};

/* clang-format on */

/* Guarantee: If a guard failed, the verdict counts it at once, by rows alone: a
 * period charged twice, an order paid or moved twice, units that were never there, and
 * a wallet or a SKU that is not the sum of its rows. */
CASE_ROWS(failure_is_counted, guards)
{
    super_do(FORGED_BY_HAND "%s", row->forged);
    world_expect(row->verdict, VERDICT);
}

/* Guarantee: SKUs and movements that are too many to be counted are told as such. */
CASE(too_many_skus_are_not_counted)
{
    world_is(-1, "SELECT oversold FROM check_newest(NULL, 0)");
    world_is(0, "SELECT skus FROM check_newest(NULL, 0)");
}

static void await_verdict(int port, const char *state, const char *words)
{
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 && strstr(a.body, state) != NULL,
                  "no %s in: %s", state, a.body);
    FIXTURE_AWAIT(http_get(port, &a, "/plain") == 200 && strstr(a.body, words) != NULL,
                  "no %s in: %s", words, a.body);
}

/* Guarantee: The page, with JavaScript and without, says 0 charged twice, 0 oversold
 * and 0 totals wrong, and 1, 1 and 1 as soon as one of each is there. */
CASE(page_says_so_in_red)
{
    int port = fixture_free_port();

    pool_start("run -w 1 --http %d --http-audit-every-s 0", port);
    FIXTURE_AWAIT(super_ask("SELECT count(*) FROM ledgerlock.charges") == 6 &&
                      super_ask("SELECT count(*) FROM ledgerlock.orders WHERE state = "
                                "'pending'") == 1,
                  "what is due is not worked");
    await_verdict(port, "\"charged_twice\":0,\"oversold\":0,\"wrong_totals\":0",
                  "<p>0 charged twice, 0 oversold, 0 totals wrong</p>");
    super_do(FORGED_BY_HAND FORGED_CHARGE FORGED_UNIT FORGED_WALLET);
    await_verdict(port, "\"charged_twice\":1,\"oversold\":1,\"wrong_totals\":1",
                  "<p class=bad>1 charged twice, 1 oversold, 1 totals wrong</p>");
    http_browse(port, "--red");
    pool_stop();
}
