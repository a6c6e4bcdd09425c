/* faults: all of them in their order, and what must come out of every cell. The run
 * fails where something else does, and where a fault did not bring what it is to bring.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/lab/scenes.h"

/* clang-format off */
const struct lab_fault lab_faults[LAB_FAULTS] = {
    {"calm",      "calm: two workers meet",                       lab_scene_calm,      lab_pool_calm,      LAB_LONG_MS, "busy_orders", NULL},
    {"killed",    "holder killed in its lock and in its work",    lab_scene_killed,    lab_pool_killed,    500,         "busy_orders", NULL},
    {"stopped",   "holder stopped beyond its lease",              lab_scene_stopped,   lab_pool_stopped,   500,         "lost", NULL},
    {"flushed",   "Redis flushed",                                lab_scene_forgets, lab_pool_forgets, LAB_LONG_MS, "fenced", lab_flush},
    {"restarted", "Redis restarted empty",                        lab_scene_forgets, lab_pool_forgets, LAB_LONG_MS, "fenced", lab_restart_empty},
    {"promoted",  "a replica without the key promoted",           lab_scene_forgets, lab_pool_forgets, LAB_LONG_MS, "fenced", lab_promote},
    {"lying",     "Redis grants every lock, tokens twice",        lab_scene_lying,     lab_pool_lying,     LAB_LONG_MS, "granted_twice", NULL},
    {"clock",     "clock of Redis jumped an hour",                lab_scene_forgets, lab_pool_forgets, LAB_LONG_MS, "fenced", lab_jump},
    {"replies",   "replies of Redis lost",                        lab_scene_replies,   lab_pool_replies,   500,         "answers_lost", NULL},
    {"postgres",  "PostgreSQL crashed and restarted",             lab_scene_postgres,  lab_pool_postgres,  1500,        "commit_unknown", NULL},
    {"commit",    "answer to COMMIT lost",                        lab_scene_commit,    lab_pool_commit,    LAB_LONG_MS, "commit_unknown", NULL},
};

/* The results that must come out, in the order of lab_faults. F2: the schedule charges two periods
 * twice. S1: one key is stuck. And what the schedule must meet at least once, or it has
 * shown nothing: a: somebody is turned away at the lock; w: waits inside it; r: a write
 * is refused; l: a lock says that it is lost; u: a transaction whose end is not known. */
