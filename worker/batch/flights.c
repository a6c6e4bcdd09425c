/* flights: calls that are under way, and their answers. */
#include "worker/batch/flights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"
#include "worker/jobs/calls.h"

enum {
    SETTLE_MAX = 500, /* answers of one transaction */
    SETTLE_MS = 20,   /* between two transactions that are not full */
    TROUBLE_CT = 10,  /* answers in a row that decide nothing: the gateway is sick, */
    PROBE_MS = 500,   /* and is asked so often */
    AGAIN_MS = 1000,  /* until the next call, doubled with each */
    AGAIN_MOST_MS = 60000
};

/* What one batch has sent. */
struct flight {
    struct rlock *lock; /* NULL: without locks */
    int64_t token;
    int64_t extend_ms; /* when its lock is extended next; 0: it is lost */
    size_t calls;      /* that are not settled */
    unsigned short of_key[RLOCK_KEYS_MAX]; /* of these, by the keys of the lock */
    struct flight *next;
};

/* A call, until its answer is settled. */
struct flown {
    struct flight *flight;
    int64_t payment;
    size_t key;       /* of its user, in the lock */
    int64_t calls;    /* with this one */
    int64_t asked_ms; /* before it began, money was last asked for */
    int64_t end_ms; /* from then on its row is due again, and the answer is nobody's */
    struct gateway_answer answer;
    struct flown *next;
};

struct flights {
    struct calls *calls;
    struct flight *first;
    struct flown *answered; /* the newest first */
    size_t under_way, answered_ct;
    int64_t settled_ms, sent_ms;
    unsigned in_trouble; /* answers in a row that decide nothing */
    bool is_told;        /* a failure to settle was */
};

/* The calls of the workers of this slot, but for one, are due. */
static int take_over(struct session *s, const char *but, int64_t *n, struct err *e)
{
    char slot[WORKER_NAME] = "";
    const struct pg_param params[] = {pg_text(slot), pg_text(but)};

    (void)snprintf(slot, sizeof slot, "%s.%d.", s->pool, s->slot);
    return pg_ask(s->pg, s->job->calls->take_over, params, 2, n, e);
}

void flights_give_up(struct session *s)
{
    struct err ignored = {0};
    int64_t n;

    if (flights_under_way(s) > 0 && pg_is_usable(s->pg) &&
        take_over(s, "", &n, &ignored) == 0)
        log_info("payments.given_up", "calls=%" PRId64, n);
}

int flights_open(struct session *s, struct err *e)
{
    int64_t n;

    if (s->job->calls == NULL || s->flights != NULL)
        return 0;
    if (take_over(s, s->name, &n, e) != 0)
        return (int)e->code;
    s->flights = calloc(1, sizeof *s->flights);
    if (s->flights == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    if (calls_open(&s->flights->calls, s->config, e) != 0) {
        free(s->flights);
        s->flights = NULL;
        return (int)e->code;
    }
    if (n > 0)
        log_info("payments.taken_over", "calls=%" PRId64, n);
    return 0;
}

size_t flights_under_way(const struct session *s)
{
    return s->flights != NULL ? s->flights->under_way : 0;
}

size_t flights_room(const struct session *s)
{
    const struct flights *f = s->flights;
    size_t most = (size_t)s->config->gateway_calls;

    if (f == NULL)
        return s->job->calls == NULL ? BATCH_MAX : 0;
    if (f->in_trouble >= TROUBLE_CT)
        return f->under_way == 0 && clk_ms() - f->sent_ms >= PROBE_MS ? 1 : 0;
    return f->under_way < most ? most - f->under_way : 0;
}

/* ---- a batch becomes a flight ---- */

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
}

static void
read_request(const struct pg_result *res, size_t row, struct gateway_request *r)
{
    r->payment = pg_get_int8(res, row, 0);
    r->user = pg_get_int8(res, row, 1);
    copy(r->key, sizeof r->key, pg_get_text(res, row, 2));
    copy(r->paid, sizeof r->paid, pg_get_text(res, row, 3));
    r->amount_minor = pg_get_int8(res, row, 4);
    copy(r->currency, sizeof r->currency, pg_get_text(res, row, 5));
    copy(r->customer, sizeof r->customer, pg_get_text(res, row, 6));
    copy(r->method, sizeof r->method, pg_get_text(res, row, 7));
    r->calls = pg_get_int8(res, row, 8);
    r->is_look = pg_get_int8(res, row, 9) != 0;
    r->asked_ms = pg_get_int8(res, row, 10);
    r->sent_s = pg_get_int8(res, row, 11);
}

static void note_answer(struct flights *f, struct flown *call)
{
    call->next = f->answered;
    f->answered = call;
    f->answered_ct++;
}

