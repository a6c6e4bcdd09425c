/* look: the statement that looks, and the mark that spares it. */
#include "worker/look.h"

#include "common/clock.h"

/* The longest that a mark is relied on. Nothing should depend on it: it bounds what a
 * database's clock that is set forward would cost. */
enum { TRUST_MS = 10000 };

int look_for_due(struct worker *w,
                 const struct job_type *job,
                 struct look_due *due,
                 struct look *look,
                 struct err *e)
{
    int64_t ahead_ms = w->config->poll_ms > TRUST_MS ? w->config->poll_ms : TRUST_MS;
    const struct pg_param params[] = {pg_text(w->now), pg_int8(ahead_ms)};
    struct pg_result *res;

    due->n = 0;
    if (pg_exec(w->pg, job->due, params, 2, &res, e) != 0)
        return (int)e->code;
    for (size_t row = 0; row < pg_rows(res) && due->n < WALK_BUCKETS; row++) {
        int64_t ms = pg_get_int8(res, row, 1);

        if (ms == 0)
            due->buckets[due->n++] = pg_get_int8(res, row, 0);
        else if (ms < look->next_ms)
            look->next_ms = ms;
    }
    pg_result_free(res);
    look->seen = look->seen || due->n > 0;
    return 0;
}

/* ---- the mark ---- */

/* One word, so that nobody reads half of what another worker writes: the lower half of
 * the mark, which cannot come round again within TRUST_MS, and the second of the
 * machine's clock until which nothing becomes due. */
static unsigned long long pack(int64_t mark, int64_t until_ms)
{
    return (unsigned long long)(uint32_t)mark << 32 | (uint32_t)(until_ms / 1000);
}

static bool is_same_mark(unsigned long long word, int64_t mark)
{
    return word >> 32 == (uint32_t)mark;
}

static int64_t until_ms(unsigned long long word)
{
    return (int64_t)(uint32_t)word * 1000;
}

/* Read before the sweep: what was written while that ran changes the next one's mark.
 */
int look_is_needed(struct worker *w, struct look *look, bool *needed, struct err *e)
{
    unsigned long long word = *w->quiet;
    struct pg_result *res;

    if (pg_exec(w->pg, SQL_POOL_READ_MARK, NULL, 0, &res, e) != 0)
        return (int)e->code;
    look->mark = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    *needed = look->mark == 0 || !is_same_mark(word, look->mark) ||
              clk_ms() + w->config->poll_ms >= until_ms(word);
    return 0;
}

/* With a fixed `now` no time comes. */
void look_remember(struct worker *w, const struct look *look)
{
    int64_t ms = w->now == NULL && look->next_ms < TRUST_MS ? look->next_ms : TRUST_MS;

    *w->quiet = look->mark != 0 ? pack(look->mark, clk_ms() + ms) : 0;
}

void look_forget(struct worker *w)
{
    *w->quiet = 0;
}
