/* load: what must have come out, reckoned from the draw, against the rows. */

#include "tests/lib/session.h"
#include "tests/lib/world.h"

enum { USERS = 1000, FIGURES = 6 };

static char words[1024];

__attribute__((format(printf, 1, 2))) static const char *wrong(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    return words;
}

/* A row must have this text and these figures. */
struct want {
    const char *text;
    int64_t figures[FIGURES];
};

/* `about` is what the row says of itself. */
typedef struct want (*expect_fn)(int64_t id, int64_t about);

static const char *check_row(const PGresult *res, int row, const struct want *want)
{
    bool is_right = strcmp(PQgetvalue(res, row, 2), want->text) == 0;
    char is[256] = "", should[256] = "";

    for (int i = 0; i + 3 < PQnfields(res); i++) {
        is_right = is_right && session_number(res, row, i + 3) == want->figures[i];
        (void)sprintf(is + strlen(is), " %s", PQgetvalue(res, row, i + 3));
        (void)sprintf(should + strlen(should), " %" PRId64, want->figures[i]);
    }
    return is_right ? NULL
                    : wrong("row %s is %s%s, expected %s%s", PQgetvalue(res, row, 0),
                            PQgetvalue(res, row, 2), is, want->text, should);
}

/* Columns: the row's id, a number about it, its text, its figures. The first row that
 * is wrong ends it. */
static const char *
every_row(PGconn *conn, size_t rows, expect_fn expect, const char *sql)
{
    PGresult *res = session_ask(conn, sql);
    const char *found = NULL;

    if ((size_t)PQntuples(res) != rows)
        found = wrong("%d rows, not %zu: %s", PQntuples(res), rows, sql);
    for (int row = 0; found == NULL && row < PQntuples(res); row++) {
        struct want want =
            expect(session_number(res, row, 0), session_number(res, row, 1));

        found = check_row(res, row, &want);
    }
    PQclear(res);
    return found;
}

/* ---- subscriptions: about each is its cancel_at ---- */

#define CANCEL_AT "coalesce(extract(epoch FROM cancel_at), 0)::bigint"

static size_t subscriptions_of(void)
{
    size_t n = 0;

    for (size_t i = 0; i < world.load.size.subscriptions; i++)
        n += world.load.subscriptions[i].user_id != 0;
    return n;
}

/* First period that is not charged, from the row's cancel_at: the period behind the one
 * that ran at the instant that the client gave, or behind those that were charged by
 * then. -1: that instant is no boundary that it may be. */
static int64_t paid_of(const struct load_subscription *s, int64_t cancel_at)
{
    int64_t most = s->is_early ? s->cancel_no + 1 : s->due;

    if (s->cancel_no < 0)
        return cancel_at == 0 ? s->paid : -1;
    for (int64_t k = s->cancel_no + 1; k <= most; k++) {
        if (calendar_start(&s->plan, k) == cancel_at)
            return k;
    }
    return -1;
}

static struct want expect_charges(int64_t id, int64_t end)
{
    const struct load_subscription *s = &world.load.subscriptions[id - 1];
    int64_t paid = paid_of(s, end);

    return (struct want){"", {paid, paid * s->amount_minor, paid - 1}};
}

const char *load_wrong_charges(PGconn *conn)
{
    PGresult *res =
        session_ask(conn, "SELECT FROM charges AS c WHERE NOT EXISTS (SELECT FROM"
                          " subscriptions AS s WHERE s.subscription_id ="
                          " c.subscription_id AND s.user_id = c.user_id)");
    int strange = PQntuples(res);

    PQclear(res);
    if (strange != 0)
        return wrong("%d charges of nobody's subscription", strange);
    return every_row(
        conn, subscriptions_of(), expect_charges,
        "SELECT subscription_id, " CANCEL_AT
        ", '', coalesce(c.n, 0), coalesce(c.sum, 0), coalesce(c.last, -1) FROM"
        " subscriptions LEFT JOIN (SELECT subscription_id, count(*) AS n,"
        " sum(amount_minor), max(period_no) AS last FROM charges WHERE state IN"
        " ('captured', 'paid') GROUP BY 1) AS c USING (subscription_id)");
}