/* A call that cannot be made, or not any more under its key, has an answer at once. */
static bool
begin(struct session *s, struct flight *flight, const struct gateway_request *r)
{
    struct flights *f = s->flights;
    struct flown *call = calloc(1, sizeof *call);
    const struct batch_key *key = batch_find(s->batch, RESOURCE_USER, r->user);
    struct err e = {0};

    if (call == NULL || key == NULL) {
        free(call);
        return false; /* its row is due again later */
    }
    *call = (struct flown){
        .flight = flight,
        .payment = r->payment,
        .key = (size_t)(key - s->batch->keys),
        .calls = r->calls,
        .asked_ms = r->asked_ms,
        .end_ms = clk_ms() + s->job->setting(s->config),
    };
    flight->calls++;
    flight->of_key[call->key]++;
    f->under_way++;
    if (calls_begin(f->calls, r, call, &e) != 0) {
        call->answer.outcome = GATEWAY_LATER;
        copy(call->answer.reason, sizeof call->answer.reason, err_words(&e));
        note_answer(f, call);
    }
    return true;
}

/* The keys of which no call is under way. */
static void give_back_others(struct session *s, struct flight *flight)
{
    size_t at[RLOCK_KEYS_MAX], n = 0;

    for (size_t i = 0; flight->lock != NULL && i < s->batch->key_ct; i++) {
        if (flight->of_key[i] == 0 && rlock_key_code(flight->lock, i) == RLOCK_OK)
            at[n++] = i;
    }
    if (n > 0 && rlock_release_some(flight->lock, at, n) < 0)
        log_debug("lock.left_to_lease", "err=%s", LOG_TEXT(rlock_error(s->locks)));
}

bool flights_take(struct session *s)
{
    static struct job_rows sent;
    struct flights *f = s->flights;
    size_t n = items_list(s, ITEM_WORKED, &sent);
    const struct pg_param params[] = {pg_int8(s->attempt.token),
                                      pg_int8_array(sent.items, n)};
    struct flight *flight;
    struct rlock *lock = NULL;
    struct pg_result *res;
    struct err e = {0};

    if (f == NULL || n == 0 ||
        (s->locks != NULL && (lock = rlock_new(s->locks)) == NULL))
        return false;
    flight = calloc(1, sizeof *flight);
    if (flight == NULL ||
        pg_exec(s->pg, s->job->calls->requests, params, 2, &res, &e) != 0) {
        rlock_free(lock);
        free(flight);
        return false;
    }
    flight->token = s->attempt.token;
    flight->lock = s->locks != NULL ? s->lock : NULL;
    flight->extend_ms = clk_ms() + s->config->lease_ms / 3;
    for (size_t row = 0; row < pg_rows(res); row++) {
        struct gateway_request r;

        read_request(res, row, &r);
        (void)begin(s, flight, &r);
    }
    pg_result_free(res);
    if (flight->calls == 0) {
        rlock_free(lock);
        free(flight);
        return false;
    }
    if (s->locks != NULL) {
        rlock_set_nonce_copy(s->lock, NULL);
        s->lock = lock;
        rlock_set_nonce_copy(s->lock, s->inflight->nonce);
    }
    give_back_others(s, flight);
    flight->next = f->first;
    f->first = flight;
    f->sent_ms = clk_ms();
    return true;
}

/* ---- answers ---- */

static void take_answers(struct session *s)
{
    struct flights *f = s->flights;
    struct gateway_answer answer;
    struct flown *call;

    while ((call = calls_take(f->calls, &answer)) != NULL) {
        bool decides =
            answer.outcome != GATEWAY_UNKNOWN && answer.outcome != GATEWAY_LATER;

        call->answer = answer;
        if (answer.outcome == GATEWAY_NOTHING &&
            call->asked_ms < 2 * s->config->gateway_timeout_ms)
            call->answer.outcome = GATEWAY_UNKNOWN; /* it may still be on its way */
        f->in_trouble = decides ? 0 : f->in_trouble + 1;
        if (f->in_trouble == TROUBLE_CT)
            log_warn("gateway.sick",
                     "code=LL-7001 answers=%u last=\"%s\" note=\"payments wait; it is "
                     "asked twice a second\"",
                     f->in_trouble, LOG_TEXT(answer.reason));
        note_answer(f, call);
    }
}

/* The calls of a lost lock go on, since their rows keep the promise. While Redis does
 * not answer, only the first lock waits for it. */
static void extend_locks(struct session *s)
{
    int64_t now_ms = clk_ms();
    size_t lost = 0, calls = 0;
    int code = RLOCK_OK;

    for (struct flight *flight = s->flights->first; flight != NULL;
         flight = flight->next) {
        if (flight->lock == NULL || flight->extend_ms == 0 ||
            now_ms < flight->extend_ms)
            continue;
        if (code >= 0)
            code = rlock_extend(flight->lock, (uint32_t)s->config->lease_ms);
        flight->extend_ms = now_ms + s->config->lease_ms / 3;
        if (code == RLOCK_LOST || !rlock_valid(flight->lock, 0)) {
            flight->extend_ms = 0;
            lost++;
            calls += flight->calls;
        }
    }
    session_count(s, COUNT_lost, (int64_t)lost);
    if (lost > 0)
        log_warn(
            "gateway.lock_lost",
            "code=LL-7002 locks=%zu calls=%zu note=\"their answers are settled all "
            "the same\"",
            lost, calls);
}

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

