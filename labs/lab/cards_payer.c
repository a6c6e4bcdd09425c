/* cards_payer: the worker of all ways to ask for money: it takes the lock, if it is to
 * have one, reads the charge, asks, and writes what it heard. A try that comes to no
 * end is repeated by whoever comes next. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "labs/lab/actor.h"
#include "labs/lab/cards.h"
#include "labs_sql_gen.h"

/* An attempt is asked under its key so often, and while the gateway is sure to know the
 * key; then it is looked up. */
enum { CALLS_BEFORE_LOOK = 3, SAFE_S = 20 * 3600, KEY = 64, PATH = 64, PAUSE_MS = 3 };

/* clang-format off */
const struct lab_way lab_ways[LAB_WAYS] = {
    {"no-key",      "no key",                        LAB_NO_KEY,         false},
    {"key-try",     "a key for each try",            LAB_KEY_OF_TRY,     false},
    {"key-charge",  "a key for the charge",          LAB_KEY_OF_CHARGE,  false},
    {"written",     "attempt written before",        LAB_KEY_OF_ATTEMPT, false},
    {"looked-up",   "attempt, looked up", LAB_KEY_OF_ATTEMPT, true},
};

/* clang-format on */

struct payer {
    struct lab_actor a;
    const struct lab_cards *cards;
    int64_t limit_ms;
};

/* A charge as it was read, with its latest attempt. */
struct charge {
    int64_t is_paid, price, attempt, amount, calls, sent_at;
    char state[16]; /* of the attempt */
};

static int64_t now_s(const struct payer *p)
{
    return (int64_t)time(NULL) + atomic_load(p->cards->ahead_s);
}

/* ---- rows ---- */

static bool read_charge(struct payer *p, struct charge *c)
{
    const struct pg_param param = pg_int8(p->a.item);
    struct pg_result *res;

    if (lab_sql(&p->a, SQL_LAB_READ_CARD_CHARGE, &param, 1, &res) != 0)
        return false;
    c->is_paid = pg_get_int8(res, 0, 0);
    c->price = pg_get_int8(res, 0, 1);
    c->attempt = pg_get_int8(res, 0, 2);
    (void)snprintf(c->state, sizeof c->state, "%s", pg_get_text(res, 0, 3));
    c->amount = pg_get_int8(res, 0, 4);
    c->calls = pg_get_int8(res, 0, 5);
    c->sent_at = pg_get_int8(res, 0, 6);
    pg_result_free(res);
    return true;
}

static void begin_attempt(struct payer *p, const struct charge *c)
{
    const struct pg_param params[] = {pg_int8(p->a.item), pg_int8(c->attempt + 1),
                                      pg_int8(c->price), pg_int8(now_s(p))};

    (void)!lab_sql(&p->a, SQL_LAB_BEGIN_CARD_ATTEMPT, params, 4, NULL);
}

/* False: somebody else has decided the attempt. */
static bool send_attempt(struct payer *p, const struct charge *c)
{
    const struct pg_param params[] = {pg_int8(p->a.item), pg_int8(c->attempt),
                                      pg_int8(now_s(p))};
    struct pg_result *res;
    bool is_ours;

    if (lab_sql(&p->a, SQL_LAB_SEND_CARD_ATTEMPT, params, 3, &res) != 0)
        return false;
    is_ours = pg_rows(res) == 1;
    pg_result_free(res);
    return is_ours;
}

static void
end(struct payer *p, int64_t attempt, const char *state, int64_t latest_call)
{
    const struct pg_param params[] = {pg_int8(p->a.item), pg_int8(attempt),
                                      pg_text(state), pg_int8(latest_call)};

    (void)!lab_sql(&p->a, SQL_LAB_END_CARD_ATTEMPT, params, 4, NULL);
}

/* ---- calls ---- */

static long call(struct payer *p, const char *key, int64_t amount)
{
    char url[LAB_URL + PATH], form[320];
    json_t *doc;
    long status;

    (void)snprintf(url, sizeof url, "%s/v1/payment_intents", p->cards->gateway.url);
    (void)snprintf(form, sizeof form,
                   "amount=%" PRId64 "&currency=usd&customer=cus_%" PRId64
                   "&payment_method=pm_lab&confirm=true&metadata[charge_id]=%" PRId64
                   "&metadata[attempt_id]=%s",
                   amount, p->a.item, p->a.item,
                   p->cards->way->key == LAB_KEY_OF_ATTEMPT ? key : "none");
    lab_point(&p->a, LAB_BEFORE_CALL);
    atomic_fetch_add(&p->a.seat->count[LAB_CALLS], 1);
    status = lab_gateway_ask(url, form, key, p->limit_ms, &doc);
    json_decref(doc);
    lab_point(&p->a, LAB_AFTER_CALL);
    return status;
}

/* The state that the list has for an attempt; "void": the list has nothing of it; NULL:
 * there is no list. */
