/* settle: what the answers to calls bring about, in transactions of their own. */
#define _GNU_SOURCE /* stpcpy */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/flights_inside.h"

enum {
    AGAIN_MS = 1000, /* until the next call, doubled with each */
    AGAIN_MOST_MS = 60000,
    AGAIN_SICK_MS = 2000 /* at most, of a sick gateway: flights_room spares it */
};

static void remove_flight(struct flights *f, struct flight *flight)
{
    struct flight **link = &f->first;

    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    rlock_free(flight->lock); /* releases what is left */
    free(flight);
}

/* Calls that are settled, or nobody's: their users are free where no other call of the
 * flight is under way. All are of one flight. */
static void
give_back(struct session *s, struct flight *flight, const size_t *keys, size_t n)
{
    size_t at[SETTLE_MAX], freed = 0;

    for (size_t i = 0; i < n; i++) {
        flight->calls--;
        if (--flight->of_key[keys[i]] == 0 && flight->lock != NULL &&
            rlock_key_code(flight->lock, keys[i]) == RLOCK_OK)
            at[freed++] = keys[i];
    }
    s->flights->under_way -= n;
    if (flight->calls == 0)
        remove_flight(s->flights, flight);
    else if (freed > 0 && rlock_release_some(flight->lock, at, freed) < 0)
        log_debug("lock.left_to_lease", "err=%s", LOG_TEXT(rlock_error(s->locks)));
}

/* Frees the calls of a list, flight by flight. */
static void end_calls(struct session *s, struct flown *list)
{
    while (list != NULL) {
        struct flight *flight = list->flight;
        struct flown **link = &list;
        size_t keys[SETTLE_MAX], n = 0;

        while (*link != NULL) {
            struct flown *call = *link;

            if (call->flight != flight || n == SETTLE_MAX) {
                link = &call->next;
                continue;
            }
            keys[n++] = call->key;
            *link = call->next;
            free(call);
        }
        give_back(s, flight, keys, n);
    }
}

/* When a sick gateway is well, all that it left undecided is asked for soon. */
static int64_t pause_ms(const struct flights *f, const struct flown *call)
{
    unsigned n = call->calls > 1 ? (unsigned)(call->calls - 1) : 0;
    int64_t most_ms = flights_is_sick(f) ? AGAIN_SICK_MS : AGAIN_MOST_MS;
    int64_t ms = clk_backoff_ms(n < 10 ? n : 10, AGAIN_MS, most_ms);

    return ms > call->answer.wait_ms ? ms : call->answer.wait_ms;
}

/* The n-th element of the text of an array of texts, which are printable; "" is null.
 * Returns its end. */
static char *put_text(char *at, size_t n, const char *text)
{
    *at++ = n == 0 ? '{' : ',';
    if (text[0] == '\0')
        return stpcpy(at, "NULL");
    *at++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '"';
    return at;
}

struct settling {
    int64_t ids[SETTLE_MAX], tokens[SETTLE_MAX], pauses[SETTLE_MAX];
    char outcomes[SETTLE_MAX * 16];
    char references[SETTLE_MAX * (2 * GATEWAY_ID + 4)];
    char reasons[SETTLE_MAX * (2 * 160 + 4)];
};

static size_t
fill(struct settling *t, const struct flights *f, bool charges, size_t most)
{
    const struct flown *list = f->answered;
    char *outcome = t->outcomes, *reference = t->references, *reason = t->reasons;
    size_t n = 0;

    for (; list != NULL && n < most; list = list->next) {
        if (list->is_charge != charges)
            continue;
        t->ids[n] = list->payment;
        t->tokens[n] = list->flight->token;
        t->pauses[n] = pause_ms(f, list);
        outcome = put_text(outcome, n, gateway_word(list->answer.outcome));
        reference = put_text(reference, n, list->answer.reference);
        reason = put_text(reason, n, list->answer.reason);
        n++;
    }
    memcpy(outcome, "}", 2);
    memcpy(reference, "}", 2);
    memcpy(reason, "}", 2);
    return n;
}

/* Writes down the answers of the first `most` calls, those for charges or all others;
 * *res: the ids of those that are settled. NULL: there are none. */
static int settle(
    struct session *s, bool charges, size_t most, struct pg_result **res, struct err *e)
{
    static struct settling t;
    size_t n = fill(&t, s->flights, charges, most), i = 1;
    const struct pg_param params[] = {
        pg_text(s->name),        pg_text(s->now),
        pg_int8_array(t.ids, n), pg_int8_array(t.tokens, n),
        pg_text(t.outcomes),     pg_text(t.references),
        pg_text(t.reasons),      pg_int8_array(t.pauses, n),
    };

    *res = NULL;
    if (n == 0)
        return 0;
    session_reach(s, HOOK_BEFORE_SETTLE);
    if (pg_exec(s->pg, s->job->calls->settle, params, 8, res, e) != 0)
        return (int)e->code;
    session_reach(s, HOOK_AFTER_SETTLE);
    for (; s->job->counters[i].name != NULL; i++)
        s->counters->value[COUNT_JOB + i] += pg_get_int8(*res, 0, i);
    s->feeds_others = s->feeds_others || pg_get_int8(*res, 0, i) > 0;
    atomic_fetch_add(s->commits, 1);
    return 0;
}

static bool is_among(const struct pg_array *ids, int64_t id)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (pg_int8_at(ids, i) == id)
            return true;
    }
    return false;
}

/* Of the first `most` calls, for charges or not, those that are settled, or too old, go
 * to `ended`; the others wait behind all that were not tried. */
static void sort_out(struct flights *f,
                     bool charges,
                     size_t most,
                     const struct pg_result *res,
                     struct flown **ended)
{
    struct pg_array ids = {0};
    int64_t now_ms = clk_ms();
    struct flown **link = &f->answered, *waiting = NULL, **last = &waiting;

    if (res != NULL)
        ids = pg_get_int8s(res, 0, 0);
    for (size_t i = 0; i < most && *link != NULL;) {
        struct flown *call = *link;

        if (call->is_charge != charges) {
            link = &call->next;
            continue;
        }
        i++;
        *link = call->next;
        if (is_among(&ids, call->payment) || now_ms >= call->end_ms) {
            f->answered_ct--;
            call->next = *ended;
            *ended = call;
        } else {
            call->next = NULL;
            *last = call;
            last = &call->next;
        }
    }
    while (*link != NULL)
        link = &(*link)->next;
    *link = waiting;
}

static void settle_some(struct session *s, bool charges)
{
    struct flights *f = s->flights;
    struct flown *ended = NULL;
    struct pg_result *res = NULL;
    struct err e = {0};
    size_t most = SETTLE_MAX;

    if (settle(s, charges, most, &res, &e) != 0) {
        if (months_is_missing(&e))
            (void)!months_make(s, &(struct err){0});
        if (!f->is_told)
            log_warn("gateway.not_settled", "code=LL-6103 err=%s note=\"tried again\"",
                     LOG_TEXT(e.msg));
        f->is_told = true;
        most = 1;
        if (pg_is_usable(s->pg) && settle(s, charges, most, &res, &e) != 0)
            res = NULL;
    } else if (res != NULL) {
        f->is_told = false;
    }
    sort_out(f, charges, most, res, &ended);
    if (res != NULL)
        pg_result_free(res);
    end_calls(s, ended);
}

void flights_settle(struct session *s)
{
    s->flights->settled_ms = clk_ms();
    if (pg_is_usable(s->pg))
        settle_some(s, true);
    if (pg_is_usable(s->pg))
        settle_some(s, false);
}
