/* load: the generator, its calendar, and the copies into tables. */
#include "tests/lib/load.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"

enum { DAY = 86400, SKUS = 60, HOT = 6, HOT_QTY = 40, POOR_EVERY = 9 };

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int64_t below(uint64_t *state, int64_t n)
{
    return (int64_t)(draw(state) % (uint64_t)n);
}

/* ---- calendar ---- */

static int64_t days_before_year(int64_t y)
{
    return 365 * y + y / 4 - y / 100 + y / 400;
}

static int days_in_month(int64_t y, int64_t m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

    return m == 1 && leap ? 29 : days[m];
}

/* Days since 1970 of a date; months count from 0. */
static int64_t day_number(int64_t y, int64_t m, int64_t d)
{
    int64_t n = days_before_year(y - 1) - days_before_year(1969);

    for (int64_t i = 0; i < m; i++)
        n += days_in_month(y, i);
    return n + d - 1;
}

static void date_of(int64_t day, int64_t *y, int64_t *m, int64_t *d)
{
    *y = 1970;
    while (day >= day_number(*y + 1, 0, 1))
        (*y)++;
    *m = 0;
    while (day >= day_number(*y, *m, 1) + days_in_month(*y, *m))
        (*m)++;
    *d = day - day_number(*y, *m, 1) + 1;
}

/* The anchor's day in a later month, or that month's last day. */
static int64_t add_months(int64_t at, int64_t months)
{
    int64_t y, m, d, last;

    date_of(at / DAY, &y, &m, &d);
    m += months;
    y += m / 12;
    m %= 12;
    last = days_in_month(y, m);
    return day_number(y, m, d < last ? d : last) * DAY + at % DAY;
}

static int64_t period_start(const struct load_subscription *s, int64_t k)
{
    if (strcmp(s->unit, "month") == 0)
        return add_months(s->anchor_at, k);
    return s->anchor_at + k * (strcmp(s->unit, "week") == 0 ? 7 : 1) * DAY;
}

/* ---- the load ---- */

static void make_subscription(struct load *l, uint64_t *rng, size_t i)
{
    static const char *const units[] = {"month", "month", "month", "week", "day"};
    struct load_subscription *s = &l->subscriptions[i];
    struct load_user *u;

    s->user_id = (int64_t)(i % l->user_ct) + 1;
    s->unit = units[below(rng, 5)];
    s->amount_minor = 100 + below(rng, 5000);
    s->anchor_at = l->now -
                   below(rng, s->unit[0] == 'd'   ? 6
                              : s->unit[0] == 'w' ? 40
                                                  : 150) *
                       DAY -
                   below(rng, DAY);
    while (period_start(s, s->due) <= l->now)
        s->due++;
    s->paid = s->due;
    u = &l->users[s->user_id - 1];
    if (s->user_id % POOR_EVERY == 0) { /* this user's only subscription */
        s->paid = s->due / 2;
        u->balance_minor = s->paid * s->amount_minor + s->amount_minor - 1;
    } else {
        u->balance_minor += s->due * s->amount_minor;
    }
    l->periods_due += s->due;
    l->periods_paid += s->paid;
    l->charged_minor += s->paid * s->amount_minor;
}

static void add_line(struct load *l, struct load_order *o, int64_t sku_id, int64_t qty)
{
    struct load_sku *sku = &l->skus[sku_id - 1];

    o->sku_id[o->lines] = sku_id;
    o->qty[o->lines++] = qty;
    o->total_minor += qty * sku->price_minor;
    sku->wanted += qty;
}

static void make_order(struct load *l, uint64_t *rng, size_t i)
{
    struct load_order *o = &l->orders[i];
    int64_t plain = HOT + 1 + below(rng, SKUS - HOT);

    do {
        o->user_id = 1 + below(rng, (int64_t)l->user_ct);
    } while (o->user_id % POOR_EVERY == 0);
    if (below(rng, 3) > 0) {
        o->hot_sku_id = 1 + below(rng, HOT);
        add_line(l, o, o->hot_sku_id, 1);
    }
    if (o->hot_sku_id == 0 || below(rng, 2) == 0)
        add_line(l, o, plain, 1 + below(rng, 4));
    if (below(rng, 2) == 0)
        add_line(l, o, plain == SKUS ? HOT + 1 : plain + 1, 1 + below(rng, 3));
    l->users[o->user_id - 1].balance_minor += o->total_minor;
}

static void stock_up(struct load *l)
{
    for (size_t i = 0; i < l->sku_ct; i++) {
        struct load_sku *sku = &l->skus[i];

        sku->qty = sku->hot ? HOT_QTY : sku->wanted;
        if (sku->hot)
            l->hot_units += sku->wanted < HOT_QTY ? sku->wanted : HOT_QTY;
    }
}

