/* audit_world: a small world in which every invariant holds and every total is known;
 * its rows are in tests/sql/audit. Now: 2024-04-10 00:00 UTC. Counted by hand: periods
 * due 18 = 3 + 2 + 2 + 2 + 2 + 2
 * + 4 + 1, charged 9, waived 3, skipped 1 (and 1 ahead), written off 1, declined 1 + 2,
 * still to do 1; USD 115.00 = wallets 57.00 + 5.00, subscriptions 44.00, orders 9.00,
 * paid out 9.00, less refunds 3.00 + 2.00 + 4.00; EUR 100.00 = wallet 40.10,
 * subscriptions 56.00, orders 3.90; units 20 + 5, returned 1, adjusted -1 = sold
 * 2 + 1 + 4 + 1, left 17 */
#ifndef LEDGERLOCK_AUDIT_WORLD_H
#define LEDGERLOCK_AUDIT_WORLD_H

#include "tests/lib/fixture.h"

#define AUDIT_NOW "2024-04-10T00:00Z"

/* clang-format off */
static const char *const audit_world_totals =
"{\"billing\": {\"periods_due\": 18, \"charged\": 9, \"waived\": 3, \"skipped\": 1, \"written_off\": 1, \"declined\": 3, \"still_to_do\": 1, \"charged_twice\": 0,"
"  \"subscriptions\": {\"active\": 6, \"past_due\": 1, \"paying\": 0, \"unpaid\": 1, \"cancelled\": 1, \"parked\": 0}},"
" \"stock\": {\"skus\": 4, \"initial\": 20, \"received\": 5, \"returned\": 1, \"adjusted\": -1, \"before\": 25, \"sold\": 8, \"left\": 17, \"held\": 0, \"oversold\": 0},"
" \"orders\": {\"in\": 8, \"fulfilled\": 3, \"rejected\": 3, \"cancelled\": 1, \"pending\": 1, \"paying\": 0, \"parked\": 0, \"rejected_by_reason\":"
"  {\"out_of_stock\": 1, \"insufficient_funds\": 1, \"unknown_sku\": 1}},"
" \"money\": {"
"  \"EUR\": {\"deposited\": 10000, \"by_card\": 0, \"withdrawn\": 0, \"in_wallets\": 4010, \"subscription_revenue\": 5600, \"order_revenue\": 390, \"refunded\": 0,"
"           \"difference\": 0, \"charged\": 5600, \"declined\": 0},"
"  \"USD\": {\"deposited\": 11500, \"by_card\": 0, \"withdrawn\": 900, \"in_wallets\": 6200, \"subscription_revenue\": 4400, \"order_revenue\": 900, \"refunded\": 900,"
"           \"difference\": 0, \"charged\": 4400, \"declined\": 19000}},"
" \"locks\": {\"granted\": 11, \"busy\": 2, \"row_locked\": 0, \"lost\": 0, \"fenced\": 0, \"uncertain\": 0, \"commit_unknown\": 0,"
"  \"batches\": 3, \"restarts\": 1},"
" \"incidents\": {\"lost\": 0, \"fenced\": 1, \"uncertain\": 0, \"commit_unknown\": 0,"
"  \"forced_unlock\": 0, \"parked\": 0, \"resumed\": 0}}";
/* More of everything, sound like the rest, than 64 bits can sum up; BHD has three decimals. */
static const char audit_world_huge[] =
"SELECT make_months('2021-06-01Z', '2023-06-01Z');"
"INSERT INTO users (user_id, balance_minor, currency) SELECT g, CASE WHEN g < 92 THEN 9000000000000000000 ELSE 0 END,"
" 'BHD' FROM generate_series(90, 93) AS g;"
"INSERT INTO wallet_entries (user_id, kind, idempotency_key, entry_id, amount_minor, at)"
" OVERRIDING SYSTEM VALUE SELECT u, 'deposit', id, id, 9000000000000000000, '2022-01-01Z' FROM (VALUES (90, 91), (91, 92), (92, 93), (92, 94)) AS d (u, id);"
"INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, state,"
" next_period_no, next_due_at, retries) VALUES"
" (92, 92, 'p', 9000000000000000000, 'BHD', '2022-06-01Z', 'year', 'active', 2, '2024-06-01Z', 0),"
" (93, 93, 'p', 9000000000000000000, 'BHD', '2021-06-01Z', 'year', 'past_due', 0, '2024-06-01Z', 1);"
"INSERT INTO charges VALUES"
" (92, 0, 92, '2022-06-01Z', '2023-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2022-06-01Z'),"
" (92, 1, 92, '2023-06-01Z', '2024-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2023-06-01Z'),"
" (93, 0, 93, '2021-06-01Z', '2022-06-01Z', 9000000000000000000, 'declined', 1, 0, '', '2021-06-01Z');"
"UPDATE subscriptions SET retries = 1 WHERE subscription_id = 93;"
"INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)"
" SELECT g, g, 9000000000000000000, 9000000000000000000, 1, 'BHD' FROM generate_series(90, 91) AS g";

static const char audit_world_huge_money[] =
"{\"deposited\": \"36000000000000000000\", \"by_card\": 0, \"withdrawn\": 0, \"in_wallets\": \"18000000000000000000\","
" \"subscription_revenue\": \"18000000000000000000\", \"order_revenue\": 0, \"refunded\": 0, \"difference\": 0,"
" \"charged\": \"18000000000000000000\", \"declined\": \"27000000000000000000\"}";

/* clang-format on */

/* Runs a statement, which may be "", and a file of tests/sql/audit, as one. */
static inline void
audit_world_run(const char *url, const char *before, const char *name)
{
    const char *source = getenv("LL_TEST_SOURCE");
    char sql[1 << 14], path[512];
    size_t at, n;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/sql/audit/%s.sql",
                   source != NULL ? source : ".", name);
    file = fopen(path, "re");
    if (file == NULL)
        fail_msg("cannot read %s", path);
    at = (size_t)snprintf(sql, sizeof sql, "SET search_path = ledgerlock; %s", before);
    n = fread(sql + at, 1, sizeof sql - at - 1, file);
    assert_true(feof(file));
    (void)fclose(file);
    sql[at + n] = '\0';
    fixture_exec(url, sql);
}

/* Its rows and their events; with 4 parts also corrections behind them. */
static inline void audit_world_put(const char *url, size_t parts)
{
    audit_world_run(url, "", "rows");
    audit_world_run(url, "", "events");
    if (parts == 4)
        audit_world_run(url, "", "corrections");
}

#endif
