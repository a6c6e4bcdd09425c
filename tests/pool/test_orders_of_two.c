/* orders of two: two workers go for the same row, in every order in which they can come
 * to six points of their batches: 12 moves, 6 of each, 924 orders.
 *
 * A move lets one worker go on to its next point. Beside it runs a model that says
 * where the worker must arrive: one that is refused begins again, and what then is left
 * of the order is an order that cannot be. After every order both end their batches,
 * and the rows are compared. */
#include "tests/lib/points.h"
#include "tests/lib/shop.h"

enum { MOVES = 6, ORDERS = 924 };

/* ---- the model: the rules of the locks, of the rows and of the fence ---- */

/* The points of a batch, in their order. */
enum {
    BEFORE_LOCK,
    AFTER_LOCK,
    AFTER_CLAIM,
    BEFORE_COMMIT,
    AFTER_COMMIT,
    BEFORE_RELEASE
};

static const char *const names[] = {"before_lock",   "after_lock",   "after_claim",
                                    "before_commit", "after_commit", "before_release"};

enum { NOBODY = 2 };

/* Keeps the two apart. */
enum guard {
    LOCKS,      /* as shipped */
    LOCKS_LOST, /* a held lock is gone when the other one asks for it */
    ROWS_ALONE, /* locks.mode = database-only */
};

/* How often it happened; in the model, whether it did. */
struct met {
    unsigned busy, conflict, fenced, taken_over;
};

static struct {
    enum guard guard;
    int at[2];
    int64_t token[2];
    bool was_refused[2]; /* it asked already, and the other one has the key still */
    int key, row;        /* who has it, or NOBODY */
    int64_t tokens, fence, periods, checked;
    int64_t pulled[2]; /* periods that were charged when it pulled */
    int64_t fenced_ct; /* refusals by the fence, in all */
    struct met met;    /* since the begin of an order */
} model;

/* The one that asks gets the key, unless the other one has it. */
static int lock(int i)
{
    if (model.guard == LOCKS && model.key == 1 - i) {
        model.met.busy = model.was_refused[i] = true;
        model.pulled[i] = model.periods;
        return BEFORE_LOCK;
    }
    model.met.taken_over |= model.key == 1 - i;
    model.key = model.guard == ROWS_ALONE ? NOBODY : i;
    model.token[i] = ++model.tokens;
    return AFTER_LOCK;
}

/* The row is ours if the other one does not hold it and nobody younger wrote it. */
static int claim(int i)
{
    bool is_held = model.row == 1 - i, is_fenced = model.fence > model.token[i];

    model.met.conflict |= is_held;
    model.met.fenced |= is_fenced && !is_held;
    model.fenced_ct += is_fenced; /* a row that is held is asked about as well */
    if (is_held || is_fenced)
        return BEFORE_RELEASE;
    model.row = i;
    return AFTER_CLAIM;
}

/* A row that the other one has charged since the pull has moved: nothing is found
 * there. */
static int commit(int i)
{
    model.row = NOBODY;
    if (model.pulled[i] == model.periods) {
        model.fence = model.token[i];
        model.periods++;
    }
    return AFTER_COMMIT;
}

static int release(int i)
{
    if (model.key == i)
        model.key = NOBODY;
    model.was_refused[1 - i] = false;
    model.pulled[i] = model.periods;
    return BEFORE_LOCK;
}

/* From each point of a batch, where worker 0 or 1 arrives next. */
static int next_point(int i)
{
    switch (model.at[i]) {
    case BEFORE_LOCK:
        return lock(i);
    case AFTER_LOCK:
        return claim(i);
    case BEFORE_COMMIT:
        return commit(i);
    case BEFORE_RELEASE:
        return release(i);
    default:
        return model.at[i] + 1;
    }
}

/* ---- the world ---- */

static struct points points;

