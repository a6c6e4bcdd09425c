/* tables: plain reads; nothing is decided in SQL but sums, and which rows are pairs. */
#include "tests/checker/tables.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/checker/say.h"

/* $1 is the instant. Columns and order of the rows are those of tables.h. */
static const struct {
    size_t table; /* in struct tables */
    const char *sql;
} reads[] = {
    {offsetof(struct tables, subs),
     "SELECT subscription_id, (extract(epoch FROM anchor_at) * 1000000)::bigint,"
     " ascii(unit), every, coalesce((extract(epoch FROM cancel_at) * 1000000)::bigint, 0),"
     " CASE WHEN state IN ('active', 'past_due', 'unpaid', 'cancelled') THEN 0 ELSE 3 END,"
     " amount_minor FROM subscriptions ORDER BY 1"},
    {offsetof(struct tables, charges),
     "SELECT subscription_id, period_no, amount_minor, (state = 'captured')::int, fence"
     " FROM charges ORDER BY 1, 2, 4"},
    {offsetof(struct tables, orders),
     "SELECT order_id, CASE state WHEN 'pending' THEN CASE WHEN placed_at <= $1 THEN 0"
     " ELSE 4 END WHEN 'fulfilled' THEN 1 WHEN 'rejected' THEN 2 ELSE 3 END, fence"
     " FROM orders ORDER BY 1"},
    {offsetof(struct tables, captured),
     "SELECT subscription_id, period_no, amount_minor, user_id FROM charges WHERE state ="
     " 'captured' ORDER BY 1, 2, 3, 4"},
    {offsetof(struct tables, booked),
     "SELECT source, leg, amount_minor, user_id FROM transfers WHERE kind = 'charge'"
     " ORDER BY 1, 2, 3, 4"},
    {offsetof(struct tables, fulfilled),
     "SELECT order_id, total_minor, user_id FROM orders WHERE state = 'fulfilled' AND"
     " total_minor > 0 ORDER BY 1, 2, 3"},
    {offsetof(struct tables, paid),
     "SELECT source, amount_minor, user_id FROM transfers"
     " WHERE kind = 'payment' ORDER BY 1, 2, 3"},
    {offsetof(struct tables, lines),
     "SELECT order_id, sku_id, sum(qty)::bigint FROM order_lines JOIN orders USING"
     " (order_id) WHERE state = 'fulfilled' GROUP BY 1, 2 ORDER BY 1, 2"},
    {offsetof(struct tables, moved), "SELECT source, sku_id, -qty FROM stock_movements"
                                     " WHERE kind = 'sale' ORDER BY 1, 2, 3"},
    {offsetof(struct tables, user_writes),
     "SELECT t.user_id, t.xmin::text::bigint, 0, coalesce(c.fence, o.fence,"
     " 0) FROM transfers AS t LEFT JOIN charges AS c ON t.kind = 'charge' AND"
     " c.subscription_id = t.source AND c.period_no = t.leg LEFT JOIN orders AS o ON"
     " t.kind = 'payment' AND o.order_id = t.source WHERE t.kind <> 'deposit'"},
    {offsetof(struct tables, sku_writes),
     "SELECT sku_id, xmin::text::bigint, 0, fence FROM"
     " stock_movements WHERE kind = 'sale'"},
    {offsetof(struct tables, totals),
     "SELECT order_id, total_minor, coalesce(sum(qty * l.unit_price_minor), 0)::bigint FROM"
     " orders LEFT JOIN order_lines AS l USING (order_id) GROUP BY 1, 2"},
    {offsetof(struct tables, wallets),
     "SELECT u.user_id, u.balance_minor, coalesce(sum(CASE WHEN t.kind = 'deposit' THEN"
     " t.amount_minor ELSE -t.amount_minor END), 0)::bigint FROM users AS u LEFT JOIN"
     " transfers AS t USING (user_id) GROUP BY 1, 2"},
    {offsetof(struct tables, shelves),
     "SELECT s.sku_id, s.on_hand, (s.initial_qty + coalesce(sum(m.qty), 0))::bigint FROM"
     " stock AS s LEFT JOIN stock_movements AS m USING (sku_id)"
     " GROUP BY s.sku_id, s.on_hand, s.initial_qty"},
    {offsetof(struct tables, money),
     "SELECT user_id, xmin::text::bigint, CASE kind WHEN 'payment' THEN source ELSE 0"
     " END, CASE debit WHEN 'wallet' THEN -amount_minor ELSE amount_minor END FROM transfers"},
    {offsetof(struct tables, goods),
     "SELECT sku_id, xmin::text::bigint, CASE kind WHEN 'sale' THEN source ELSE 0 END,"
     " qty FROM stock_movements UNION ALL SELECT sku_id, 0, 0, initial_qty FROM stock"},
    {offsetof(struct tables, declined),
     "SELECT subscription_id, xmin::text::bigint, user_id, amount_minor FROM charges WHERE state = 'declined'"},
    {offsetof(struct tables, poor),
     "SELECT order_id, xmin::text::bigint, user_id, total_minor FROM orders WHERE reason = 'insufficient_funds'"},
    {offsetof(struct tables, shortages),
     "SELECT o.order_id, o.xmin::text::bigint, s.sku_id, coalesce((SELECT sum(qty) FROM"
     " order_lines AS l WHERE l.order_id = o.order_id AND l.sku_id = s.sku_id),"
     " 0)::bigint FROM orders AS o, unnest(o.skus) AS short JOIN stock AS s ON s.sku ="
     " short WHERE reason = 'out_of_stock'"},
};

