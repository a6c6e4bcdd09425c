/* bench_orders: what workers that meet over the same keys do in vain, and whether any
 * order waits behind younger ones. */
#include "worker/bench.h"
#include "worker/jdoc.h"

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static int add_turns(const struct waste *waste, json_t *out, struct err *e)
{
    if (jdoc_put(out, "turns", json_integer(waste->turns), e) != 0 ||
        jdoc_put(out, "turns_empty", json_integer(waste->empty), e) != 0 ||
        jdoc_put(out, "turns_refused", json_integer(waste->refused), e) != 0 ||
        jdoc_put(out, "turns_patient", json_integer(waste->patient), e) != 0)
        return (int)e->code;
    return jdoc_put(out, "turns_vain_share",
                    json_real(share(waste->empty + waste->refused, waste->turns)), e);
}

int bench_add_waste(const struct config *c,
                    const struct bench_run *run,
                    int64_t done,
                    json_t *doc,
                    struct err *e)
{
    const struct waste *waste = &run->waste;
    int64_t all_us = (run->pace.last_us - run->pace.first_us) * c->workers;
    json_t *out = json_object();

    if (jdoc_put(doc, "waste", out, e) != 0 || add_turns(waste, out, e) != 0 ||
        jdoc_put(out, "pulled_per_row", json_real(share(waste->pulled, done)), e) !=
            0 ||
        jdoc_put(out, "vain_time_share", json_real(share(waste->vain_us, all_us)), e) !=
            0)
        return (int)e->code;
    return jdoc_put(out, "paused_time_share",
                    json_real(share(waste->paused_us, all_us)), e);
}

int bench_add_waits(struct pg *pg, json_t *doc, struct err *e)
{
    static const char *const names[] = {"orders_overtaken", "batches_behind_p99",
                                        "batches_behind_max"};
    json_t *out = json_object();
    struct pg_result *res;

    if (jdoc_put(doc, "waits", out, e) != 0 ||
        pg_exec(pg, SQL_BENCH_COUNT_WAITS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (jdoc_put(out, names[i], json_integer(pg_get_int8(res, 0, i)), e) != 0)
            break;
    }
    pg_result_free(res);
    return (int)e->code;
}