static const char *look_up(struct payer *p, const char *key)
{
    char url[LAB_URL + PATH];
    const char *state = NULL, *id, *status;
    json_t *doc, *row;
    size_t i;

    (void)snprintf(url, sizeof url,
                   "%s/v1/payment_intents?customer=cus_%" PRId64 "&limit=100",
                   p->cards->gateway.url, p->a.item);
    atomic_fetch_add(&p->a.seat->count[LAB_CALLS], 1);
    if (lab_gateway_ask(url, NULL, "", p->limit_ms, &doc) == 200)
        state = "void";
    json_array_foreach(json_object_get(doc, "data"), i, row)
    {
        if (json_unpack(row, "{s:s, s:{s:s}}", "status", &status, "metadata",
                        "attempt_id", &id) == 0 &&
            strcmp(id, key) == 0)
            state = strcmp(status, "succeeded") == 0 ? "paid" : "declined";
    }
    json_decref(doc);
    return state;
}

/* ---- a try ---- */

/* 200 is the end; whatever else came is asked again. */
static void ask_plainly(struct payer *p, const struct charge *c)
{
    char key[KEY] = "";

    if (p->cards->way->key == LAB_KEY_OF_TRY)
        (void)snprintf(key, sizeof key, "try-%ld-%u", (long)getpid(), p->a.locks);
    if (p->cards->way->key == LAB_KEY_OF_CHARGE)
        (void)snprintf(key, sizeof key, "charge-%" PRId64, p->a.item);
    if (call(p, key, c->price) == 200)
        end(p, 0, "paid", 0);
}

/* The look-up decides an attempt only if nobody has asked since. */
static void decide(struct payer *p, const struct charge *c, const char *key)
{
    const char *state;

    if (now_s(p) - c->sent_at < LAB_SETTLE_S)
        return;
    state = look_up(p, key);
    if (state != NULL)
        end(p, c->attempt, state, c->sent_at);
}

static void ask_as_written(struct payer *p, struct charge *c)
{
    char key[KEY];
    long status;

    if (strcmp(c->state, "sent") != 0) {
        begin_attempt(p, c);
        if (!read_charge(p, c))
            return;
    }
    (void)snprintf(key, sizeof key, "charge-%" PRId64 "-%" PRId64, p->a.item,
                   c->attempt);
    if (p->cards->way->looks &&
        (c->calls >= CALLS_BEFORE_LOOK || now_s(p) - c->sent_at > SAFE_S)) {
        decide(p, c, key);
        return;
    }
    if (!send_attempt(p, c))
        return;
    status = call(p, key, c->amount);
    if (status == 200 || status == 402)
        end(p, c->attempt, status == 200 ? "paid" : "declined", INT64_MAX);
}

static void ask(struct payer *p)
{
    struct charge c;

    if (!read_charge(p, &c) || c.is_paid != 0 ||
        (p->a.strategy->check != NULL && !p->a.strategy->check(&p->a)))
        return;
    if (p->cards->way->key == LAB_KEY_OF_ATTEMPT)
        ask_as_written(p, &c);
    else
        ask_plainly(p, &c);
}

/* A try; false: the charge was paid before. */
static bool come(struct payer *p, int64_t charge)
{
    struct lab_actor *a = &p->a;
    enum lab_answer answer;
    struct charge c;

    a->item = charge;
    if (read_charge(p, &c) && c.is_paid != 0)
        return false;
    (void)snprintf(a->key, sizeof a->key, "lab:item:%" PRId64, charge);
    (void)snprintf(a->value, sizeof a->value, "%ld-%u", (long)getpid(), ++a->locks);
    answer = a->strategy->lock(a);
    atomic_fetch_add(&a->seat->count[LAB_AWAY], answer == LAB_BUSY);
    if (answer != LAB_GRANTED)
        return true;
    ask(p);
    (void)a->strategy->unlock(a);
    return true;
}

static void come_until_all_are_paid(struct payer *p)
{
    bool is_due = true;

    while (is_due) {
        is_due = false;
        for (int64_t charge = 1; charge <= LAB_FREE_CHARGES; charge++)
            is_due = come(p, charge) || is_due;
        if (is_due)
            clk_pause_ms(PAUSE_MS);
    }
}

void lab_payer_start(struct lab_cards *c,
                     int seat,
                     enum lab_point stop_at,
                     int64_t limit_ms,
                     bool everything)
{
    struct lab *l = c->lab;
    struct lab_seat *s = &l->seats[seat];
    pid_t pid;

    lab_gather(l, s);
    memset(s, 0, sizeof *s);
    atomic_store(&s->stop_at, (int)stop_at);
    pid = kit_fork("lab-payer");
    if (pid == 0) {
        struct payer p = {.a = {.strategy = l->strategy,
                                .seat = s,
                                .postgres_url = l->postgres_url,
                                .redis_url = l->servers.url,
                                .lease_ms = l->lease_ms},
                          .cards = c,
                          .limit_ms = limit_ms};

        if (everything)
            come_until_all_are_paid(&p);
        else
            (void)come(&p, 1);
        _exit(0);
    }
    s->pid = pid; /* by the director alone: the seat is shared */
}