static bool is_poor(const struct load_subscription *s)
{
    return world.load.users[s->user_id - 1].kind == LOAD_POOR;
}

static struct want expect_declines(int64_t id, int64_t end)
{
    const struct load_subscription *s = &world.load.subscriptions[id - 1];
    int64_t n = is_poor(s);

    (void)end;
    return (struct want){"", {n, n * s->paid, n * s->amount_minor, n * LOAD_TRIES}};
}

const char *load_wrong_declines(PGconn *conn)
{
    return every_row(
        conn, subscriptions_of(), expect_declines,
        "SELECT s.subscription_id, 0, '', count(c.period_no), coalesce(sum(c.period_no),"
        " 0), coalesce(sum(c.amount_minor), 0), coalesce(sum(c.tries), 0) FROM"
        " subscriptions AS s LEFT JOIN charges AS c ON c.subscription_id ="
        " s.subscription_id AND c.state = 'declined' GROUP BY 1");
}

/* The row of an unpaid subscription does not say when it would be due. */
static struct want expect_subscription(int64_t id, int64_t end)
{
    const struct load_subscription *s = &world.load.subscriptions[id - 1];
    int64_t paid = paid_of(s, end);

    if (is_poor(s))
        return (struct want){"unpaid", {paid, LOAD_TRIES}};
    return (struct want){s->cancel_no >= 0 && paid < s->due ? "cancelled" : "active",
                         {paid, 0, calendar_start(&s->plan, paid)}};
}

const char *load_wrong_subscriptions(PGconn *conn)
{
    return every_row(
        conn, subscriptions_of(), expect_subscription,
        "SELECT subscription_id, " CANCEL_AT
        ", state, next_period_no, retries, CASE WHEN"
        " state <> 'unpaid' THEN extract(epoch FROM next_due_at)::bigint END FROM"
        " subscriptions");
}

/* ---- orders, stock, wallets ---- */

/* The fulfilled orders have moved this, by the draw. */
static struct {
    int64_t sold[LOAD_SKUS], spent[USERS + 1];
    int orders[USERS + 1]; /* of each user */
} fulfilled;

static void gather_fulfilled(PGconn *conn)
{
    PGresult *res =
        session_ask(conn, "SELECT substr(idempotency_key, 7) FROM orders WHERE"
                          " state = 'fulfilled'");

    assert_true(world.load.size.users <= USERS);
    memset(&fulfilled, 0, sizeof fulfilled);
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_order *o = &world.load.orders[session_number(res, row, 0)];

        fulfilled.orders[o->user_id]++;
        fulfilled.spent[o->user_id] += o->total_minor;
        for (size_t k = 0; k < o->lines; k++)
            fulfilled.sold[o->sku_id[k] - 1] += o->qty[k];
    }
    PQclear(res);
}

/* A rejected order had a reason; which orders are rejected is not drawn. */
static struct want expect_order(int64_t id, int64_t is_done)
{
    static char reason[64];
    const struct load_order *o = &world.load.orders[id];
    struct want want = {"fulfilled", {o->user_id, o->total_minor}};

    if (is_done == 0 && world.load.users[o->user_id - 1].kind == LOAD_THRIFTY) {
        want.text = "rejected insufficient_funds";
    } else if (is_done == 0 && o->hot_sku_id != 0) {
        (void)sprintf(reason, "rejected out_of_stock sku-%" PRId64, o->hot_sku_id);
        want.text = reason;
    }
    for (size_t k = 0; k < o->lines; k++)
        want.figures[2] += o->qty[k];
    want.figures[3] = (int64_t)o->lines;
    want.figures[4] = o->total_minor;
    return want;
}

/* Of the two orders of a user that has money for one, one is fulfilled. */
static const char *wrong_pairs(PGconn *conn)
{
    gather_fulfilled(conn);
    for (size_t i = 0; i < world.load.size.orders; i++) {
        int64_t user = world.load.orders[i].user_id;

        if (world.load.users[user - 1].kind == LOAD_THRIFTY &&
            fulfilled.orders[user] != 1)
            return wrong("user %" PRId64 " has %d orders, and money for one", user,
                         fulfilled.orders[user]);
    }
    return NULL;
}

