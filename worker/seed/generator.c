/* generator: a shop with subscribers, in shares of a hundred. */
#include "worker/seed/generator.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/timestamp.h"

enum kind { KIND_USER = 1, KIND_SUBSCRIPTION, KIND_SKU, KIND_ORDER };

/* ---- random numbers ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t stream(const struct generator *g, enum kind kind, int64_t id)
{
    return mix(mix(g->seed + UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)kind) +
               (uint64_t)id);
}

static uint64_t next(uint64_t *s)
{
    *s += UINT64_C(0x9E3779B97F4A7C15);
    return mix(*s);
}

/* A number in 0 .. n - 1. The bias of % is negligible, since n is small against 2^64.
 */
static int64_t below(uint64_t *s, int64_t n)
{
    return (int64_t)(next(s) % (uint64_t)n);
}

/* ---- subscriptions ---- */

/* clang-format off */
static const struct offer {
    int64_t below; /* per cent, summed with the rows before */
    const char *unit;
    int64_t days; /* days before now in which it began; 0: see monthly_anchor */
    int64_t plan_ct;
    struct {
        const char *name;
        int64_t amount_minor;
    } plans[5];
} offers[] = {
    {80,  "month", 0,   5, {{"basic", 499}, {"standard", 999}, {"premium", 1999}, {"family", 2999}, {"business", 4900}}},
    {95,  "week",  112, 2, {{"paper", 390}, {"fruit box", 1250}}},
    {100, "year",  730, 2, {{"domain", 1490}, {"membership", 9900}}},
};

/* clang-format on */

/* The given day of the month that is `months` away, or of the nearest month before
 * (step -1) or after (step 1) it that has such a day. */
static int64_t day_of_month(int64_t now, int64_t months, int64_t step, int64_t day)
{
    int64_t first = now - (timestamp_day(now) - 1) * TIMESTAMP_DAY;

    while (timestamp_month_days(first, months) < day)
        months += step;
    return timestamp_add_months(first, months) + (day - 1) * TIMESTAMP_DAY;
}

/* Days 1 to 31 are equally frequent. Most began within four months before now, 3 %
 * begin later. */
static int64_t monthly_anchor(const struct generator *g, uint64_t *r)
{
    int64_t day = 1 + below(r, 31);
    int64_t back = below(r, 4);
    int64_t midnight = g->now - g->now % TIMESTAMP_DAY;
    int64_t time = below(r, 86400) * TIMESTAMP_SECOND;
    int64_t anchor;

    if (below(r, 100) < 3)
        return day_of_month(midnight, 1, 1, day) + time;
    anchor = day_of_month(midnight, -back, -1, day) + time;
    while (anchor > g->now) {
        back++;
        anchor = day_of_month(midnight, -back, -1, day) + time;
    }
    return anchor;
}

/* A random time within so many days before now; for 3 % within four weeks after. */
static int64_t other_anchor(const struct generator *g, uint64_t *r, int64_t days)
{
    if (below(r, 100) < 3)
        return g->now + (1 + below(r, 28 * 86400)) * TIMESTAMP_SECOND;
    return g->now - (1 + below(r, days * 86400)) * TIMESTAMP_SECOND;
}

static int64_t period_start(const struct gen_subscription *s, int64_t no)
{
    if (strcmp(s->unit, "week") == 0)
        return s->anchor_at + no * 7 * TIMESTAMP_DAY;
    return timestamp_add_months(s->anchor_at,
                                no * (strcmp(s->unit, "year") == 0 ? 12 : 1));
}

static int64_t count_due(const struct generator *g, const struct gen_subscription *s)
{
    int64_t ct = 0;
    int64_t start = s->anchor_at;

    while (start <= g->now && !(s->is_cancelled && start >= s->cancel_at))
        start = period_start(s, ++ct);
    return ct;
}

struct gen_subscription generator_subscription(const struct generator *g, int64_t id)
{
    uint64_t r = stream(g, KIND_SUBSCRIPTION, id);
    struct gen_subscription s = {.user_id = 1 + below(&r, g->user_ct)};
    int64_t share = below(&r, 100), plan;
    const struct offer *offer = offers;

    while (share >= offer->below)
        offer++;
    s.unit = offer->unit;
    s.anchor_at =
        offer->days == 0 ? monthly_anchor(g, &r) : other_anchor(g, &r, offer->days);
    plan = below(&r, offer->plan_ct);
    s.plan = offer->plans[plan].name;
    s.amount_minor = offer->plans[plan].amount_minor;
    /* The key (user, plan, anchor) must be unique: the microseconds are the row's
     * number. */
    s.anchor_at -= s.anchor_at % TIMESTAMP_SECOND;
    s.anchor_at +=
        id % TIMESTAMP_SECOND - (s.anchor_at < g->now ? TIMESTAMP_SECOND : 0);
    s.is_cancelled = below(&r, 100) < 4;
    if (s.is_cancelled)
        s.cancel_at = period_start(&s, 1 + below(&r, count_due(g, &s) + 2));
    s.due_ct = count_due(g, &s);
    return s;
}

