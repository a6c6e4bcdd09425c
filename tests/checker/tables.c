/* tables: plain reads; nothing is decided in SQL but sums of what must add up. */
#include "tests/checker/tables.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/checker/say.h"

static const char sql_subs[] =
    "SELECT subscription_id, (extract(epoch FROM anchor_at) * 1000000)::bigint,"
    " array_position(ARRAY['day', 'week', 'month', 'year'], unit) - 1, every,"
    " coalesce((extract(epoch FROM cancel_at) * 1000000)::bigint, 0),"
    " CASE WHEN state IN ('active', 'past_due', 'unpaid', 'cancelled') THEN 0 ELSE 3 END"
    " FROM subscriptions ORDER BY 1";
static const char sql_charges[] =
    "SELECT subscription_id, period_no, user_id, amount_minor,"
    " (state = 'captured')::int, fence FROM charges ORDER BY 1, 2, 5";
static const char sql_booked[] = "SELECT source, leg, amount_minor, user_id FROM"
                                 " transfers WHERE kind = 'charge' ORDER BY 1, 2";
static const char sql_orders[] =
    "SELECT order_id, CASE state WHEN 'pending' THEN CASE WHEN placed_at <= $1 THEN 0"
    " ELSE 4 END WHEN 'fulfilled' THEN 1 WHEN 'rejected' THEN 2 ELSE 3 END,"
    " total_minor, fence, user_id FROM orders ORDER BY 1";
static const char sql_paid[] = "SELECT source, amount_minor, user_id FROM transfers"
                               " WHERE kind = 'payment' ORDER BY 1";
static const char sql_lines[] = "SELECT order_id, sku_id, sum(qty)::bigint FROM"
                                " order_lines GROUP BY 1, 2 ORDER BY 1, 2";
static const char sql_moved[] = "SELECT source, sku_id, -qty FROM stock_movements"
                                " WHERE kind = 'sale' ORDER BY 1, 2";
static const char sql_user_writes[] =
    "SELECT t.user_id, t.xmin::text::bigint, coalesce(c.fence, o.fence,"
    " 0) FROM transfers AS t LEFT JOIN charges AS c ON t.kind = 'charge' AND"
    " c.subscription_id = t.source AND c.period_no = t.leg LEFT JOIN orders AS o ON"
    " t.kind = 'payment' AND o.order_id = t.source WHERE t.kind <> 'deposit'";
static const char sql_sku_writes[] =
    "SELECT sku_id, xmin::text::bigint, fence FROM stock_movements"
    " WHERE kind = 'sale'";
static const char sql_wallets[] =
    "SELECT u.user_id, u.balance_minor, coalesce(sum(CASE WHEN t.kind = 'deposit' THEN"
    " t.amount_minor ELSE -t.amount_minor END), 0)::bigint FROM users AS u LEFT JOIN"
    " transfers AS t USING (user_id) GROUP BY 1, 2 ORDER BY 1";
static const char sql_shelves[] =
    "SELECT s.sku_id, s.on_hand, (s.initial_qty + coalesce(sum(m.qty), 0))::bigint FROM"
    " stock AS s LEFT JOIN stock_movements AS m USING (sku_id)"
    " GROUP BY s.sku_id, s.on_hand, s.initial_qty ORDER BY 1";

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
    t->values = calloc(t->rows * t->columns + 1, sizeof *t->values);
    if (t->values == NULL)
        die("out of memory");
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
    PQclear(query(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL));
    return conn;
}

void tables_read(struct tables *t, const char *url, const char *now)
{
    PGconn *conn = connect_to(url);
    const char *instant = now == NULL ? "now" : now;
    struct table clock;

    read_table(conn, &clock,
               "SELECT (extract(epoch FROM $1::timestamptz) * 1000000)::bigint",
               instant);
    t->now_us = clock.values[0];
    free(clock.values);
    read_table(conn, &t->subs, sql_subs, NULL);
    read_table(conn, &t->charges, sql_charges, NULL);
    read_table(conn, &t->booked, sql_booked, NULL);
    read_table(conn, &t->orders, sql_orders, instant);
    read_table(conn, &t->paid, sql_paid, NULL);
    read_table(conn, &t->lines, sql_lines, NULL);
    read_table(conn, &t->moved, sql_moved, NULL);
    read_table(conn, &t->user_writes, sql_user_writes, NULL);
    read_table(conn, &t->sku_writes, sql_sku_writes, NULL);
    read_table(conn, &t->wallets, sql_wallets, NULL);
    read_table(conn, &t->shelves, sql_shelves, NULL);
    PQfinish(conn);
}

void tables_free(struct tables *t)
{
    struct table *all[] = {&t->subs,       &t->charges, &t->booked, &t->orders,
                           &t->paid,       &t->lines,   &t->moved,  &t->user_writes,
                           &t->sku_writes, &t->wallets, &t->shelves};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]->values);
}