static int64_t pause_ms(const struct flown *call)
{
    unsigned n = call->calls > 1 ? (unsigned)(call->calls - 1) : 0;

    return clk_backoff_ms(n < 10 ? n : 10, AGAIN_MS, AGAIN_MOST_MS);
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

static size_t fill(struct settling *t, const struct flown *list, size_t most)
{
    char *outcome = t->outcomes, *reference = t->references, *reason = t->reasons;
    size_t n = 0;

    for (; list != NULL && n < most; list = list->next, n++) {
        t->ids[n] = list->payment;
        t->tokens[n] = list->flight->token;
        t->pauses[n] = pause_ms(list);
        outcome = put_text(outcome, n, gateway_word(list->answer.outcome));
        reference = put_text(reference, n, list->answer.reference);
        reason = put_text(reason, n, list->answer.reason);
    }
    memcpy(outcome, "}", 2);
    memcpy(reference, "}", 2);
    memcpy(reason, "}", 2);
    return n;
}

/* The answers of the first `most` calls of the list; *settled: their ids that are. */
static int settle(struct session *s,
                  const struct flown *list,
                  size_t most,
                  struct pg_result **res,
                  struct err *e)
{
    static struct settling t;
    size_t n = fill(&t, list, most);
    const struct pg_param params[] = {
        pg_text(s->name),        pg_text(s->now),
        pg_int8_array(t.ids, n), pg_int8_array(t.tokens, n),
        pg_text(t.outcomes),     pg_text(t.references),
        pg_text(t.reasons),      pg_int8_array(t.pauses, n),
    };

    if (pg_exec(s->pg, s->job->calls->settle, params, 8, res, e) != 0)
        return (int)e->code;
    for (size_t i = 1; s->job->counters[i].name != NULL; i++)
        s->counters->value[COUNT_JOB + i] += pg_get_int8(*res, 0, i);
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

/* Moves those of the first `most` calls that are settled, or too old, to `ended`. */
static void sort_out(struct flights *f,
                     size_t most,
                     const struct pg_result *res,
                     struct flown **ended)
{
    struct pg_array ids = {0};
    int64_t now_ms = clk_ms();
    struct flown **link = &f->answered;

    if (res != NULL)
        ids = pg_get_int8s(res, 0, 0);
    for (size_t i = 0; i < most && *link != NULL; i++) {
        struct flown *call = *link;

        if (!is_among(&ids, call->payment) && now_ms < call->end_ms) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        f->answered_ct--;
        call->next = *ended;
        *ended = call;
    }
}

/* All at once, or, after an error that one of them may have caused, one by one. */
static void settle_answers(struct session *s)
{
    struct flights *f = s->flights;
    struct flown *ended = NULL;
    struct pg_result *res = NULL;
    struct err e = {0};
    size_t most = SETTLE_MAX;

    f->settled_ms = clk_ms();
    if (!pg_is_usable(s->pg))
        return;
    if (settle(s, f->answered, most, &res, &e) != 0) {
        if (months_is_missing(&e))
            (void)!months_make(s, &(struct err){0});
        if (!f->is_told)
            log_warn("gateway.not_settled", "code=LL-7003 err=%s note=\"tried again\"",
                     LOG_TEXT(e.msg));
        f->is_told = true;
        most = 1;
        res = NULL;
        if (pg_is_usable(s->pg) && settle(s, f->answered, most, &res, &e) != 0)
            res = NULL;
    } else {
        f->is_told = false;
    }
    sort_out(f, most, res, &ended);
    if (res != NULL)
        pg_result_free(res);
    end_calls(s, ended);
    if (most == 1 && f->answered != NULL && f->answered->next != NULL) {
        struct flown *first = f->answered, **link = &f->answered; /* others first */

        f->answered = first->next;
        while (*link != NULL)
            link = &(*link)->next;
        first->next = NULL;
        *link = first;
    }
}

void flights_step(struct session *s, int64_t ms)
{
    struct flights *f = s->flights;

    if (f == NULL)
        return;
    calls_step(f->calls, f->answered_ct > 0 && ms > SETTLE_MS ? SETTLE_MS : ms);
    take_answers(s);
    extend_locks(s);
    if (f->answered_ct >= SETTLE_MAX ||
        (f->answered_ct > 0 && clk_ms() - f->settled_ms >= SETTLE_MS))
        settle_answers(s);
}

void flights_forget_locks(struct session *s)
{
    for (struct flight *flight = s->flights != NULL ? s->flights->first : NULL;
         flight != NULL; flight = flight->next) {
        if (flight->lock != NULL)
            rlock_abandon(flight->lock);
        rlock_free(flight->lock);
        flight->lock = NULL;
    }
}

/* What was sent stays so: its rows are due when no answer comes any more. */
void flights_close(struct session *s)
{
    struct flights *f = s->flights;

    if (f == NULL)
        return;
    calls_close(f->calls);
    while (f->first != NULL) {
        struct flight *flight = f->first;

        f->first = flight->next;
        rlock_free(flight->lock);
        free(flight);
    }
    while (f->answered != NULL) {
        struct flown *call = f->answered;

        f->answered = call->next;
        free(call);
    }
    free(f);
    s->flights = NULL;
}