static struct table *table_of(struct tables *t, size_t i)
{
    return (struct table *)(void *)((char *)t + reads[i].table);
}

static PGresult *query(PGconn *conn, const char *sql, const char *param)
{
    PGresult *res = param == NULL
                        ? PQexec(conn, sql)
                        : PQexecParams(conn, sql, 1, NULL, (const char *const[]){param},
                                       NULL, NULL, 0);

    if (PQresultStatus(res) != PGRES_TUPLES_OK &&
        PQresultStatus(res) != PGRES_COMMAND_OK)
        die("%s: %s", sql, PQerrorMessage(conn));
    return res;
}

static void
read_table(PGconn *conn, struct table *t, const char *sql, const char *param)
{
    PGresult *res = query(conn, sql, param);

    t->rows = (size_t)PQntuples(res);
    t->columns = (size_t)PQnfields(res);
    t->values = room_for(t->rows * t->columns, sizeof *t->values);
    for (size_t i = 0; i < t->rows * t->columns; i++)
        t->values[i] = strtoll(
            PQgetvalue(res, (int)(i / t->columns), (int)(i % t->columns)), NULL, 10);
    PQclear(res);
}

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        die("%s", PQerrorMessage(conn));
    PQclear(query(conn, "SET search_path = ledgerlock", NULL));
    PQclear(query(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ", NULL));
    return conn;
}

void tables_read(struct tables *t, const char *url, const char *now, const char *first)
{
    PGconn *conn = connect_to(url);
    const char *at = now == NULL ? "now" : now;
    struct table clock;

    if (first != NULL) { /* also what the triggers refuse */
        PQclear(PQexec(conn, "SET ledgerlock.repair = on"));
        PQclear(query(conn, first, NULL));
    }
    read_table(conn, &clock,
               "SELECT (extract(epoch FROM $1::timestamptz) * 1000000)::bigint", at);
    t->now_us = clock.values[0];
    free(clock.values);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        read_table(conn, table_of(t, i), reads[i].sql,
                   strstr(reads[i].sql, "$1") != NULL ? at : NULL);
    PQfinish(conn);
}

void tables_free(struct tables *t)
{
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        free(table_of(t, i)->values);
}
