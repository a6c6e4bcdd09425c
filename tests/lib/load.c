/* load: the generator. */
#include "tests/lib/load.h"

#include <time.h>

#include "tests/lib/draw.h"
#include "tests/lib/world.h"

enum { HOUR = 3600, DAY = 24 * HOUR, QUIET = 2 * HOUR, HOT = 4, YEARS = 12 };

uint64_t load_seed(void)
{
    const char *given = getenv("LL_TEST_SEED");

    if (given != NULL && given[0] != '\0')
        return strtoull(given, NULL, 10);
    return (uint64_t)(time(NULL) / DAY);
}

const char *load_currency(int64_t id)
{
    return id % 2 == 0 ? "EUR" : "USD";
}

/* ---- subscriptions ---- */

/* About so many periods have begun, and the next one is hours away. Half of the longer
 * plans begin on a last day of a month. */
static void
draw_plan(struct load_subscription *s, uint64_t *rng, int64_t now, int64_t periods)
{
    static const char units[] = "dddwwmmy";
    static const int64_t days[] = {['d'] = 1, ['w'] = 7, ['m'] = 30, ['y'] = 365};
    char unit = units[draw_below(rng, 8)];
    int64_t every = 1 + draw_below(rng, 3), length = every * days[(int)unit] * DAY;
    int64_t n = 1 + draw_below(rng, 2 * periods), most = YEARS * 365 * DAY / length;
    int64_t anchor = now - (n < most ? n : most) * length + draw_below(rng, length);
    bool is_last_day = length > 20 * DAY && draw_below(rng, 2) == 0;

    do {
        s->plan = calendar_from(anchor, unit, every);
        if (is_last_day)
            s->plan.day = calendar_last_day(s->plan.year, s->plan.month);
        s->due = calendar_count(&s->plan, now);
        anchor -= 3 * HOUR;
    } while (s->due == 0 || calendar_count(&s->plan, now + QUIET) != s->due);
}

static void make_subscription(struct load *l, uint64_t *rng, size_t i)
{
    struct load_subscription *s = &l->subscriptions[i];
    struct load_user *u = &l->users[i % l->size.users];
    bool is_first = i < l->size.users;

    if (u->kind == LOAD_THRIFTY ||
        (!is_first && u->kind != LOAD_RICH && u->kind != LOAD_CARD))
        return;
    do
        draw_plan(s, rng, l->now, l->size.periods);
    while (u->kind == LOAD_LEAVING && s->due < 2);
    s->user_id = (int64_t)(i % l->size.users) + 1;
    s->amount_minor = 100 + draw_below(rng, 5000);
    s->paid = s->due;
    s->cancel_no = -1;
    u->balance_minor += s->due * s->amount_minor;
    if (u->kind == LOAD_POOR || u->kind == LOAD_SAVED) {
        int64_t paid = s->due / 2; /* as far as the money goes at first */

        u->balance_minor = (paid + 1) * s->amount_minor - 1 - draw_below(rng, 99);
        u->deposit_minor = s->due * s->amount_minor - u->balance_minor;
        if (u->kind == LOAD_POOR) {
            u->deposit_minor = 0;
            s->paid = paid;
        }
    } else if (u->kind == LOAD_LEAVING) {
        s->is_early = i / 10 % 2 == 0; /* then it is over by now */
        s->cancel_no = draw_below(rng, s->due - s->is_early);
    }
}

/* ---- orders ---- */

static void add_line(struct load *l, struct load_order *o, int64_t sku_id, int64_t qty)
{
    struct load_sku *sku = &l->skus[sku_id - 1];

    o->sku_id[o->lines] = sku_id;
    o->qty[o->lines++] = qty;
    o->total_minor += qty * sku->price_minor;
    sku->wanted += qty;
}

/* A SKU in the user's currency: `n`th of the hot ones, or of the others. */
static int64_t sku_for(int64_t user_id, int64_t n, bool is_hot)
{
    return 1 + (user_id + 1) % 2 + 2 * n + (is_hot ? 0 : HOT);
}

static void add_plain_lines(struct load *l, uint64_t *rng, struct load_order *o, int n)
{
    int64_t first = draw_below(rng, (LOAD_SKUS - HOT) / 2 - LOAD_LINES);

    for (int i = 0; i < n; i++)
        add_line(l, o, sku_for(o->user_id, first + i, false), 1 + draw_below(rng, 4));
}

static void make_order(struct load *l, uint64_t *rng, size_t i)
{
    struct load_order *o = &l->orders[i];

    do {
        o->user_id = 1 + draw_below(rng, (int64_t)l->size.users);
    } while (l->users[o->user_id - 1].kind != LOAD_RICH &&
             l->users[o->user_id - 1].kind != LOAD_LEAVING &&
             l->users[o->user_id - 1].kind != LOAD_CARD);
    o->is_late = draw_below(rng, 4) == 0;
    if (draw_below(rng, 3) > 0) {
        o->hot_sku_id = sku_for(o->user_id, draw_below(rng, HOT / 2), true);
        add_line(l, o, o->hot_sku_id, 1);
    }
    add_plain_lines(l, rng, o, (int)draw_below(rng, 3) + (o->lines == 0));
    l->users[o->user_id - 1].balance_minor += o->total_minor;
}

