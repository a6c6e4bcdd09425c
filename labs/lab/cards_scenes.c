/* cards_scenes: the schedule of each behaviour. Worker A meets it; worker B comes for
 * the same charge at the worst moment; then both come again until it is paid. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "labs/lab/cards.h"
#include "labs/lab/scenes.h"
#include "labs_sql_gen.h"

enum {
    PRICE = 100,
    OTHER_PRICE = 120,
    SHORT_MS = 300,
    ROUNDS = 4,    /* in which both come, on a day */
    ROUND_S = 180, /* between them: longer than a look-up waits */
    DAY_S = 90000, /* the gateway keeps a key for 24 hours */
    SLOW_MS = 600,
    SLOW_TRIES = 6,
    FREE_LATENCY_MS = 20
};

enum { A, B }; /* seats */

/* ---- the gateway ---- */

/* Of a path of the gateway that is for its caller alone; the caller frees it. */
static json_t *control(struct lab_cards *c, const char *path, const char *form)
{
    char url[LAB_URL + 32];
    json_t *doc;

    (void)snprintf(url, sizeof url, "%s/_/%s", c->gateway.url, path);
    if (lab_gateway_ask(url, form, "", LAB_CALL_MS, &doc) != 200)
        lab_fail("the gateway does not answer to %s", path);
    return doc;
}

static void behave(struct lab_cards *c, const char *form)
{
    json_decref(control(c, "behaviour", form));
}

static int64_t number(struct lab_cards *c, const char *path, const char *name)
{
    json_t *doc = control(c, path, NULL);
    int64_t n = json_integer_value(json_object_get(doc, name));

    json_decref(doc);
    return n;
}

static int64_t captures(struct lab_cards *c)
{
    return number(c, "witness", "captures");
}

static void check_met(struct lab_cards *c)
{
    const char *name = c->behaviour->counter;
    json_t *doc = control(c, "calls", NULL);
    int64_t n =
        json_integer_value(json_object_get(json_object_get(doc, "faults"), name));

    json_decref(doc);
    if (n != 1)
        lab_fail("%s was to be met once, and was %" PRId64 " times", name, n);
}

/* The question itself is in flight, too. */
static void until_nothing_runs(struct lab_cards *c)
{
    LAB_UNTIL(number(c, "calls", "in_flight") == 1, "a call does not end");
}

/* The time of the workers and of the gateway. */
static void pass(struct lab_cards *c, int64_t seconds)
{
    char form[32];

    (void)snprintf(form, sizeof form, "seconds=%" PRId64, seconds);
    json_decref(control(c, "clock", form));
    atomic_fetch_add(c->ahead_s, seconds);
}

/* ---- words of a schedule ---- */

static void send_a(struct lab_cards *c, enum lab_point point)
{
    if (c->behaviour->faults != NULL)
        behave(c, c->behaviour->faults);
    lab_payer_start(c, A, point, c->behaviour->limit_ms, false);
}

static void until_a_stands(struct lab_cards *c)
{
    lab_until_stopped(c->lab, A);
    if (atomic_load(&c->lab->seats[A].at) == LAB_NOWHERE)
        lab_fail("A did not come to its point");
    if (c->behaviour->counter != NULL)
        check_met(c);
}

/* A try from begin to end. */
static void visit(struct lab_cards *c, int seat)
{
    lab_payer_start(c, seat, LAB_NOWHERE, LAB_CALL_MS, false);
    lab_until_over(c->lab, seat);
}

/* ---- behaviours ---- */

/* A has heard the gateway, and has written nothing of it yet. */
static void play_answer(struct lab_cards *c)
{
    send_a(c, LAB_AFTER_CALL);
    until_a_stands(c);
    visit(c, B);
    lab_finish(c->lab, A);
}

static void play_changed(struct lab_cards *c)
{
    const struct pg_param params[] = {pg_int8(1), pg_int8(OTHER_PRICE)};

    send_a(c, LAB_AFTER_CALL);
    until_a_stands(c);
    lab_do(c->lab, SQL_LAB_CHANGE_CARD_PRICE, params, 2);
    visit(c, B);
    lab_finish(c->lab, A);
}

static void play_expired(struct lab_cards *c)
{
    send_a(c, LAB_AFTER_CALL);
    until_a_stands(c);
    lab_finish(c->lab, A);
    pass(c, DAY_S);
}

