/* rules_history: what the workers said against what is there. */
#include <inttypes.h>
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
    struct effects e = {
        .rows = calloc(t->charges.rows + t->orders.rows + 1, sizeof *e.rows)};

    if (e.rows == NULL)
        die("out of memory");
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

/* First effect with the token or a higher one. */
static size_t first_of(const struct effects *e, int64_t token)
{
    size_t low = 0, high = e->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (e->rows[middle].token < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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
            broken("nothing_unasked",
                   "%s %" PRId64 " has token %" PRId64 ", and no invoke of it",
                   row->job == JOB_ORDERS ? "order" : "charge of subscription",
                   row->item, row->token);
    }
}

/* ---- every outcome is what was said ---- */

/* What the attempts with one token said. */
struct said {
    int64_t done, maybe; /* periods charged and orders decided: surely, and perhaps */
    bool is_open;        /* one of them did not say how much */
};

/* Whether what it did may be lost with the server that said ok. */
static bool may_be_lost(const struct history *h, const struct attempt *a)
{
    for (size_t i = 0; i < h->n_marks; i++) {
        if (h->marks[i].kind == MARK_LOST && a->begun_us < h->marks[i].at_us)
            return true;
    }
    return false;
}

static size_t add_up(const struct history *h, size_t i, struct said *said)
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
        if (strcmp(a->worker, first->worker) != 0)
            broken("one_holder", "token %" PRId64 " was held by %s and by %s", a->token,
                   first->worker, a->worker);
    }
    return i;
}

static void outcomes_are_right(const struct effects *e, const struct history *h)
{
    for (size_t i = 0; i < h->n;) {
        int64_t token = h->attempts[i].token, found = 0;
        struct said said;

        i = add_up(h, i, &said);
        for (size_t k = first_of(e, token); k < e->n && e->rows[k].token == token; k++)
            found += !e->rows[k].is_declined;
        if (found < said.done)
            broken("ok_in_tables",
                   "token %" PRId64 ": %" PRId64 " effects were ok, %" PRId64
                   " are there",
                   token, said.done, found);
        if (found > said.done && !said.is_open && found != said.done + said.maybe)
            broken("fail_without_effect",
                   "token %" PRId64 ": %" PRId64 " effects are there, %" PRId64
                   " were ok",
                   token, found, said.done);
    }
}

/* When it was killed over this attempt; 0: nothing tells of it. */
static int64_t killed_at(const struct history *h, const struct attempt *a)
{
    for (size_t i = 0; i < h->n_marks; i++) {
        const struct mark *m = &h->marks[i];

        if (m->kind == MARK_KILLED && m->pid == a->pid && m->at_us >= a->ended_us)
            return m->at_us;
    }
    return 0;
}

static void everything_ends(const struct history *h, bool kills)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *a = &h->attempts[i];
        bool may_be = a->is_last && (kills || killed_at(h, a) != 0);

        if (a->end == END_NONE && !may_be)
            broken("invoke_ends", "%s, invoke %" PRId64 ": nothing is said of its end",
                   a->worker, a->seq);
        if (a->end == END_UNKNOWN && !may_be)
            broken("unknown_settled", "%s, invoke %" PRId64 " was never settled",
                   a->worker, a->seq);
    }
}

/* ---- recovery ---- */

/* From when on its work could be taken up: its death, or the end of the fault that it
 * died in. */
static int64_t waits_since(const struct history *h, const struct attempt *a)
{
    int64_t killed = killed_at(h, a), death = killed != 0 ? killed : a->ended_us;
    int64_t healed = 0;

    for (size_t i = 0; i < h->n_marks; i++) {
        const struct mark *m = &h->marks[i];

        if (m->kind == MARK_HEALED && m->at_us >= death &&
            (healed == 0 || m->at_us < healed))
            healed = m->at_us;
    }
    return healed != 0 ? healed : death;
}

static bool took_effect(const struct effects *e, const struct attempt *a, int64_t item)
{
    for (size_t k = first_of(e, a->token); k < e->n && e->rows[k].token == a->token;
         k++) {
        if (e->rows[k].item == item && e->rows[k].job == a->job)
            return true;
    }
    return false;
}

/* When somebody was after the item next; 0: nobody was. */
static int64_t next_try(const struct history *h, const struct attempt *a, int64_t item)
{
    int64_t next = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *b = &h->attempts[i];

        if (b->begun_us > a->begun_us && (next == 0 || b->begun_us < next) &&
            attempt_has(b, a->job, item))
            next = b->begun_us;
    }
    return next;
}

static int64_t recovery_of(const struct effects *e,
                           const struct history *h,
                           const struct attempt *a,
                           int64_t bound_us)
{
    int64_t since = waits_since(h, a), longest = 0;

    for (size_t k = 0; k < a->n; k++) {
        int64_t next = took_effect(e, a, a->items[k]) ? 0 : next_try(h, a, a->items[k]);
        int64_t took = next > since ? next - since : 0;

        longest = took > longest ? took : longest;
        if (bound_us > 0 && took > bound_us)
            broken("recovery_bounded",
                   "item %" PRId64 " of %s, invoke %" PRId64
                   " was worked again after %" PRId64 " ms",
                   a->items[k], a->worker, a->seq, took / 1000);
    }
    return longest;
}

static int64_t first_ok(const struct history *h, int64_t after_us)
{
    int64_t first = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *a = &h->attempts[i];

        if (a->end == END_OK && a->ended_us >= after_us &&
            (first == 0 || a->ended_us < first))
            first = a->ended_us;
    }
    return first;
}

static int64_t
recovery(const struct effects *e, const struct history *h, int64_t bound_us)
{
    int64_t longest = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct attempt *a = &h->attempts[i];

        if (a->end == END_NONE || a->end == END_UNKNOWN) {
            int64_t took = recovery_of(e, h, a, bound_us);

            longest = took > longest ? took : longest;
        }
    }
    for (size_t i = 0; i < h->n_marks; i++) {
        int64_t at = h->marks[i].at_us, ok = first_ok(h, at);
        int64_t took = h->marks[i].kind != MARK_HEALED || ok == 0 ? 0 : ok - at;

        longest = took > longest ? took : longest;
        if (bound_us > 0 && took > bound_us)
            broken("recovery_bounded", "healed, and the first ok after %" PRId64 " ms",
                   took / 1000);
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
    outcomes_are_right(&e, h);
    everything_ends(h, limits->kills);
    longest = recovery(&e, h, limits->bound_us);
    free(e.rows);
    return longest;
}
