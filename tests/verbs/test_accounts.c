/* accounts: an account is closed beside other sessions. All else of accounts is told in
 * tests/sql. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

static void prepare(void)
{
    client_open();
    world_do("INSERT INTO users (user_id, currency) VALUES (1, 'USD')");
    world_sku(1, "A", 10, 250);
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

#define CLOSE "SELECT close_account(1)"

/* Guarantee: An account is not closed over an order that was placed while close_account
 * waited: it refuses every isolation level that would not see it. */
CASE(account_is_not_closed_over_an_order_that_its_snapshot_misses)
{
    PGconn *support = session_open(client);

    session_do(support, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM workers");
    (void)ask("SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 1}]')");
    session_refused("LL002", PQexec(support, CLOSE));
    PQfinish(support);
    world_is(0, "SELECT count(*) FROM events WHERE event = 'closed'");
}
