/* oracle: copies of orders, lines, stock and wallets in a schema of their own, served
 * in a loop from end to end. */
#include "tests/lib/oracle.h"

#include "tests/lib/steps.h"

void oracle_read(const char *late)
{
    world_do(
        "CREATE SCHEMA oracle; CREATE TABLE oracle.stock AS SELECT sku_id, on_hand FROM"
        " stock; CREATE TABLE oracle.wallets AS SELECT user_id, balance_minor FROM"
        " users; CREATE TABLE oracle.orders AS SELECT order_id, user_id, total_minor,"
        " ''::text AS must, row_number() OVER (ORDER BY %s, placed_at, order_id) AS n"
        " FROM orders AS o WHERE state = 'pending'; CREATE TABLE oracle.lines AS SELECT"
        " order_id, sku_id, sum(qty) AS qty FROM order_lines JOIN oracle.orders USING"
        " (order_id) GROUP BY 1, 2; ALTER TABLE oracle.stock ADD PRIMARY KEY (sku_id);"
        " ALTER TABLE oracle.wallets ADD PRIMARY KEY (user_id); ALTER TABLE"
        " oracle.orders ADD PRIMARY KEY (order_id); ALTER TABLE oracle.lines ADD PRIMARY"
        " KEY (order_id, sku_id); ANALYZE",
        late);
}

/* `must`: fulfilled, or each reason that is true. */
static const char serve[] =
    "DO $$ DECLARE o record; why text; BEGIN"
    " FOR o IN SELECT * FROM oracle.orders ORDER BY n LOOP"
    " why := concat_ws(' ', (SELECT 'out_of_stock' FROM oracle.lines JOIN oracle.stock"
    " USING (sku_id) WHERE order_id = o.order_id AND qty > on_hand LIMIT 1),"
    " (SELECT 'insufficient_funds' FROM oracle.wallets WHERE user_id = o.user_id AND"
    " balance_minor < o.total_minor));"
    " UPDATE oracle.orders SET must = coalesce(nullif(why, ''), 'fulfilled')"
    " WHERE order_id = o.order_id;"
    " IF why = '' THEN UPDATE oracle.wallets SET balance_minor = balance_minor -"
    " o.total_minor WHERE user_id = o.user_id; UPDATE oracle.stock AS s SET on_hand ="
    " on_hand - qty FROM oracle.lines AS l WHERE order_id = o.order_id AND l.sku_id ="
    " s.sku_id; END IF; END LOOP; END $$";

int64_t oracle_assert_served(void)
{
    world_do("%s", serve);
    world_expect("", "SELECT coalesce(string_agg(format('order %s: %s %s, not %s',"
                     " order_id, o.state, reason, must), '; ' ORDER BY n), '') FROM"
                     " oracle.orders LEFT JOIN orders AS o USING (order_id) WHERE"
                     " coalesce(reason, o.state, 'gone') <> ALL (string_to_array(must,"
                     " ' '))");
    world_is(0, "SELECT count(*) FROM oracle.stock AS o LEFT JOIN stock USING (sku_id)"
                " WHERE o.on_hand IS DISTINCT FROM stock.on_hand");
    world_is(0,
             "SELECT count(*) FROM oracle.wallets AS o LEFT JOIN users USING (user_id)"
             " WHERE o.balance_minor IS DISTINCT FROM users.balance_minor");
    return world_ask("SELECT count(*) FROM oracle.orders WHERE must = 'fulfilled'");
}