static void play_killed(struct lab_cards *c)
{
    send_a(c, LAB_AFTER_CALL);
    until_a_stands(c);
    if (captures(c) != 1)
        lab_fail("A was to be killed after its charge, and there is none");
    kit_kill(&c->lab->seats[A].pid);
    visit(c, B);
    lab_outwait(c->lab, 1);
}

static void play_stopped(struct lab_cards *c)
{
    pid_t pid;

    send_a(c, LAB_BEFORE_CALL);
    until_a_stands(c);
    pid = c->lab->seats[A].pid;
    (void)kill(pid, SIGSTOP);
    lab_outwait(c->lab, 1);
    c->lab->lease_ms = LAB_LONG_MS;
    visit(c, B);
    if (captures(c) != 1)
        lab_fail("B was to charge while A stood still");
    (void)kill(pid, SIGCONT);
    lab_finish(c->lab, A);
}

/* A call that hangs is run, and not answered before the gateway dies. */
static void play_crashed(struct lab_cards *c)
{
    send_a(c, LAB_AFTER_CALL);
    LAB_UNTIL(captures(c) == 1, "the gateway does not charge");
    check_met(c);
    kit_kill(&c->gateway.pid);
    lab_gateway_start(&c->gateway);
    lab_until_stopped(c->lab, A);
    if (captures(c) != 1)
        lab_fail("the gateway was to keep what it charged");
    visit(c, B);
    lab_finish(c->lab, A);
}

/* ---- B comes while the call of A runs at the gateway ---- */

/* The gateway ends the call after slow_ms; B was there in time if it was back earlier.
 */
static void come_meanwhile(struct lab_cards *c, bool is_awaited)
{
    int64_t until = clk_ms() + c->slow_ms;
    char form[64];

    (void)snprintf(form, sizeof form, "run_at=100&slow=next:1&slow_ms=%" PRId64,
                   c->slow_ms);
    behave(c, form);
    send_a(c, LAB_AFTER_CALL);
    if (is_awaited)
        LAB_UNTIL(number(c, "calls", "received") == 1, "A does not call");
    if (!is_awaited)
        until_a_stands(c);
    visit(c, B);
    c->is_met = clk_ms() < until;
    if (is_awaited)
        until_a_stands(c);
    lab_finish(c->lab, A);
    until_nothing_runs(c);
}

static void play_calm(struct lab_cards *c)
{
    come_meanwhile(c, true);
}

static void play_slow(struct lab_cards *c)
{
    come_meanwhile(c, false);
}

/* clang-format off */
const struct lab_behaviour lab_behaviours[LAB_BEHAVIOURS] = {
    {"calm",      "well; B comes while the call of A runs",            play_calm,      NULL,                             "slow",         LAB_LONG_MS, LAB_CALL_MS},
    {"stopped",   "A stands still before its call until its lease is over", play_stopped, NULL,                          NULL,           1000,        LAB_CALL_MS},
    {"killed",    "A is killed after the call, before it writes",      play_killed,    NULL,                             NULL,           1000,        LAB_CALL_MS},
    {"lost",      "charged, the answer is lost",                       play_answer,    "drop_after=next:1",              "drop_after",   LAB_LONG_MS, LAB_CALL_MS},
    {"half",      "charged, half of the answer comes; the price changes", play_changed, "half=next:1",                   "half",         LAB_LONG_MS, LAB_CALL_MS},
    {"slow",      "charged after A has given up waiting",              play_slow,      NULL,                             "slow",         LAB_LONG_MS, SHORT_MS},
    {"before",    "500, not charged, stored under the key",            play_answer,    "fail_before=next:1",             "fail_before",  LAB_LONG_MS, LAB_CALL_MS},
    {"after",     "500, charged, stored under the key",                play_answer,    "fail_after=next:1",              "fail_after",   LAB_LONG_MS, LAB_CALL_MS},
    {"again",     "500, charged, and found by the key",                play_answer,    "fail_after=next:1&replay_5xx=0", "fail_after",   LAB_LONG_MS, LAB_CALL_MS},
    {"limited",   "429, not charged",                                  play_answer,    "rate_limit=next:1",              "rate_limit",   LAB_LONG_MS, LAB_CALL_MS},
    {"declined",  "402, and the card is good the next time",           play_answer,    "decline_soft=next:1",            "decline_soft", LAB_LONG_MS, LAB_CALL_MS},
    {"expired",   "charged, the answer is lost, nobody asks for 25 hours", play_expired, "drop_after=next:1",          "drop_after",   LAB_LONG_MS, LAB_CALL_MS},
    {"crashed",   "charged, then killed and started again",            play_crashed, "hang=next:1",                    "hang",         LAB_LONG_MS, LAB_CALL_MS},
};

