/* generator: what a shop with subscribers looks like, in shares of a hundred. */
#include "worker/generator.h"

#include <stdlib.h>
#include <string.h>

#include "worker/instant.h"

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

/* 0 .. n - 1; n is small against 2^64, so the bias of % is nobody's concern here. */
static int64_t below(uint64_t *s, int64_t n)
{
    return (int64_t)(next(s) % (uint64_t)n);
}

/* ---- subscriptions ---- */

struct plan {
    const char *name;
    int64_t amount_minor;
};

static const struct plan monthly_plans[] = {{"basic", 499},
                                            {"standard", 999},
                                            {"premium", 1999},
                                            {"family", 2999},
                                            {"business", 4900}};
static const struct plan weekly_plans[] = {{"paper", 390}, {"fruit box", 1250}};
static const struct plan yearly_plans[] = {{"domain", 1490}, {"membership", 9900}};

static void
choose_plan(struct gen_subscription *s, uint64_t *r, const struct plan *plans, size_t n)
{
    const struct plan *plan = &plans[below(r, (int64_t)n)];

    s->plan = plan->name;
    s->amount_minor = plan->amount_minor;
}

/* The given day of the nearest month, at or before (step -1) or after (step 1) the one
 * that lies `months` away, that has such a day. */
static int64_t day_of_month(int64_t now, int64_t months, int64_t step, int64_t day)
{
    int64_t first = now - (instant_day(now) - 1) * INSTANT_DAY;

    while (instant_month_days(first, months) < day)
        months += step;
    return instant_add_months(first, months) + (day - 1) * INSTANT_DAY;
}

/* Days 1 to 31 alike often; mostly begun within four months, three in a hundred later.
 */
static int64_t monthly_anchor(const struct generator *g, uint64_t *r)
{
    int64_t day = 1 + below(r, 31);
    int64_t back = below(r, 4);
    int64_t midnight = g->now - g->now % INSTANT_DAY;
    int64_t time = below(r, 86400) * INSTANT_SECOND;
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

/* Anywhere within so many days before now, or, three in a hundred, four weeks after. */
static int64_t other_anchor(const struct generator *g, uint64_t *r, int64_t days)
{
    if (below(r, 100) < 3)
        return g->now + (1 + below(r, 28 * 86400)) * INSTANT_SECOND;
    return g->now - (1 + below(r, days * 86400)) * INSTANT_SECOND;
}

static int64_t period_start(const struct gen_subscription *s, int64_t no)
{
    if (strcmp(s->unit, "week") == 0)
        return s->anchor_at + no * 7 * INSTANT_DAY;
    return instant_add_months(s->anchor_at,
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
    int64_t share = below(&r, 100);

    if (share < 80) {
        s.unit = "month";
        s.anchor_at = monthly_anchor(g, &r);
        choose_plan(&s, &r, monthly_plans,
                    sizeof monthly_plans / sizeof monthly_plans[0]);
    } else if (share < 95) {
        s.unit = "week";
        s.anchor_at = other_anchor(g, &r, 112);
        choose_plan(&s, &r, weekly_plans, sizeof weekly_plans / sizeof weekly_plans[0]);
    } else {
        s.unit = "year";
        s.anchor_at = other_anchor(g, &r, 730);
        choose_plan(&s, &r, yearly_plans, sizeof yearly_plans / sizeof yearly_plans[0]);
    }
    /* The key (user, plan, anchor) must not meet twice: microseconds count the rows. */
    s.anchor_at -= s.anchor_at % INSTANT_SECOND;
    s.anchor_at += id % INSTANT_SECOND - (s.anchor_at < g->now ? INSTANT_SECOND : 0);
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
        sku.qty = demand * 7 / 10; /* scarce */
    else
        sku.qty = 2 * demand + 20 + below(&r, 100);
    return sku;
}

/* SKU 1 is wanted twice as much as SKU 2, three times as much as SKU 3 (Zipf, s = 1).
 */
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

/* Keeps lines in the order of their SKUs; a SKU that is on the order stays once. */
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
    const int64_t week = 7 * INSTANT_DAY;
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

/* Nineteen of twenty can pay everything; the others run dry on the way. */
struct gen_user generator_user(const struct generator *g, int64_t id)
{
    uint64_t r = stream(g, KIND_USER, id);
    int64_t need = g->need_minor[id - 1];
    int64_t deposit;

    if (below(&r, 100) < 5)
        deposit = need / 100 * below(&r, 61);
    else
        deposit = need + need / 100 * below(&r, 21) + 5000;
    return (struct gen_user){.balance_minor = deposit - deposit % 100 +
                                              (deposit % 100 > 0 ? 100 : 0)};
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
        return err_set(e, ERR_NOMEM, "out of memory");
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
