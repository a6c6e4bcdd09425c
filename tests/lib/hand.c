/* hand: the steps of a turn without the turn. */
#include "tests/lib/hand.h"

#include <stdio.h>
#include <string.h>

void hand_open(struct hand *h, int64_t lease_ms)
{
    struct err e = {0};

    memset(h, 0, sizeof *h);
    config_defaults(&h->config);
    (void)snprintf(h->config.postgres_url, CONFIG_TEXT, "%.255s", world.f.url);
    (void)snprintf(h->config.redis_url, CONFIG_TEXT, "%.255s", world.f.redis_url);
    (void)snprintf(h->config.lock_prefix, CONFIG_TEXT, "%s", world.f.prefix);
    h->config.lease_ms = lease_ms;
    assert_int_equal(config_check(&h->config, &e), 0);
    h->w.config = &h->config;
    h->w.slot = &h->slot;
    h->w.jobs = 3;
    (void)snprintf(h->w.name, sizeof h->w.name, "by-hand");
    if (connect_postgres(&h->w, &e) != 0 || connect_locks(&h->w, &e) != 0)
        fail_msg("%s", e.msg);
}

int hand_apply(struct hand *h,
               const struct job_type *job,
               int64_t token,
               const char *now,
               struct metrics *counted)
{
    static const int64_t items[] = {1, 2, 3, 4, 5}, users[] = {64, 128, 192, 256, 320};
    const struct pg_param claim[] = {pg_int8(token), pg_int8_array(users, 5)};
    const struct job_batch b = {
        .pg = h->w.pg,
        .token = token,
        .worker = h->w.name,
        .now = now,
        .items = items,
        .n = 5,
        .retry_s = h->config.retry_s,
        .retry_ct = h->config.retry_ct,
    };
    struct err e = {0};

    if (pg_begin(h->w.pg, &e) == 0 &&
        pg_exec(h->w.pg, SQL_POOL_CLAIM_USERS, claim, 2, NULL, &e) == 0 &&
        job->apply(&b, counted, &e) == 0 && pg_commit(h->w.pg, &e) == 0)
        return 0;
    pg_rollback(h->w.pg);
    return (int)e.code;
}