const char *load_wrong_orders(PGconn *conn)
{
    const char *found = every_row(
        conn, world.load.size.orders, expect_order,
        "SELECT substr(idempotency_key, 7), (state = 'fulfilled')::int, concat_ws(' ',"
        " state, reason, array_to_string(skus, ' ')), user_id, total_minor,"
        " coalesce(l.qty, 0), coalesce(l.n, 0), coalesce(l.cost, 0) FROM orders"
        " LEFT JOIN (SELECT order_id, sum(qty) AS qty, count(*) AS n, sum(qty *"
        " unit_price_minor) AS cost FROM order_lines GROUP BY 1) AS l USING (order_id)");

    return found != NULL ? found : wrong_pairs(conn);
}

/* A hot SKU is sold out unless more came while the pool ran. */
static struct want expect_sku(int64_t id, int64_t about)
{
    const struct load_sku *sku = &world.load.skus[id - 1];
    int64_t more = LOAD_LOTS * sku->lot, sold = fulfilled.sold[id - 1];
    int64_t least = sku->wanted < sku->qty ? sku->wanted : sku->qty;

    (void)about;
    if (sold > sku->qty + more ||
        (sku->is_hot && (sold < least || (more == 0 && sold != least))))
        return (struct want){.text = "another number of pieces sold"};
    return (struct want){"", {sku->qty + more - sold, sold, more}};
}

const char *load_wrong_stock(PGconn *conn)
{
    gather_fulfilled(conn);
    return every_row(
        conn, LOAD_SKUS, expect_sku,
        "SELECT sku_id, 0, '', on_hand, coalesce(l.qty, 0), coalesce(d.qty, 0) FROM"
        " stock LEFT JOIN (SELECT sku_id, sum(qty) AS qty FROM order_lines JOIN orders"
        " USING (order_id) WHERE state = 'fulfilled' GROUP BY 1) AS l USING (sku_id)"
        " LEFT JOIN (SELECT sku_id, sum(qty) AS qty FROM stock_entries GROUP BY 1) AS d"
        " USING (sku_id)");
}

static struct want expect_wallet(int64_t id, int64_t about)
{
    const struct load_user *u = &world.load.users[id - 1];
    int64_t paid_in = u->balance_minor + u->deposit_minor;
    int64_t spent = u->kind == LOAD_CARD ? 0 : fulfilled.spent[id];

    (void)about;
    return (struct want){"", {paid_in - spent, paid_in}};
}

const char *load_wrong_wallets(PGconn *conn)
{
    PGresult *res =
        session_ask(conn, "SELECT subscription_id, " CANCEL_AT " FROM subscriptions");

    gather_fulfilled(conn);
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_subscription *s =
            &world.load.subscriptions[session_number(res, row, 0) - 1];

        fulfilled.spent[s->user_id] +=
            paid_of(s, session_number(res, row, 1)) * s->amount_minor;
    }
    PQclear(res);
    return every_row(
        conn, world.load.size.users, expect_wallet,
        "SELECT user_id, 0, '', balance_minor, coalesce(d.sum, 0) FROM"
        " users LEFT JOIN (SELECT user_id, sum(amount_minor) FROM wallet_entries"
        " GROUP BY 1) AS d USING (user_id)");
}

/* ---- all of it ---- */

PGconn *load_connect(void)
{
    PGconn *conn = session_open(world.owner);

    session_do(conn, "SET client_min_messages = error");
    return conn;
}

void load_assert_exact(void)
{
    static const char *(*const checks[])(PGconn *) = {
        load_wrong_charges, load_wrong_declines, load_wrong_subscriptions,
        load_wrong_stock,   load_wrong_orders,   load_wrong_wallets};
    PGconn *conn = load_connect();

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        const char *found = checks[i](conn);

        if (found != NULL)
            promise_broken("LL_TEST_SEED=%" PRIu64 ": %s", world.load.seed, found);
    }
    PQfinish(conn);
    world_audit(NULL, NULL);
    checker_assert_rows("now");
}
