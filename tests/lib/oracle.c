/* oracle: the rows as they were read, served from end to end. */
#include "tests/lib/oracle.h"

#include "tests/lib/fixture.h"
#include "tests/lib/session.h"

#define STOCK "SELECT on_hand FROM stock ORDER BY sku_id"
#define WALLETS "SELECT balance_minor FROM users ORDER BY user_id"

/* Columns of a row: one SKU of an order. */
enum { ORDER, USER, TOTAL, SKU, QTY };

static PGconn *conn;
static PGresult *lines;
static char late[512];
static int64_t *stock, *wallets;

static int64_t *read_column(const char *sql)
{
    PGresult *res = session_ask(conn, sql);
    int64_t *column = calloc((size_t)PQntuples(res) + 1, sizeof *column);

    assert_non_null(column);
    for (int row = 0; row < PQntuples(res); row++)
        column[row] = session_number(res, row, 0);
    PQclear(res);
    return column;
}

void oracle_read(const char *url, const char *condition)
{
    char sql[2048];

    conn = session_open(url);
    (void)snprintf(late, sizeof late, "%s", condition);
    (void)snprintf(sql, sizeof sql,
                   "SELECT o.order_id, u.i - 1, o.total_minor, coalesce(s.i - 1, 0),"
                   " coalesce(sum(l.qty), 0) FROM orders AS o"
                   " JOIN (SELECT user_id, row_number() OVER (ORDER BY user_id) AS i"
                   " FROM users) AS u USING (user_id)"
                   " LEFT JOIN order_lines AS l USING (order_id)"
                   " LEFT JOIN (SELECT sku_id, row_number() OVER (ORDER BY sku_id) AS i"
                   " FROM stock) AS s USING (sku_id) WHERE o.state = 'pending'"
                   " GROUP BY o.order_id, u.i, s.i"
                   " ORDER BY CASE WHEN %s THEN 1 ELSE 0 END, o.placed_at, o.order_id",
                   late);
    lines = session_ask(conn, sql);
    stock = read_column(STOCK);
    wallets = read_column(WALLETS);
}

/* 'F' when the order of these rows can be fulfilled, and is; else whether stock, wallet
 * or both are too short for it. */
static char serve(int first, int end)
{
    int64_t total = session_number(lines, first, TOTAL);
    int64_t *wallet = &wallets[session_number(lines, first, USER)];
    bool is_short = false, is_poor = total > *wallet;

    for (int row = first; row < end; row++)
        is_short = is_short || session_number(lines, row, QTY) >
                                   stock[session_number(lines, row, SKU)];
    if (is_short || is_poor)
        return is_short && is_poor ? 'B' : is_short ? 'S' : 'P';
    *wallet -= total;
    for (int row = first; row < end; row++)
        stock[session_number(lines, row, SKU)] -= session_number(lines, row, QTY);
    return 'F';
}

/* The first row of the next order. */
static int end_of(int row)
{
    const char *order = PQgetvalue(lines, row, ORDER);

    while (row < PQntuples(lines) && strcmp(PQgetvalue(lines, row, ORDER), order) == 0)
        row++;
    return row;
}

static void assert_column(const char *sql, const int64_t *expected)
{
    PGresult *res = session_ask(conn, sql);

    for (int row = 0; row < PQntuples(res); row++) {
        if (session_number(res, row, 0) != expected[row])
            promise_broken("%s: row %d is %s, not %" PRId64, sql, row,
                           PQgetvalue(res, row, 0), expected[row]);
    }
    PQclear(res);
}

/* A letter for each order that was pending, in their order. */
static PGresult *read_outcomes(void)
{
    char sql[1024];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT CASE WHEN state = 'fulfilled' THEN 'F' WHEN reason ="
        " 'out_of_stock' THEN 'S' WHEN reason = 'insufficient_funds' THEN"
        " 'P' ELSE '?' END, order_id FROM orders AS o WHERE reason IS"
        " DISTINCT FROM 'unknown_sku' ORDER BY CASE WHEN %s THEN 1 ELSE 0 END, placed_at, order_id",
        late);
    return session_ask(conn, sql);
}

int64_t oracle_assert_served(void)
{
    PGresult *outcomes = read_outcomes();
    int64_t fulfilled = 0, wrong = 0;
    int order = 0;

    for (int row = 0, end; row < PQntuples(lines); row = end, order++) {
        char is = *PQgetvalue(outcomes, order, 0), must;

        assert_string_equal(PQgetvalue(outcomes, order, 1),
                            PQgetvalue(lines, row, ORDER));
        end = end_of(row);
        must = serve(row, end);
        fulfilled += must == 'F';
        if (is != must && !(must == 'B' && (is == 'S' || is == 'P')) && wrong++ == 0)
            print_message("order %s, placed as number %d: %c, not %c\n",
                          PQgetvalue(lines, row, ORDER), order + 1, is, must);
    }
    assert_int_equal(order, PQntuples(outcomes));
    if (wrong > 0)
        promise_broken("%" PRId64
                       " of %d orders have another outcome than one after the other",
                       wrong, order);
    assert_column(STOCK, stock);
    assert_column(WALLETS, wallets);
    PQclear(outcomes);
    PQclear(lines);
    PQfinish(conn);
    free(stock);
    free(wallets);
    return fulfilled;
}
