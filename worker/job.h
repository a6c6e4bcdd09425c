/* job: what a job type is. The loop knows this and nothing of billing or orders.
 *
 * Every job type has the same four beats: pull due rows, lock their keys, apply in one
 * transaction, release. A new one is a file of its own and a line in JOB_TYPES. */
#ifndef LEDGERLOCK_JOB_H
#define LEDGERLOCK_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/lock/lock.h"
#include "common/metrics.h"
#include "common/pg.h"

#define JOB_TYPES(X)                                                                   \
    X(billing)                                                                         \
    X(orders)

/* Kinds of rows that are locked: in Redis by name, in PostgreSQL by their claim, and in
 * this order wherever several kinds are taken. */
/* clang-format off */
#define RESOURCE_KINDS(X)                                                                \
    X(user, SQL_POOL_CLAIM_USERS, SQL_POOL_USERS_FENCE)                                  \
    X(sku,  SQL_POOL_CLAIM_STOCK, SQL_POOL_STOCK_FENCE)

/* clang-format on */

enum resource_kind {

#define RESOURCE_ENUM(name, claim, fence) RESOURCE_##name,
    RESOURCE_KINDS(RESOURCE_ENUM)
#undef RESOURCE_ENUM
        RESOURCE_KIND_COUNT
};

enum { BATCH_MAX = LL_KEYS_MAX };

/* Rows to work, in parallel. What is told of a wallet is true until the end of the
 * transaction that has claimed it; where an item stands, only as long as nobody has
 * written it since it was pulled. */
struct job_rows {
    size_t n;
    int64_t items[BATCH_MAX];
    struct pg_tid places[BATCH_MAX]; /* of the items, if the pull tells */
    int64_t users[BATCH_MAX];        /* who pays: the first key of each item */
    struct pg_tid wallets[BATCH_MAX];
    int64_t balances[BATCH_MAX];
};

/* What one transaction is told. */
struct job_batch {
    struct pg *pg;
    int64_t token;      /* fencing token of the tenure */
    const char *worker; /* name of this worker, as written into its effects */
    const char *now;    /* the instant that counts as now; NULL: the database's clock */
    const struct job_rows *rows; /* those whose every key is locked and claimed */
    const int64_t *retry_s;      /* pauses after declines, in seconds */
    size_t retry_ct;
};

struct job_type {
    const char *name;
    enum sql_id due;    /* $1 now, $2 ms ahead: (bucket, ms until its first row is due;
                           0: now) */
    enum sql_id pull;   /* $1 bucket, $2 now, $3 limit: one row of parallel arrays
                           (items, resource kinds, ids, deaths they are charged with[,
                           places]) by item, its user first; kinds null: users all,
                           deaths null: no suspects; -1: this is none. If not in
                           order, $1 is an array of buckets, and how many of them have
                           nothing due beside these comes last */
    enum sql_id settle; /* $1 token, $2 items: how many effects carry the token */
    enum sql_id park;   /* $1 items: set aside, never pulled again */
    enum sql_id crash; /* $1 items, $2 now, $3 worker that died over them: (item, deaths
                          it is charged with) of those that are still due */
    bool in_order;     /* a lower item is an older one, and pulled first */
    const char *item;  /* what an item is called in logs: "subscription" */

    /* Re-reads, decides and writes all effects of the batch in the open transaction and
     * counts them into `counted`, which the loop adds up once COMMIT is known.
     * ERR_CONSTRAINT or ERR_BUG: an invariant broke; the loop rolls back and finds the
     * row. */
    int (*apply)(const struct job_batch *batch, struct metrics *counted, struct err *e);
};

#define JOB_EXTERN(name) extern const struct job_type job_##name;
JOB_TYPES(JOB_EXTERN)
#undef JOB_EXTERN

enum {

#define JOB_ONE(name) +1
    JOB_TYPE_CT = 0 JOB_TYPES(JOB_ONE)
#undef JOB_ONE
};

extern const struct job_type *const job_types[JOB_TYPE_CT];

/* The job types named in a comma list, as bits of the registry; ERR_CONFIG names the
 * unknown one. */
MUST_CHECK int job_parse_list(const char *list, unsigned *bits, struct err *e);

#endif
