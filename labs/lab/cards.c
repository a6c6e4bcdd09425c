/* cards: what must come out of each cell, what came out, and the run of all of them. */
#include "labs/lab/cards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
/* The letter of enum lab_end, and the number of calls, look-ups too. Each way without a lock, then
 * with one. */
static const char *const expected[LAB_CARD_ROWS][LAB_BEHAVIOURS] = {
    /*               calm  stopped killed lost  half   slow  before after  again limited declined expired crashed */
    /* no key */    {"X2", "X2",   "X2",  "X2", "X2",  "X2", ".2",  "X2",  "X2", ".2",   ".2",    "X2",   "X2"},
    /* and lock */  {".1", "X2",   "X2",  "X2", "X2",  "X2", ".2",  "X2",  "X2", ".2",   ".2",    "X2",   "X2"},
    /* try */       {"X2", "X2",   "X2",  "X2", "X2",  "X2", ".2",  "X2",  "X2", ".2",   ".2",    "X2",   "X2"},
    /* and lock */  {".1", "X2",   "X2",  "X2", "X2",  "X2", ".2",  "X2",  "X2", ".2",   ".2",    "X2",   "X2"},
    /* charge */    {".2", ".2",   ".2",  ".2", "X11", ".3", "d11", "X11", ".2", ".2",   "d11",   "X2",   ".2"},
    /* and lock */  {".1", ".2",   ".2",  ".2", "X10", ".2", "d10", "X10", ".2", ".2",   "d10",   "X2",   ".2"},
    /* written */   {".2", ".2",   ".2",  ".2", ".2",  ".3", "d11", "X11", ".2", ".2",   ".3",    "X2",   ".2"},
    /* and lock */  {".1", ".2",   ".2",  ".2", ".2",  ".2", "d10", "X10", ".2", ".2",   ".2",    "X2",   ".2"},
    /* looked up */ {".2", ".2",   ".2",  ".2", ".2",  ".3", ".5",  ".4",  ".2", ".2",   ".3",    ".2",   ".2"},
    /* and lock */  {".1", ".2",   ".2",  ".2", ".2",  ".2", ".5",  ".4",  ".2", ".2",   ".2",    ".2",   ".2"},
};

/* clang-format on */

static enum lab_end end_of(const struct lab_card_result *r)
{
    if (r->captures > 1)
        return LAB_TWICE;
    if (!r->is_paid)
        return LAB_UNDECIDED;
    if (r->captures == 0)
        return LAB_UNPAID;
    return r->is_late ? LAB_ONCE_LATE : LAB_ONCE;
}

bool lab_cards_judge(struct lab_card_result *r)
{
    (void)snprintf(r->came_out, sizeof r->came_out, "%c%" PRId64, (char)end_of(r),
                   r->calls);
    return strcmp(r->came_out, r->expected) == 0;
}

bool lab_cards_judge_free(struct lab_card_free *f,
                          const struct lab_way *way,
                          bool is_locked)
{
    bool is_safe = is_locked || way->key >= LAB_KEY_OF_CHARGE;

    f->is_right =
        (!is_safe || f->twice == 0) && (!is_locked || f->calls == LAB_FREE_CHARGES);
    return f->is_right;
}

bool lab_cards_is_right(const struct lab_cards_report *report)
{
    return report->right == report->n && report->free_right == report->free_n;
}

const char *lab_way_name(size_t i)
{
    return lab_ways[i].name;
}

const char *lab_behaviour_name(size_t i)
{
    return lab_behaviours[i].name;
}

static bool is_wanted(const char *filter, const char *name)
{
    return filter == NULL || strcmp(filter, name) == 0;
}

/* The way to lock: with all of it, or without. */
static const struct lab_strategy *locking(bool is_locked)
{
    const struct lab_strategy *s = lab_strategies;

    while (strcmp(s->name, is_locked ? "ours" : "none") != 0)
        s++;
    return s;
}

static void play_row(struct lab_cards *c, size_t row, struct lab_cards_report *report)
{
    for (size_t b = 0; b < LAB_BEHAVIOURS; b++) {
        const struct lab_behaviour *behaviour = &lab_behaviours[b];
        struct lab_card_result *r = &report->results[report->n];
        const struct lab_fault fault = {.name = behaviour->name};

        if (!is_wanted(c->lab->flags->fault, behaviour->name))
            continue;
        *r = (struct lab_card_result){.way = c->way,
                                      .behaviour = behaviour,
                                      .expected = expected[row][b],
                                      .is_locked = row % 2 == 1};
        c->behaviour = behaviour;
        c->result = r;
        c->lab->fault = &fault;
        cli_progress("%s, %s: %s", c->way->title, r->is_locked ? "lock" : "no lock",
                     behaviour->title);
        lab_cards_play(c);
        cli_progress_end();
        report->right += lab_cards_judge(r);
        report->n++;
    }
}

static void play_free(struct lab_cards *c, size_t row, struct lab_cards_report *report)
{
    struct lab_card_free *f = &report->free[row];
    const struct lab_fault fault = {.name = "left to themselves"};

    c->lab->fault = &fault;
    cli_progress("%s: four workers left to themselves", c->way->title);
    lab_cards_run_free(c, f);
    cli_progress_end();
    report->free_right += lab_cards_judge_free(f, c->way, row % 2 == 1);
    report->free_n++;
}

enum exit_code lab_cards(struct lab *l)
{
    static struct lab_cards_report report;
    struct lab_cards c = {.lab = l, .ahead_s = kit_share(sizeof *c.ahead_s)};

    for (size_t row = 0; row < LAB_CARD_ROWS; row++) {
        c.way = &lab_ways[row / 2];
        l->strategy = locking(row % 2 == 1);
        if (!is_wanted(l->flags->strategy, c.way->name))
            continue;
        play_row(&c, row, &report);
        if (l->flags->fault == NULL)
            play_free(&c, row, &report);
    }
    lab_cards_print(&report);
    return lab_cards_is_right(&report) ? EXIT_OK : EXIT_AUDIT;
}
