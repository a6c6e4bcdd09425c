/* toy: a third job, to prove that one is a line in registry.h and files of its own. A
 * due task gives its points to its user. */
#include "worker/jobs/job.h"

/* clang-format off */
#define STATEMENT(stem, text) {#stem, #stem, (const unsigned char *)(text), sizeof(text) - 1, ""}

/* clang-format on */

enum { PULL, PULL_ITEMS, EFFECTS, PARK, APPLY, BACKLOG, LIST_PARKED, RELEASE_PARKED };

static const struct sql_text statements[] = {
    [PULL] = STATEMENT(
        toy_pull,
        "SELECT array_agg(task_id), NULL::bigint[], array_agg(user_id), NULL::tid[],"
        " array_agg(due_at), 0, EXISTS (SELECT FROM paused_jobs WHERE job = 'toy')"
        " FROM (SELECT task_id, user_id, due_at FROM toy_tasks WHERE state = 'due' AND"
        " NOT EXISTS (SELECT FROM paused_jobs WHERE job = 'toy') AND $1::bigint >= 0 AND due_at <= coalesce($2::timestamptz, now()) AND (due_at, task_id) >"
        " ($4::timestamptz, $5::bigint) ORDER BY due_at, task_id LIMIT $3::bigint) AS t"),
    [PULL_ITEMS] = STATEMENT(
        toy_pull_items,
        "SELECT array_agg(task_id), NULL::bigint[], array_agg(user_id), NULL::tid[],"
        " NULL::timestamptz[] FROM toy_tasks WHERE task_id = ANY ($1::bigint[]) AND state = 'due' AND due_at <="
        " coalesce($2::timestamptz, now())"
        " AND NOT EXISTS (SELECT FROM paused_jobs WHERE job = 'toy')"),
    [EFFECTS] = STATEMENT(toy_count_effects,
                          "SELECT count(*) FROM toy_tasks WHERE fence = $1::bigint AND"
                          " task_id = ANY ($2::bigint[])"),
    [PARK] = STATEMENT(
        toy_park,
        "UPDATE toy_tasks SET state = 'parked' WHERE task_id = ANY ($2::bigint[]) AND state"
        " = 'due' AND $3::bigint >= 0 AND $4::text <> $5::text AND $1::text = 'toy' RETURNING task_id"),
    [APPLY] = STATEMENT(
        toy_apply,
        "WITH done AS (UPDATE toy_tasks SET state = 'done', fence = $1::bigint WHERE task_id"
        " = ANY ($4::bigint[]) AND state = 'due' AND $2::text <> '' AND due_at <="
        " coalesce($3::timestamptz, now()) RETURNING task_id, user_id, points), given"
        " AS (INSERT INTO toy_gifts (task_id, user_id, points) SELECT task_id, user_id,"
        " points FROM done RETURNING points) SELECT count(*), coalesce(sum(points),"
        " 0)::bigint, 0, count(*) FROM given"),
    [BACKLOG] = STATEMENT(
        toy_count_backlog,
        "SELECT count(*) FILTER (WHERE state = 'due'), 0::bigint, 0::bigint, count(*) FILTER"
        " (WHERE state = 'parked') FROM toy_tasks WHERE $1::text IS NULL OR true"),
    [LIST_PARKED] = STATEMENT(
        toy_list_parked,
        "SELECT 'task' AS row, task_id AS id, '' AS since, '' AS reason FROM toy_tasks"
        " WHERE state = 'parked' AND $1::text = 'toy' ORDER BY task_id LIMIT $2::bigint"),
    [RELEASE_PARKED] = STATEMENT(
        toy_release_parked,
        "UPDATE toy_tasks SET state = 'due' WHERE task_id = ANY"
        " ($2::bigint[]) AND state = 'parked' AND $1::text = 'toy' RETURNING task_id"),
};

const struct job_type job_toy = {
    .name = "toy",
    .item = "task",
    .shards = 1,
    .kinds = RESOURCE_USER + 1,
    .counters = {{"given", false}, {"points", false}},
    .constraints = {"one_gift"},
    .pull = &statements[PULL],
    .pull_items = &statements[PULL_ITEMS],
    .effects = &statements[EFFECTS],
    .park = &statements[PARK],
    .apply = &statements[APPLY],
    .apply_params = 4,
    .backlog = &statements[BACKLOG],
    .list_parked = &statements[LIST_PARKED],
    .release_parked = &statements[RELEASE_PARKED],
};