/* clang-format on */

/* ---- the cell ---- */

static bool is_paid(struct lab_cards *c)
{
    int64_t paid = 0;

    lab_ask_numbers(c->lab, SQL_LAB_COUNT_CARD_CHARGES, &paid, 1);
    return paid == 1;
}

/* Nothing is wrong any more, and time passes. */
static void come_again(struct lab_cards *c)
{
    for (int i = 0; i < ROUNDS && !is_paid(c); i++) {
        pass(c, ROUND_S);
        visit(c, A);
        if (!is_paid(c))
            visit(c, B);
    }
}

static void open_cell(struct lab_cards *c, int64_t charges)
{
    struct lab *l = c->lab;
    const struct lab_needs needs = {.program = l->flags->redis_server};
    const struct pg_param params[] = {pg_int8(charges), pg_int8(PRICE)};

    lab_do(l, SQL_LAB_CREATE_CARD_CHARGES, NULL, 0);
    lab_do(l, SQL_LAB_CREATE_CARD_ATTEMPTS, NULL, 0);
    lab_do(l, SQL_LAB_WIPE_CARDS, NULL, 0);
    lab_do(l, SQL_LAB_PUT_CARD_CHARGES, params, 2);
    lab_open_cell(l, &needs);
    atomic_store(c->ahead_s, 0);
    c->gateway = (struct lab_gateway){0};
    lab_find_program(l->flags->gateway, "ledgerlock_gateway", c->gateway.program,
                     sizeof c->gateway.program);
    (void)snprintf(c->gateway.journal, sizeof c->gateway.journal, "%s/journal",
                   l->servers.dir);
    lab_gateway_start(&c->gateway);
}

static void close_cell(struct lab_cards *c)
{
    kit_kill(&c->gateway.pid);
    lab_close_cell();
}

static void play(struct lab_cards *c)
{
    struct lab_card_result *r = c->result;
    struct lab *l = c->lab;

    l->lease_ms = c->behaviour->lease_ms;
    open_cell(c, 1);
    c->is_met = true;
    c->behaviour->play(c);
    l->lease_ms = LAB_LONG_MS;
    come_again(c);
    r->is_late = !is_paid(c);
    if (r->is_late) {
        pass(c, DAY_S);
        come_again(c);
    }
    r->is_paid = is_paid(c);
    r->captures = captures(c);
    lab_gather(l, &l->seats[A]);
    lab_gather(l, &l->seats[B]);
    r->calls = l->met[LAB_CALLS];
    r->away = l->met[LAB_AWAY];
    close_cell(c);
}

/* A machine that is too slow for B to come in time gets a slower gateway. */
void lab_cards_play(struct lab_cards *c)
{
    c->slow_ms = SLOW_MS;
    for (int i = 0; i < SLOW_TRIES; i++) {
        play(c);
        if (c->is_met)
            return;
        c->slow_ms *= 2;
    }
    lab_fail("B did not come while the call of A ran");
}

void lab_cards_run_free(struct lab_cards *c, struct lab_card_free *f)
{
    struct lab *l = c->lab;
    char form[32];

    l->lease_ms = LAB_LONG_MS;
    open_cell(c, LAB_FREE_CHARGES);
    (void)snprintf(form, sizeof form, "latency_ms=%d", FREE_LATENCY_MS);
    behave(c, form);
    for (int seat = 0; seat < LAB_SEATS; seat++)
        lab_payer_start(c, seat, LAB_NOWHERE, LAB_CALL_MS, true);
    for (int seat = 0; seat < LAB_SEATS; seat++) {
        lab_until_over(l, seat);
        lab_gather(l, &l->seats[seat]);
    }
    f->calls = l->met[LAB_CALLS];
    f->away = l->met[LAB_AWAY];
    f->twice = captures(c) - LAB_FREE_CHARGES;
    close_cell(c);
}