void load_make(
    struct load *l, uint64_t seed, size_t users, size_t subscriptions, size_t orders)
{
    uint64_t rng = seed;

    *l = (struct load){.now = INT64_C(1775001600),
                       .user_ct = users,
                       .sku_ct = SKUS,
                       .order_ct = orders,
                       .hot_ct = HOT};
    l->users = calloc(users, sizeof *l->users);
    l->subscriptions = calloc(subscriptions, sizeof *l->subscriptions);
    l->skus = calloc(SKUS, sizeof *l->skus);
    l->orders = calloc(orders, sizeof *l->orders);
    for (size_t i = 0; i < SKUS; i++)
        l->skus[i] =
            (struct load_sku){.price_minor = 50 + below(&rng, 900), .hot = i < HOT};
    for (size_t i = 0; i < subscriptions; i++) {
        int64_t user = (int64_t)(i % users) + 1;

        if (user % POOR_EVERY != 0 || i < users) /* a poor user has one only */
            make_subscription(l, &rng, i);
    }
    l->subscription_ct = subscriptions;
    for (size_t i = 0; i < orders; i++)
        make_order(l, &rng, i);
    stock_up(l);
}

void load_free(struct load *l)
{
    free(l->users);
    free(l->subscriptions);
    free(l->skus);
    free(l->orders);
}

void load_now(const struct load *l, char *buf, size_t size)
{
    int64_t y, m, d;

    date_of(l->now / DAY, &y, &m, &d);
    (void)snprintf(buf, size, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)y, (int)m + 1,
                   (int)d, (int)(l->now % DAY / 3600), (int)(l->now % 3600 / 60),
                   (int)(l->now % 60));
}

/* ---- into tables ---- */

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

static void run(PGconn *conn, const char *sql, ExecStatusType want)
{
    PGresult *res = PQexec(conn, sql);

    if (PQresultStatus(res) != want)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(res);
}

static void put(PGconn *conn, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void put(PGconn *conn, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    assert_int_equal(PQputCopyData(conn, line, n), 1);
}

static void end_copy(PGconn *conn)
{
    PGresult *res;

    assert_int_equal(PQputCopyEnd(conn, NULL), 1);
    res = PQgetResult(conn);
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(res);
    assert_null(PQgetResult(conn));
}

/* Both shapes of tables take the same rows; the statements are the caller's. */
struct target {
    const char *users, *subscriptions, *skus, *orders, *lines;
};

static void copy_orders(const struct load *l, PGconn *conn, const struct target *t)
{
    run(conn, t->orders, PGRES_COPY_IN);
    for (size_t i = 0; i < l->order_ct; i++) {
        const struct load_order *o = &l->orders[i];
        int64_t lowest = o->sku_id[0];

        for (size_t k = 1; k < o->lines; k++)
            lowest = o->sku_id[k] < lowest ? o->sku_id[k] : lowest;
        put(conn,
            "%zu\t%" PRId64 "\torder-%zu\t\\\\x00\t%" PRId64 "\tEUR\t%" PRId64
            "\t2026-01-01\n",
            i + 1, o->user_id, i + 1, o->total_minor, lowest % 64);
    }
    end_copy(conn);
    run(conn, t->lines, PGRES_COPY_IN);
    for (size_t i = 0; i < l->order_ct; i++) {
        const struct load_order *o = &l->orders[i];

        for (size_t k = 0; k < o->lines; k++)
            put(conn, "%zu\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n", i + 1,
                o->sku_id[k], l->skus[o->sku_id[k] - 1].price_minor, o->qty[k]);
    }
    end_copy(conn);
}

static void copy_all(const struct load *l, PGconn *conn, const struct target *t)
{
    run(conn, t->users, PGRES_COPY_IN);
    for (size_t i = 0; i < l->user_ct; i++)
        put(conn, "%zu\t%" PRId64 "\tEUR\n", i + 1, l->users[i].balance_minor);
    end_copy(conn);
    run(conn, t->subscriptions, PGRES_COPY_IN);
    for (size_t i = 0; i < l->subscription_ct; i++) {
        const struct load_subscription *s = &l->subscriptions[i];

        if (s->user_id != 0)
            put(conn,
                "%zu\t%" PRId64 "\tplan-%zu\t%" PRId64 "\tEUR\tepoch\t%s\t1\tepoch\n",
                i + 1, s->user_id, i + 1, s->amount_minor, s->unit);
    }
    end_copy(conn);
    run(conn, t->skus, PGRES_COPY_IN);
    for (size_t i = 0; i < l->sku_ct; i++)
        put(conn, "%zu\tsku-%zu\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\tEUR\n", i + 1,
            i + 1, l->skus[i].qty, l->skus[i].qty, l->skus[i].price_minor);
    end_copy(conn);
    copy_orders(l, conn, t);
}

/* COPY reads instants as text; anchors are set from their seconds here. */
static void set_anchors(const struct load *l, PGconn *conn, const char *table)
{
    char sql[256];

    run(conn, "CREATE TEMP TABLE anchors (id bigint, at bigint)", PGRES_COMMAND_OK);
    run(conn, "COPY anchors FROM STDIN", PGRES_COPY_IN);
    for (size_t i = 0; i < l->subscription_ct; i++)
        put(conn, "%zu\t%" PRId64 "\n", i + 1, l->subscriptions[i].anchor_at);
    end_copy(conn);
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE %s AS s SET anchor_at = to_timestamp(at), next_due_at = to_timestamp(at) "
        "FROM anchors WHERE id = subscription_id",
        table);
    run(conn, sql, PGRES_COMMAND_OK);
    run(conn, "DROP TABLE anchors", PGRES_COMMAND_OK);
}

