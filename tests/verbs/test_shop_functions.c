/* shop functions: SKUs and their prices from two sessions at once. The rest is told in
 * tests/sql. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

static void prepare(void)
{
    client_open();
    world_sku(65, "A", 10, 250);
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

/* Guarantee: A SKU that two sessions make at once is one SKU, and both get its number.
 */
CASE(sku_from_two_sessions_at_once_is_one)
{
    PGconn *a = session_open(client), *b = session_open(client);
    PGresult *first, *second;

    session_do(b, "SET lock_timeout = '60s'");
    session_do(a, "BEGIN");
    first = session_ask(a, "SELECT create_sku('NEW', 500, 'USD')");
    session_sticks(b, "SELECT create_sku('NEW', 500, 'USD')", world.owner);
    session_do(a, "COMMIT");
    second = PQgetResult(b);
    promise_int_equal(session_number(second, 0, 0), session_number(first, 0, 0));
    PQclear(first);
    PQclear(second);
    PQfinish(a);
    PQfinish(b);
    world_expect("1", "SELECT count(*) FROM stock WHERE sku = 'NEW'");
}

/* Guarantee: Of two changes of one price at once the second counts from the first. */
CASE(two_changes_of_a_price_at_once_follow_each_other)
{
    PGconn *a = session_open(client), *b = session_open(client);

    session_do(b, "SET lock_timeout = '60s'");
    session_do(a, "BEGIN; SELECT set_sku_price('A', 300, 250)");
    session_sticks(b, "SELECT set_sku_price('A', 400, 250)", world.owner);
    session_do(a, "COMMIT");
    session_refused("LL003", PQgetResult(b));
    PQfinish(a);
    PQfinish(b);
    world_expect("300", "SELECT unit_price_minor FROM stock");
}