/* ---- stock and orders ---- */

int64_t generator_hot_ct(const struct generator *g)
{
    return g->sku_ct == 0 ? 0 : g->sku_ct / 40 > 0 ? g->sku_ct / 40 : 1;
}

struct gen_sku generator_sku(const struct generator *g, int64_t id)
{
    uint64_t r = stream(g, KIND_SKU, id);
    int64_t demand = g->demand[id - 1];
    struct gen_sku sku = {.price_minor = 199 + 50 * below(&r, 120)};

    if (id <= generator_hot_ct(g))
        sku.qty = demand / 10 > 0 ? demand / 10 : 1;
    else if (below(&r, 100) < 10)
        sku.qty = demand * 7 / 10; /* scarce SKUs */
    else
        sku.qty = 2 * demand + 20 + below(&r, 100);
    return sku;
}

/* SKU 1 is ordered twice as often as SKU 2, three times as often as SKU 3 (Zipf, s =
 * 1). */
static int64_t draw_sku(const struct generator *g, uint64_t *r)
{
    uint64_t x = next(r) % g->zipf[g->sku_ct - 1];
    int64_t low = 0, high = g->sku_ct - 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (x < g->zipf[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low + 1;
}

/* Inserts a line in the order of SKUs; a SKU already on the order is not added. */
static void insert_line(struct gen_order *o, struct gen_line line)
{
    size_t at = 0;

    while (at < o->line_ct && o->lines[at].sku_id < line.sku_id)
        at++;
    if (at < o->line_ct && o->lines[at].sku_id == line.sku_id)
        return;
    memmove(&o->lines[at + 1], &o->lines[at], (o->line_ct - at) * sizeof line);
    o->lines[at] = line;
    o->line_ct++;
}

struct gen_order generator_order(const struct generator *g, int64_t id)
{
    static const size_t line_cts[] = {1, 1, 1, 1, 2, 2, 2, 3, 3, 4};
    static const int64_t qtys[] = {1, 1, 1, 1, 1, 2, 2, 3, 4, 6};
    const int64_t week = 7 * TIMESTAMP_DAY;
    uint64_t r = stream(g, KIND_ORDER, id);
    struct gen_order o = {.user_id = 1 + below(&r, g->user_ct)};
    size_t want = line_cts[below(&r, 10)];

    o.is_sent_twice = below(&r, 100) < 5;
    o.placed_at = g->now - week + week / (g->order_ct + 1) * id;
    for (int tries = 0; o.line_ct < want && tries < 16; tries++) {
        struct gen_line line = {.sku_id = draw_sku(g, &r), .qty = qtys[below(&r, 10)]};

        insert_line(&o, line);
    }
    for (size_t i = 0; i < o.line_ct; i++)
        o.total_minor += o.lines[i].qty * g->price_minor[o.lines[i].sku_id - 1];
    return o;
}

/* ---- users ---- */

/* 95 % can pay everything; the others cannot pay all. */
int64_t generator_deposit(const struct generator *g, int64_t id)
{
    uint64_t r = stream(g, KIND_USER, id);
    int64_t need = g->need_minor[id - 1];
    int64_t deposit;

    if (below(&r, 100) < 5)
        deposit = need / 100 * below(&r, 61);
    else
        deposit = need + need / 100 * below(&r, 21) + 5000;
    return (deposit + 99) / 100 * 100;
}

/* ---- open and close ---- */

static void weigh(struct generator *g)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < g->sku_ct; i++) {
        sum += (UINT64_C(1) << 40) / (uint64_t)(i + 1);
        g->zipf[i] = sum;
        g->price_minor[i] = generator_sku(g, i + 1).price_minor;
    }
}

static void add_up(struct generator *g)
{
    for (int64_t id = 1; id <= g->subscription_ct; id++) {
        struct gen_subscription s = generator_subscription(g, id);

        g->period_ct += s.due_ct;
        g->need_minor[s.user_id - 1] += s.due_ct * s.amount_minor;
    }
    for (int64_t id = 1; id <= g->order_ct; id++) {
        struct gen_order o = generator_order(g, id);

        g->need_minor[o.user_id - 1] += o.total_minor;
        for (size_t i = 0; i < o.line_ct; i++)
            g->demand[o.lines[i].sku_id - 1] += o.lines[i].qty;
    }
}

int generator_open(struct generator *g, struct err *e)
{
    size_t skus = (size_t)g->sku_ct + 1;

    g->need_minor = calloc((size_t)g->user_ct + 1, sizeof *g->need_minor);
    g->demand = calloc(skus, sizeof *g->demand);
    g->price_minor = calloc(skus, sizeof *g->price_minor);
    g->zipf = calloc(skus, sizeof *g->zipf);
    if (!g->need_minor || !g->demand || !g->price_minor || !g->zipf)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    weigh(g);
    add_up(g);
    return 0;
}

void generator_close(struct generator *g)
{
    free(g->need_minor);
    free(g->demand);
    free(g->price_minor);
    free(g->zipf);
}