static const char *const expected[LAB_STRATEGIES][LAB_FAULTS] = {
    /*               calm  killed  stopped flushed restart promote lying clock  replies  postgres commit */
    /* none */      {"F1", "F1",   "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "F1",    "F1 u",  "F1 u"},
    /* compare */   {"r",  "r",    "r",    "r",    "r",    "r",    "r",  "r",   "r",     "ru",    "ru"},
    /* mutex */     {"F1", "F1",   "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "F1",    "F1 u",  "F1 u"},
    /* setnx */     {"a",  "S2 a", "a",    "F1",   "F1",   "F1",   "F1", "a",   "F1 S1", "au",    "F1 u"},
    /* ...expire */ {"a",  "S1 a", "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "F1 S1", "F1 u",  "F1 u"},
    /* blind-del */ {"a",  "a",    "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "F1",    "F1 u",  "F1 u"},
    /* get-del */   {"a",  "a",    "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "a",     "F1 u",  "F1 u"},
    /* token-lua */ {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "F1 u",  "F1 u"},
    /* watch */     {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "F1 u",  "F1 u"},
    /* renewal */   {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "au",    "F1 u"},
    /* uncounted */ {"F1", "F1",   "F2",   "F1",   "F1",   "F1",   "F1", "F1",  "F1",    "F1 u",  "F1 u"},
    /* counted */   {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "F1 u",  "F1 u"},
    /* redlock */   {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "lu",    "F1 u"},
    /* quorum */    {"a",  "a",    "F1 a", "F1",   "a",    "F1",   "F1", "F1",  "a",     "lu",    "F1 u"},
    /* ours */      {"a",  "a",    "F1 a", "F1",   "F1",   "F1",   "F1", "F1",  "a",     "lu",    "F1 u"},
    /* ...fenced */ {"a",  "a",    "ra",   "r",    "r",    "r",    "F1", "r",   "a",     "lu",    "F1 u"},
    /* rows */      {"a",  "a",    "a",    "a",    "a",    "a",    "a",  "a",   "a",     "u",     "u"},
    /* for-update */{"w",  "w",    "w",    "w",    "w",    "w",    "w",  "w",   "w",     "u",     "u"},
    /* advisory */  {"a",  "a",    "a",    "a",    "a",    "a",    "a",  "a",   "a",     "u",     "u"},
    /* constraints*/{"r",  "r",    "r",    "r",    "r",    "r",    "r",  "r",   "r",     "ru",    "ru"},
    /* everything */{"",   "",     "",     "",     "",     "",     "",   "",    "",      "",      ""},
};

static const struct {
    char letter;
    enum lab_count what;
    const char *missing;
} races[] = {
    {'a', LAB_AWAY,       "nobody was turned away at the lock"},
    {'w', LAB_BLOCKED,    "nobody waited inside the lock"},
    {'r', LAB_REFUSED,    "no write was refused"},
    {'l', LAB_LOST,       "no lock said that it was lost"},
    {'u', LAB_UNANSWERED, "every transaction was answered"},
};

/* clang-format on */

/* The number behind a letter; 0: it is not there. */
static int64_t number_behind(const char *text, char letter)
{
    const char *at = strchr(text, letter);

    return at == NULL ? 0 : strtoll(at + 1, NULL, 10);
}

struct lab_expect lab_expected(size_t strategy, size_t fault)
{
    const char *text = expected[strategy][fault];

    return (struct lab_expect){.twice = number_behind(text, 'F'),
                               .stuck = number_behind(text, 'S'),
                               .races = text};
}

/* ---- what came out ---- */

static const char *judge_figures(const struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;
    bool lets_in = lab_is(r->strategy, LAB_LETS_IN);

    if (r->forced != r->expected.twice)
        return "the schedule did not charge twice as often as it must";
    if (f->stuck != r->expected.stuck)
        return "another number of keys is stuck than must be";
    if (!lets_in && f->twice != r->forced)
        return "charged twice in the free run, where nothing stood in the lock's way";
    if (!lets_in && f->oversold != f->twice)
        return "units oversold and periods charged twice differ";
    if (f->missed > 0 && r->expected.stuck == 0)
        return "periods missed";
    if (f->missed == 0 && r->expected.stuck > 0)
        return "nothing missed behind stuck keys";
    return NULL;
}

static const char *judge_races(const struct lab_result *r)
{
    for (size_t i = 0; i < sizeof races / sizeof races[0]; i++) {
        if (strchr(r->expected.races, races[i].letter) != NULL &&
            r->met[races[i].what] == 0)
            return races[i].missing;
    }
    return NULL;
}

static bool has_pool_race(const struct lab_result *r, const char *name)
{
    for (size_t i = 0; i < r->race_ct; i++) {
        if (strcmp(r->races[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Workers left to themselves who never wanted the same item have shown nothing. */
static const char *judge_free_run(const struct lab_result *r)
{
    const int64_t *count = r->free_run.count;

    if (lab_is(r->strategy, LAB_SHIPPED) && !has_pool_race(r, LAB_FREE_ORDERS))
        return "the workers of orders did not meet in the free run";
    if (count[LAB_AWAY] + count[LAB_REFUSED] + count[LAB_LATE] > 0)
        return NULL;
    return "the workers of the free run did not meet";
}

void lab_judge(struct lab_result *r)
{
    const char *why = judge_figures(r);

    if (why == NULL)
        why = judge_races(r);
    if (why == NULL)
        why = judge_free_run(r);
    if (why != NULL)
        (void)snprintf(r->why, sizeof r->why, "%s", why);
    else if (lab_is(r->strategy, LAB_SHIPPED) && !has_pool_race(r, r->fault->pool_race))
        (void)snprintf(r->why, sizeof r->why, "the pool met no \"%s\"",
                       r->fault->pool_race);
    r->is_right = r->why[0] == '\0';
}