void load_fill_ledgerlock(const struct load *l, const char *url)
{
    static const struct target target = {
        "COPY ledgerlock.users (user_id, balance_minor, currency) FROM STDIN",
        "COPY ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, currency, "
        "anchor_at, unit, every, next_due_at) FROM STDIN",
        "COPY ledgerlock.stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) "
        "FROM STDIN",
        "COPY ledgerlock.orders (order_id, user_id, idempotency_key, request_hash, total_minor, "
        "currency, bucket, placed_at) FROM STDIN",
        "COPY ledgerlock.order_lines (order_id, sku_id, unit_price_minor, qty) FROM STDIN"};
    PGconn *conn = connect_to(url);

    run(conn, "BEGIN", PGRES_COMMAND_OK);
    copy_all(l, conn, &target);
    set_anchors(l, conn, "ledgerlock.subscriptions");
    run(conn,
        "INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, "
        "amount_minor, currency, moved_at) SELECT 'deposit', user_id, 0, user_id, 'cash', "
        "'wallet', balance_minor, currency, '2026-01-01' FROM ledgerlock.users WHERE balance_minor > 0",
        PGRES_COMMAND_OK);
    run(conn, "COMMIT", PGRES_COMMAND_OK);
    PQfinish(conn);
}

void load_fill_naive(const struct load *l, const char *url)
{
    static const struct target target = {
        "COPY naive.users (user_id, balance_minor, currency) FROM STDIN",
        "COPY naive.subscriptions (subscription_id, user_id, plan, amount_minor, currency, "
        "anchor_at, unit, every, next_due_at) FROM STDIN",
        "COPY naive.stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) FROM STDIN",
        "COPY naive.orders (order_id, user_id, idempotency_key, request_hash, total_minor, "
        "currency, bucket, placed_at) FROM STDIN",
        "COPY naive.order_lines (order_id, sku_id, unit_price_minor, qty) FROM STDIN"};
    PGconn *conn = connect_to(url);

    run(conn,
        "CREATE SCHEMA naive;"
        "CREATE TABLE naive.users (user_id bigint, balance_minor bigint, currency text);"
        "CREATE TABLE naive.subscriptions (subscription_id bigint, user_id bigint, plan text, "
        "  amount_minor bigint, currency text, anchor_at timestamptz, unit text, every int, "
        "  next_due_at timestamptz, next_period_no bigint DEFAULT 0);"
        "CREATE TABLE naive.charges (subscription_id bigint, period_no bigint, amount_minor bigint);"
        "CREATE TABLE naive.stock (sku_id bigint, sku text, initial_qty bigint, on_hand bigint, "
        "  unit_price_minor bigint, currency text);"
        "CREATE TABLE naive.orders (order_id bigint, user_id bigint, idempotency_key text, "
        "  request_hash text, total_minor bigint, currency text, bucket int, placed_at timestamptz, "
        "  state text DEFAULT 'pending');"
        "CREATE TABLE naive.order_lines (order_id bigint, sku_id bigint, unit_price_minor bigint, "
        "  qty bigint);"
        "CREATE TABLE naive.sales (order_id bigint, sku_id bigint, qty bigint)",
        PGRES_COMMAND_OK);
    copy_all(l, conn, &target);
    set_anchors(l, conn, "naive.subscriptions");
    run(conn,
        "CREATE INDEX ON naive.subscriptions (subscription_id); CREATE INDEX ON naive.users (user_id);"
        "CREATE INDEX ON naive.orders (order_id); CREATE INDEX ON naive.order_lines (order_id);"
        "CREATE INDEX ON naive.stock (sku_id); CREATE INDEX ON naive.subscriptions (next_due_at)",
        PGRES_COMMAND_OK);
    PQfinish(conn);
}
