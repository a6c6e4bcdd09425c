/* flights: calls that are under way, and their answers. */
#include "worker/batch/flights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/flights_inside.h"

enum {
    PROBE_MS = 500, /* between calls to a gateway that is sick */
    SECOND_MS = 1000
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

bool flights_are_sick(const struct session *s)
{
    return s->flights != NULL && flights_is_sick(s->flights);
}

size_t flights_under_way(const struct session *s)
{
    return s->flights != NULL ? s->flights->under_way : 0;
}

/* How many more may begin in this second. */
static size_t rate_room(const struct session *s)
{
    const struct flights *f = s->flights;
    size_t rate = (size_t)s->config->gateway_rate;
    size_t begun = clk_ms() - f->second_ms < SECOND_MS ? f->in_second : 0;

    if (rate == 0)
        return BATCH_MAX;
    return begun < rate ? rate - begun : 0;
}

size_t flights_room(const struct session *s)
{
    const struct flights *f = s->flights;
    size_t most = (size_t)s->config->gateway_calls, room, rate;

    if (f == NULL)
        return s->job->calls == NULL ? BATCH_MAX : 0;
    if (flights_is_sick(f))
        return f->under_way == 0 && clk_ms() - f->sent_ms >= PROBE_MS ? 1 : 0;
    room = f->under_way < most ? most - f->under_way : 0;
    rate = rate_room(s);
    return room < rate ? room : rate;
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
    r->is_charge = pg_get_int8(res, row, 12) != 0;
    copy(r->of, sizeof r->of,
         pg_is_null(res, row, 13) ? "" : pg_get_text(res, row, 13));
}

static void note_answer(struct flights *f, struct flown *call)
{
    call->next = f->answered;
    f->answered = call;
    f->answered_ct++;
}

/* A call that cannot be made has an answer at once. */
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
        .is_charge = r->is_charge,
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
    if (f->sent_ms - f->second_ms >= SECOND_MS) {
        f->second_ms = f->sent_ms;
        f->in_second = 0;
    }
    f->in_second += flight->calls;
    return true;
}

/* ---- answers ---- */

static void take_answers(struct session *s)
{
    struct flights *f = s->flights;
    struct gateway_answer answer;
    struct flown *call;

    while ((call = calls_take(f->calls, &answer)) != NULL) {
        bool decides = answer.outcome != GATEWAY_UNKNOWN &&
                       answer.outcome != GATEWAY_STORED &&
                       answer.outcome != GATEWAY_LATER;

        call->answer = answer;
        if (answer.outcome == GATEWAY_NOTHING &&
            call->asked_ms < 2 * s->config->gateway_timeout_ms)
            call->answer.outcome = GATEWAY_UNKNOWN; /* it may still be on its way */
        f->in_trouble = decides ? 0 : f->in_trouble + 1;
        if (f->in_trouble == TROUBLE_CT)
            log_warn("gateway.sick",
                     "code=LL-6101 answers=%u last=%s note=\"payments wait; it is "
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
            "code=LL-6102 locks=%zu calls=%zu note=\"their answers are settled all "
            "the same\"",
            lost, calls);
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
        flights_settle(s);
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

/* Rows that were sent stay so: they are due when no answer comes any more. */
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
