/* walk: steps back from busy buckets, fits the batch to the time it takes. */
#include "worker/walk.h"

#include "common/clock.h"

enum {
    STEP_BACK_BASE_MS = 4,
    STEP_BACK_CAP_MS = 64,
    REST_TURNS = 8,     /* the longest rest, in turns that work */
    PACE_WEIGHT = 4,    /* the latest turn's share of the average is a fourth */
    SHARED_TURNS = 8,   /* then one goes again beside others */
    PASSED_MAX = 16,    /* then the row is served alone */
    OVERTAKEN = 4,      /* a turn that served younger rows weighs as much as these */
    LEASE_SHARE = 10,   /* a turn takes at most a tenth of the lease */
    GROW_NUMERATOR = 5, /* by a quarter */
    GROW_DENOMINATOR = 4
};

void walk_turn_to(int64_t *buckets, size_t n, int64_t place)
{
    int64_t turned[WALK_BUCKETS];
    size_t first = n * (size_t)place / WALK_BUCKETS;

    for (size_t i = 0; i < n; i++)
        turned[i] = buckets[(first + i) % n];
    for (size_t i = 0; i < n; i++)
        buckets[i] = turned[i];
}

bool walk_may(const struct walk *w, int64_t bucket, int64_t now_ms, int64_t *next_ms)
{
    int64_t from_ms = w->buckets[bucket].not_before_ms;
    int64_t left = (from_ms > w->rest_until_ms ? from_ms : w->rest_until_ms) - now_ms;

    if (left <= 0)
        return true;
    if (left < *next_ms)
        *next_ms = left;
    return false;
}

bool walk_may_go_along(const struct walk *w, int64_t bucket, int64_t now_ms)
{
    return !w->buckets[bucket].is_alone && w->buckets[bucket].not_before_ms <= now_ms;
}

bool walk_is_mostly_busy(const struct walk_turn *turn)
{
    return turn->worked * 2 < turn->pulled;
}

bool walk_is_patient(const struct walk *w, int64_t bucket)
{
    return w->buckets[bucket].passed_ct >= PASSED_MAX;
}

bool walk_is_shared(const struct walk *w, int64_t bucket)
{
    return w->buckets[bucket].shared_ct > 0;
}

struct walk_line *walk_line(const struct walk *w, int64_t bucket)
{
    return w->lines == NULL ? NULL : &w->lines[bucket];
}

int64_t walk_overtaken(const struct walk_line *line, size_t n)
{
    int64_t found = 0;

    for (size_t i = 0; line != NULL && i < WALK_OVERDUE; i++) {
        int64_t youngest = line->youngest[i];
        size_t as_far = 0;

        for (size_t j = 0; j < WALK_OVERDUE; j++)
            as_far += line->youngest[j] >= youngest ? 1 : 0;
        if (as_far >= n && youngest > found)
            found = youngest;
    }
    return found;
}

/* Takes the place of the batch that went least far; entries only ever grow. */
static void note_batch(struct walk_line *line, int64_t youngest)
{
    bool noted = false;

    while (!noted) {
        atomic_llong *least = &line->youngest[0];
        long long was;

        for (size_t i = 1; i < WALK_OVERDUE; i++) {
            if (line->youngest[i] < *least)
                least = &line->youngest[i];
        }
        was = *least;
        noted =
            youngest <= was || atomic_compare_exchange_strong(least, &was, youngest);
    }
}

/* Whoever had the keys is about to be done with its batch then. Where ids are an order,
 * it is the turn after this one that waits for those of the pool; who meets mostly busy
 * keys in that one too has to do with others. */
static void rest(struct walk *w, const struct walk_turn *t, int64_t now_ms)
{
    int64_t base_ms = w->pace_ms + 1;

    if (t->worked > 0)
        w->pace_ms += (t->took_ms - w->pace_ms) / PACE_WEIGHT;
    if (!walk_is_mostly_busy(t)) {
        w->rest_ct = 0;
        w->rest_until_ms = 0;
        return;
    }
    if (w->lines != NULL && !t->queued)
        return;
    w->rest_until_ms =
        now_ms + 1 + clk_backoff_ms(w->rest_ct++, base_ms, base_ms * REST_TURNS);
}

static void step_back(struct walk_bucket *b, const struct walk_turn *t, int64_t now_ms)
{
    if (!walk_is_mostly_busy(t)) {
        b->busy_ct = 0;
        b->not_before_ms = 0;
        return;
    }
    b->not_before_ms =
        now_ms + 1 + clk_backoff_ms(b->busy_ct, STEP_BACK_BASE_MS, STEP_BACK_CAP_MS);
    b->busy_ct++;
}

static void note_first(struct walk_bucket *b, const struct walk_turn *t)
{
    bool waits = t->pulled > 0 && !t->first_worked;

    if (!waits || t->first != b->first)
        b->passed_ct = 0;
    b->first = waits ? t->first : 0;
    if (waits)
        b->passed_ct += t->worked > 0 ? OVERTAKEN : 1;
    if (t->patient) /* the others have their turns, whoever holds its keys */
        b->passed_ct = 0;
}

static void note_shared(struct walk_bucket *b, const struct walk_turn *t)
{
    if (t->pulled > 0 && t->worked == 0 && !t->queued)
        b->shared_ct = SHARED_TURNS;
    else if (b->shared_ct > 0)
        b->shared_ct--;
}

void walk_learn_along(struct walk *w,
                      int64_t bucket,
                      const struct walk_turn *turn,
                      int64_t now_ms)
{
    step_back(&w->buckets[bucket], turn, now_ms);
    w->buckets[bucket].is_alone = turn->worked < turn->pulled;
}

void walk_learn(struct walk *w,
                int64_t bucket,
                const struct walk_turn *turn,
                int64_t now_ms)
{
    rest(w, turn, now_ms);
    walk_learn_along(w, bucket, turn, now_ms);
    if (w->lines != NULL && turn->worked > 0) {
        note_batch(&w->lines[bucket], turn->youngest);
        w->lines[bucket].served++;
    }
    if (w->lines != NULL)
        note_shared(&w->buckets[bucket], turn);
    note_first(&w->buckets[bucket], turn);
}

void walk_fit(struct walk *w,
              const struct walk_turn *turn,
              size_t batch_max,
              int64_t lease_ms)
{
    int64_t most_ms = lease_ms / LEASE_SHARE;
    size_t limit = w->limit;

    if (turn->took_ms > most_ms)
        limit = (size_t)((int64_t)limit * most_ms / turn->took_ms);
    else if (turn->worked >= limit && turn->took_ms < most_ms / 2)
        limit = limit * GROW_NUMERATOR / GROW_DENOMINATOR + 1;
    if (limit == 0)
        limit = 1;
    w->limit = limit < batch_max ? limit : batch_max;
}
