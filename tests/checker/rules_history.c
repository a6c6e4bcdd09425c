/* rules_history: what the workers said against what is there. */
#include <stdlib.h>
#include <string.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"

/* A row that a batch left, by its token. */
struct effect {
    int64_t token, item;
    enum job job;
    bool is_declined; /* may be written over by a later batch */
};

struct effects {
    size_t n;
    struct effect *rows; /* by token */
};

static int by_token(const void *left, const void *right)
{
    const struct effect *a = left, *b = right;

    return a->token < b->token ? -1 : a->token > b->token;
}

static struct effects gather(const struct tables *t)
{
    struct effects e = {.rows =
                            room_for(t->charges.rows + t->orders.rows, sizeof *e.rows)};

    for (size_t i = 0; i < t->charges.rows; i++) {
        const int64_t *c = row_of(&t->charges, i);

        e.rows[e.n++] = (struct effect){c[CHARGE_FENCE], c[CHARGE_SUB], JOB_BILLING,
                                        c[CHARGE_CAPTURED] == 0};
    }
    for (size_t i = 0; i < t->orders.rows; i++) {
        const int64_t *o = row_of(&t->orders, i);

        if (o[ORDER_STATE] == STATE_DONE || o[ORDER_STATE] == STATE_REJECTED)
            e.rows[e.n++] =
                (struct effect){o[ORDER_FENCE], o[ORDER_ID], JOB_ORDERS, false};
    }
    qsort(e.rows, e.n, sizeof *e.rows, by_token);
    return e;
}

/* The first effect of a token; NULL: none. */
static const struct effect *first_of(const struct effects *e, int64_t token)
{
    size_t i = first_from(e->rows, e->n, sizeof *e->rows, token);

    return i < e->n && e->rows[i].token == token ? &e->rows[i] : NULL;
}

/* The next one of the same token. */
static const struct effect *next_of(const struct effects *e, const struct effect *row)
{
    return row + 1 < e->rows + e->n && row[1].token == row->token ? row + 1 : NULL;
}

/* ---- every effect was asked for ---- */

static void nothing_is_unasked(const struct effects *e, const struct history *h)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct effect *row = &e->rows[i];
        const struct attempt *a = history_find(h, row->token);

        while (a != NULL && a < h->attempts + h->n && a->token == row->token &&
               !attempt_has(a, row->job, row->item))
            a++;
        if (a == NULL || a == h->attempts + h->n || a->token != row->token)
            broken("nothing_unasked", "%s " N " has token " N ", and no invoke of it",
                   row->job == JOB_ORDERS ? "order" : "charge of subscription",
                   row->item, row->token);
    }
}

/* ---- every outcome is what was said ---- */

/* The sum of the attempts with one token. */
struct said {
    int64_t done, maybe; /* periods charged and orders decided: surely, and perhaps */
    bool is_open;        /* one of them did not say how much */
};

/* Its effects may be lost with the server that said ok. */
static bool may_be_lost(const struct history *h, const struct attempt *a)
{
    return history_mark(h, MARK_LOST, 0, a->begun_us + 1) != INT64_MAX;
}

static bool has_same_row(const struct attempt *a, const struct attempt *b)
{
    for (size_t i = 0; i < a->n; i++) {
        if (attempt_has(b, a->job, a->items[i]))
            return true;
    }
    return false;
}

static void check_holder(const struct attempt *a, const struct attempt *b, bool quorum)
{
    if (strcmp(a->worker, b->worker) != 0 && (!quorum || has_same_row(a, b)))
        broken("one_holder", "token " N " was held by %s and by %s", a->token,
               a->worker, b->worker);
}

static size_t add_up(const struct history *h, size_t i, bool quorum, struct said *said)
{
    const struct attempt *first = &h->attempts[i];

    *said = (struct said){0};
    for (; i < h->n && h->attempts[i].token == first->token; i++) {
        const struct attempt *a = &h->attempts[i];
        int64_t n = a->charged + a->fulfilled + a->rejected;
        bool is_ok = a->end == END_OK, is_sure = is_ok && !may_be_lost(h, a);

        said->done += is_sure ? n : 0;
        said->maybe += a->end == END_UNKNOWN || (is_ok && !is_sure) ? n : 0;
        said->is_open = said->is_open || a->end == END_NONE;
        for (const struct attempt *b = first; b < a; b++)
            check_holder(b, a, quorum);
    }
    return i;
}