/* Two orders of the same lines, and money for one of them. */
static void make_pair(struct load *l, uint64_t *rng, size_t i, int64_t user_id)
{
    struct load_order *first = &l->orders[i], *second = &l->orders[i + 1];
    struct load_user *u = &l->users[user_id - 1];

    first->user_id = user_id;
    add_plain_lines(l, rng, first, 2);
    *second = *first;
    for (size_t k = 0; k < second->lines; k++)
        l->skus[second->sku_id[k] - 1].wanted += second->qty[k];
    second->is_late = draw_below(rng, 2) == 0;
    u->balance_minor = first->total_minor + draw_below(rng, first->total_minor);
}

static void make_orders(struct load *l, uint64_t *rng)
{
    size_t i = 0;

    for (size_t u = 0; u < l->size.users; u++) {
        if (l->users[u].kind == LOAD_THRIFTY && i + 2 <= l->size.orders / 4) {
            make_pair(l, rng, i, (int64_t)u + 1);
            i += 2;
        }
    }
    for (; i < l->size.orders; i++)
        make_order(l, rng, i);
    for (i = 0; i < LOAD_SKUS; i++) {
        struct load_sku *sku = &l->skus[i];

        sku->qty = sku->is_hot ? sku->wanted / 4 : sku->wanted;
        sku->lot = i % 4 < 2 ? 0 : 1 + sku->wanted / 20; /* every second pair */
    }
}

/* ---- calls ---- */

static void add_call(struct load *l, enum load_verb verb, size_t index, size_t lot)
{
    l->calls[l->call_ct++] = (struct load_call){verb, index, lot};
}

static void make_calls(struct load *l, uint64_t *rng)
{
    l->calls = calloc(2 * l->size.users + l->size.orders + 2 * l->size.subscriptions +
                          (size_t)LOAD_SKUS * LOAD_LOTS,
                      sizeof *l->calls);
    for (size_t i = 0; i < l->size.users; i++) {
        if (l->users[i].deposit_minor > 0)
            add_call(l, LOAD_DEPOSIT, i, 0);
        if (l->users[i].kind == LOAD_SAVED)
            add_call(l, LOAD_RESUME, i, 0);
    }
    for (size_t i = 0; i < l->size.orders; i++)
        if (l->orders[i].is_late)
            add_call(l, LOAD_ORDER, i, 0);
    for (size_t i = 0; i < l->size.subscriptions; i++)
        if (l->subscriptions[i].user_id != 0 && l->subscriptions[i].cancel_no >= 0)
            add_call(l, LOAD_CANCEL, i, 0);
        else if (l->subscriptions[i].user_id != 0 && i % 3 == 0)
            add_call(l, LOAD_TERMS, i, 0);
    for (size_t i = 0; i < (size_t)LOAD_SKUS * LOAD_LOTS; i++)
        if (l->skus[i / LOAD_LOTS].lot > 0)
            add_call(l, LOAD_DELIVER, i / LOAD_LOTS, i % LOAD_LOTS);
    for (size_t i = l->call_ct; i > 1; i--) {
        size_t j = (size_t)draw_below(rng, (int64_t)i);
        struct load_call kept = l->calls[j];

        l->calls[j] = l->calls[i - 1];
        l->calls[i - 1] = kept;
    }
}

/* ---- all of it ---- */

/* Ten users: one is poor, one saved, one thrifty, one leaves, one has a card, if there
 * are any; the others are rich. */
static enum load_kind kind_of(size_t user, bool cards)
{
    enum load_kind kind = (enum load_kind)(user % 10);

    return kind < LOAD_CARD || (kind == LOAD_CARD && cards) ? kind : LOAD_RICH;
}

void load_make(uint64_t seed, struct load_size size)
{
    struct load *l = &world.load;
    uint64_t rng = seed;

    *l = (struct load){.seed = seed, .now = time(NULL), .size = size};
    print_message("load: LL_TEST_SEED=%" PRIu64 "\n", seed);
    l->users = calloc(size.users, sizeof *l->users);
    l->subscriptions = calloc(size.subscriptions + 1, sizeof *l->subscriptions);
    l->orders = calloc(size.orders + 1, sizeof *l->orders);
    for (size_t i = 0; i < LOAD_SKUS; i++) {
        l->skus[i].price_minor = 50 + draw_below(&rng, 900);
        l->skus[i].is_hot = i < HOT;
    }
    for (size_t i = 0; i < size.users; i++)
        l->users[i].kind = kind_of(i, size.cards);
    for (size_t i = 0; i < size.subscriptions; i++)
        make_subscription(l, &rng, i);
    make_orders(l, &rng);
    for (size_t i = 0; i < size.users; i++)
        if (l->users[i].kind == LOAD_CARD)
            l->users[i].balance_minor = 0;
    make_calls(l, &rng);
}

void load_free(void)
{
    struct load *l = &world.load;

    free(l->users);
    free(l->subscriptions);
    free(l->orders);
    free(l->calls);
    memset(l, 0, sizeof *l);
}