/* One user who owes a period of every day since 2000 and can pay them all. */
static void open_orders(void)
{
    world_do("ALTER DATABASE %s SET synchronous_commit = off", world.f.database);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any"); /* nothing crashes here */
    fixture_env("LEDGERLOCK_BILLING_CATCH_UP_MAX", "1000000");
    world_user(1, 1000000);
    /* No month is made on the way. */
    world_do("SELECT make_months('2000-01-01Z', '2005-12-01Z'); " INTO_SUBSCRIPTIONS
             "VALUES (1, 1, 'p', 1, 'USD', '2000-01-01Z', 'day', '2000-01-01Z')");
    points_open(&points);
}

static void close_orders(void)
{
    points_close(&points);
}

WORLD(.points = true,
      .checker = true,
      .lease_ms = 120000,
      .poll_ms = 10,
      .also = open_orders,
      .undo = close_orders);

static void start_pools(void)
{
    struct fixture_child *const pools[] = {&world.pool, &world.others};

    for (int i = 0; i < 2; i++) {
        starts(&world.f, pools[i],
               "run -w 1 --jobs billing --now 2024-01-01T00:00:00Z");
        assert_int_equal(points_join(&points, 120), i);
        assert_string_equal(points.workers[i].at, names[BEFORE_LOCK]);
    }
}

/* ---- the two workers ---- */

/* before_begin follows after_lock with nothing in between that another can see. */
static const char *real_step(int i)
{
    const char *at = points_step(&points, (size_t)i);

    return strcmp(at, "before_begin") == 0 ? points_step(&points, (size_t)i) : at;
}

static void move(int i, const char *order)
{
    int from = model.at[i];
    const char *at;

    if (from == BEFORE_LOCK && model.was_refused[i])
        return; /* the same again */
    if (model.guard == LOCKS_LOST && from == BEFORE_LOCK && model.key == 1 - i)
        assert_string_equal(shop_key("DEL", "user:1", ""), "1");
    model.at[i] = next_point(i);
    at = real_step(i);
    if (strcmp(at, names[model.at[i]]) != 0)
        fail_msg("order %s: worker %c went from %s to %s, not to %s", order, 'A' + i,
                 names[from], at, names[model.at[i]]);
    if (strcmp(shop_key("EXISTS", "user:1", ""), model.key != NOBODY ? "1" : "0") != 0)
        fail_msg("order %s: after %s of worker %c the key is %s", order, names[from],
                 'A' + i, model.key == NOBODY ? "still there" : "gone");
}

/* The start of a period, so that PostgreSQL plans for its partition alone. */
#define DAY "to_timestamp(946684800 + 86400 * %" PRId64 "::bigint)"

/* Of the order's own periods and the one before: each once, without a gap, each by a
 * higher token; the balance tells that all were paid. The checker reads every period in
 * the end: 3,000 periods read 924 times were a third of this test. */
static void assert_invariants(const char *order)
{
    int64_t n = model.periods, from = model.checked > 0 ? model.checked - 1 : 0;
    int new = (int)(n - from);
    char expected[128];
    const char *found = world_text(
        "SELECT concat_ws(' ', s.next_period_no, 1000000 - u.balance_minor, c.n, c.ok,"
        " (u.fence = c.fence)::int) FROM subscriptions AS s, users AS u, (SELECT count(*) AS n, max(fence) AS fence, count(*) FILTER"
        " (WHERE ok) AS ok FROM (SELECT fence, state = 'captured' AND fence > coalesce("
        "lag(fence) OVER (ORDER BY period_no), 0) AND period_no = %" PRId64 " +"
        " row_number() OVER (ORDER BY period_no) - 1 AS ok FROM charges WHERE"
        " period_start >= " DAY " AND period_start < " DAY ") AS each) AS c",
        from, from, n);

    (void)sprintf(expected, "%d %d %d %d 1", (int)n, (int)n, new, new);
    if (strcmp(found, expected) != 0)
        promise_broken("order %s: %s, not %s", order, found, expected);
    model.checked = n;
}

/* ---- all orders ---- */

/* Orders in which it happened at least once. */
static struct met seen;
static unsigned orders, whole;