static void
outcomes_are_right(const struct effects *e, const struct history *h, bool quorum)
{
    for (size_t i = 0; i < h->n;) {
        int64_t token = h->attempts[i].token, found = 0;
        struct said said;

        i = add_up(h, i, quorum, &said);
        for (const struct effect *r = first_of(e, token); r != NULL; r = next_of(e, r))
            found += !r->is_declined;
        if (found < said.done)
            broken("ok_in_tables",
                   "token " N ": " N " effects were ok, " N " are there", token,
                   said.done, found);
        if (found > said.done && !said.is_open && found != said.done + said.maybe)
            broken("fail_without_effect",
                   "token " N ": " N " effects are there, " N " were ok", token, found,
                   said.done);
    }
}

/* When it was killed over this attempt; INT64_MAX: nothing tells of it. */
static int64_t killed_at(const struct history *h, const struct attempt *a)
{
    return history_mark(h, MARK_KILLED, a->pid, a->ended_us);
}

static void everything_ends(const struct history *h, bool kills)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *a = &h->attempts[i];
        bool may_be = a->is_last && (kills || killed_at(h, a) != INT64_MAX);

        if (a->end == END_NONE && !may_be)
            broken("invoke_ends", "%s, invoke " N ": nothing is said of its end",
                   a->worker, a->seq);
        if (a->end == END_UNKNOWN && !may_be)
            broken("unknown_settled", "%s, invoke " N " was never settled", a->worker,
                   a->seq);
    }
}

/* ---- recovery ---- */

/* From when on its work could be taken up: its death, or the end of the fault that it
 * died in. */
static int64_t waits_since(const struct history *h, const struct attempt *a)
{
    int64_t killed = killed_at(h, a),
            death = killed != INT64_MAX ? killed : a->ended_us;
    int64_t healed = history_mark(h, MARK_HEALED, 0, death);

    return healed != INT64_MAX ? healed : death;
}

static bool took_effect(const struct effects *e, const struct attempt *a, int64_t item)
{
    const struct effect *row = first_of(e, a->token);

    while (row != NULL && (row->item != item || row->job != a->job))
        row = next_of(e, row);
    return row != NULL;
}

/* When somebody was after the item next; INT64_MAX: nobody was. */
static int64_t next_try(const struct history *h, const struct attempt *a, int64_t item)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *b = &h->attempts[i];

        if (b->begun_us > a->begun_us && b->begun_us < next &&
            attempt_has(b, a->job, item))
            next = b->begun_us;
    }
    return next;
}

static int64_t first_ok(const struct history *h, int64_t after_us)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *a = &h->attempts[i];

        if (a->end == END_OK && a->ended_us >= after_us && a->ended_us < first)
            first = a->ended_us;
    }
    return first;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t recovery_of(const struct effects *e,
                           const struct history *h,
                           const struct attempt *a,
                           int64_t bound_us)
{
    int64_t since = waits_since(h, a), longest = 0;

    for (size_t k = 0; k < a->n; k++) {
        int64_t next = next_try(h, a, a->items[k]);
        int64_t took = next == INT64_MAX || took_effect(e, a, a->items[k])
                           ? 0
                           : larger(0, next - since);

        longest = larger(longest, took);
        if (bound_us > 0 && took > bound_us)
            broken("recovery_bounded",
                   "item " N " of %s, invoke " N " was worked again after " N " ms",
                   a->items[k], a->worker, a->seq, took / 1000);
    }
    return longest;
}

static int64_t
recovery(const struct effects *e, const struct history *h, int64_t bound_us)
{
    int64_t longest = 0;

    for (size_t i = 0; i < h->n; i++)
        if (h->attempts[i].end == END_NONE || h->attempts[i].end == END_UNKNOWN)
            longest = larger(longest, recovery_of(e, h, &h->attempts[i], bound_us));
    for (size_t i = 0; i < h->n_marks; i++) {
        int64_t at = h->marks[i].at_us, ok = first_ok(h, at);

        if (h->marks[i].kind != MARK_HEALED)
            continue;
        if (ok == INT64_MAX)
            broken("recovery_bounded", "healed, and nothing was ok any more");
        else if (bound_us > 0 && ok - at > bound_us)
            broken("recovery_bounded", "healed, and the first ok after " N " ms",
                   (ok - at) / 1000);
        longest = larger(longest, ok == INT64_MAX ? 0 : ok - at);
    }
    return longest;
}

int64_t rules_of_history(const struct tables *t,
                         const struct history *h,
                         const struct limits *limits)
{
    struct effects e = gather(t);
    int64_t longest;

    nothing_is_unasked(&e, h);
    outcomes_are_right(&e, h, limits->quorum);
    everything_ends(h, limits->kills);
    longest = recovery(&e, h, limits->bound_us);
    free(e.rows);
    return longest;
}