/* A batch in vain for the one whose row has moved, so that every order begins with two
 * who both could charge. */
static void pull_again(int i, const char *order)
{
    while (model.at[i] != BEFORE_LOCK || model.pulled[i] != model.periods)
        move(i, order);
}

static void run_order(const char *order)
{
    model.met = (struct met){0};
    for (int k = 0; k < 2 * MOVES; k++)
        move(order[k] - 'A', order);
    for (int i = 0; i < 2; i++)
        while (model.at[i] != BEFORE_LOCK)
            move(i, order);
    for (int i = 0; i < 2; i++)
        pull_again(i, order);
    assert_invariants(order);
    orders++;
    seen.busy += model.met.busy;
    seen.conflict += model.met.conflict;
    seen.fenced += model.met.fenced;
    seen.taken_over += model.met.taken_over;
    whole += !model.met.busy && !model.met.conflict && !model.met.fenced;
}

/* The first batch belongs to no order: both workers stand before their locks after it.
 */
static void begin(enum guard guard)
{
    memset(&model, 0, sizeof model);
    model.guard = guard;
    model.key = model.row = NOBODY;
    model.periods = model.pulled[0] = 1;
    seen = (struct met){0};
    orders = whole = 0;
    start_pools();
    while (strcmp(real_step(0), names[AFTER_COMMIT]) != 0)
        continue;
    while (strcmp(real_step(0), names[BEFORE_LOCK]) != 0)
        continue;
    pull_again(1, "before the first");
}

/* The checker is asked of all orders together. The workers have not come to the end of
 * what is due, so the last period is taken as the instant. */
static void run_all(enum guard guard)
{
    char now[64];

    begin(guard);
    for (unsigned bits = 0; bits < 1u << 2 * MOVES; bits++) {
        char order[2 * MOVES + 1] = "";

        for (int k = 0; k < 2 * MOVES; k++)
            order[k] = (bits >> k & 1) != 0 ? 'B' : 'A';
        if (__builtin_popcount(bits) == MOVES)
            run_order(order);
    }
    print_message("of %u orders with a busy key %u, with a lock taken over %u, with a"
                  " row held by the other %u, with a fence %u, as written %u\n",
                  orders, seen.busy, seen.taken_over, seen.conflict, seen.fenced,
                  whole);
    assert_int_equal(orders, ORDERS);
    /* Without locks it is no incident that the other one was faster. */
    assert_int_equal(pool_incidents("fenced", ""),
                     guard == ROWS_ALONE ? 0 : model.fenced_ct);
    promise_int_equal(pool_incidents("parked", ""), 0);
    (void)strcpy(now, world_text("SELECT max(period_start) FROM charges"));
    checker_assert_holds(now, "");
    world_kill(&world.pool); /* its worker stands at a point */
}

/* Guarantee: Two workers and one row, in all 924 orders of their moves: with locks
 * they never meet, and totals are exact. */
CASE(orders_of_two_with_locks_never_meet)
{
    run_all(LOCKS);
    assert_int_equal(whole, 2); /* one after the other, and the reverse */
    assert_int_equal(seen.busy, ORDERS - 2);
    assert_int_equal(seen.conflict + seen.fenced, 0);
}

/* Guarantee: Two workers and one row, in all 924 orders of their moves: with lost
 * locks the rows put them in order. */
CASE(orders_of_two_with_lost_locks_are_put_in_order_by_the_rows)
{
    run_all(LOCKS_LOST);
    assert_int_equal(seen.taken_over, ORDERS - 2);
    assert_true(seen.conflict > 100 && seen.fenced >= 42 && whole > 2);
}

/* Guarantee: Two workers and one row, in all 924 orders of their moves: row locks
 * and fences alone charge once. */
CASE(orders_of_two_with_rows_alone_charge_once)
{
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    run_all(ROWS_ALONE);
    assert_true(seen.conflict > 100 && seen.fenced >= 42 && whole > 2);
    assert_true(world_ask("SELECT last FROM lock_token") > 0);
}
