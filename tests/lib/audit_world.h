/* audit_world: a small world in which every invariant holds and every total is known.
 * Now: 2024-04-10 00:00 UTC. Counted by hand: periods due 18 = 3 + 2 + 2 + 2 + 2 + 2
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
/* Makes the journal anew, as if the program had written what the tables say. */
#define AUDIT_JOURNAL \
"SET search_path = ledgerlock;" \
"UPDATE orders SET decided_at = placed_at WHERE state IN ('fulfilled', 'rejected') AND decided_at IS NULL;" \
"DELETE FROM batches; DELETE FROM subscription_journal; DELETE FROM order_journal; DELETE FROM stock_journal;" \
"DELETE FROM contracts; DELETE FROM deposits; DELETE FROM deliveries;" \
"INSERT INTO contracts (user_id, plan, anchor_at, subscription_id) SELECT user_id, plan, anchor_at, subscription_id FROM subscriptions;" \
"INSERT INTO deposits (user_id, idempotency_key, deposit_id, amount_minor, at)" \
" SELECT source, leg, leg, amount_minor, source_at FROM transfers WHERE kind = 'deposit' AND leg <> 0;" \
"INSERT INTO deliveries (sku_id, idempotency_key, delivery_id, qty, at) OVERRIDING SYSTEM VALUE" \
" SELECT sku_id, source, source, abs(qty), source_at FROM stock_movements WHERE kind = 'receive';" \
"INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, user_id, try_no," \
"                                  amount_minor, token, worker, at)" \
" SELECT c.subscription_id, CASE WHEN n = tries AND c.state <> 'written_off' THEN c.state ELSE 'declined' END, 'past_due'," \
"        period_no + (c.state = 'captured' AND n = tries)::int, n, charged_at, c.user_id, n, c.amount_minor, c.fence, worker, charged_at" \
"   FROM charges AS c, generate_series(1, tries) AS n WHERE c.state IN ('declined', 'written_off') OR tries > 1 ORDER BY 1, period_no, n;" \
"INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, user_id, from_period, worker, at)" \
" SELECT subscription_id, state, 'active', period_no + 1, 0, charged_at, user_id, period_no, worker, charged_at" \
"   FROM charges WHERE state IN ('waived', 'skipped', 'written_off') ORDER BY 1, period_no;" \
"INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id," \
"                                  amount_minor, plan, currency, anchor_at, unit, every)" \
" SELECT subscription_id, 'made', state, next_period_no, retries, next_due_at, cancel_at, user_id, amount_minor, plan," \
"        currency, anchor_at, unit, every FROM subscriptions;" \
"INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id," \
"                                  from_period, plan, quantity, amount_minor, worker)" \
" SELECT s.subscription_id, 'terms', state, next_period_no, retries, next_due_at, cancel_at, user_id, t.from_period, t.plan," \
"        t.quantity, t.amount_minor, t.worker FROM subscription_terms AS t JOIN subscriptions AS s USING (subscription_id);" \
"INSERT INTO order_journal (order_id, event, state, reason, skus, user_id, total_minor, token, worker, at)" \
" SELECT order_id, CASE WHEN state = 'cancelled' OR (state = 'rejected' AND fence <> 0) THEN state ELSE 'made' END, state, reason, skus," \
"        user_id, total_minor, fence, 'pool-0', coalesce(decided_at, placed_at) FROM orders WHERE state IN ('rejected', 'parked', 'cancelled');" \
"INSERT INTO stock_journal (sku_id, event, sku, initial_qty, unit_price_minor, currency)" \
" SELECT sku_id, 'made', sku, initial_qty, unit_price_minor, currency FROM stock;" \
"INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no) SELECT *, row_number() OVER () FROM (" \
" SELECT 'billing', fence, worker, charged_at, count(*), 0, array_agg(subscription_id), array_agg(period_no)" \
"  FROM charges WHERE state = 'captured' GROUP BY 2, 3, 4" \
" UNION ALL SELECT 'billing', token, worker, at, 0, count(*), array_agg(subscription_id), array_agg(next_period_no)" \
"  FROM subscription_journal WHERE event = 'declined' GROUP BY 2, 3, 4" \
" UNION ALL SELECT 'orders', fence, 'pool-0', decided_at, count(*) FILTER (WHERE state = 'fulfilled')," \
"  count(*) FILTER (WHERE state = 'rejected'), array_agg(order_id), NULL" \
"  FROM orders WHERE state IN ('fulfilled', 'rejected') AND fence <> 0 GROUP BY 2, 4) AS made;"

/* In parts: a literal may have 4,095 characters. Run all, in this order. */
static const char *const audit_world[4] = {
"SET search_path = ledgerlock; SELECT make_months('2023-04-01Z', '2023-04-01Z'), make_months('2024-01-01Z', '2024-05-01Z');"
"INSERT INTO users (user_id, external_ref, balance_minor, currency, fence) VALUES"
" (1, 'ann', 5700, 'USD', 1099511627785), (2, 'bob', 500, 'USD', 1099511627782),"
" (3, 'eve', 4010, 'EUR', 1099511627784);"
"INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every,"
"                           state, next_period_no, next_due_at, cancel_at, retries) VALUES"
" (1, 1, 'pro',    1000, 'USD', '2024-01-31 00:00Z', 'month', 1, 'active',    3, '2024-04-30 00:00Z', NULL, 0),"
" (2, 1, 'weekly',  200, 'USD', '2024-03-01 00:00Z', 'week',  2, 'cancelled', 2, '2024-03-29 00:00Z', '2024-03-29 00:00Z', 0),"
" (3, 2, 'pro',    1000, 'USD', '2024-02-15 00:00Z', 'month', 1, 'past_due',  1, '2024-04-12 00:00Z', NULL, 2),"
" (4, 3, 'ten',     300, 'EUR', '2024-03-22 00:00Z', 'day',  10, 'active',    2, '2024-04-11 00:00Z', NULL, 0),"
" (5, 3, 'year',   5000, 'EUR', '2023-04-09 23:30Z', 'year',  1, 'active',    1, '2024-04-09 23:30Z', NULL, 0),"
" (6, 2, 'max',    9000, 'USD', '2024-03-10 00:00Z', 'month', 1, 'unpaid',    0, '2024-04-02 00:00Z', NULL, 4),"
" (7, 2, 'later',   100, 'USD', '2024-05-31 00:00Z', 'month', 1, 'active',    0, '2024-05-31 00:00Z', NULL, 0),"
" (8, 2, 'rest',    700, 'USD', '2024-01-05 00:00Z', 'month', 1, 'active',    5, '2024-06-05 00:00Z', NULL, 0),"
" (9, 2, 'lost',    100, 'USD', '2024-03-20 00:00Z', 'month', 1, 'active',    1, '2024-04-20 00:00Z', NULL, 0);"
"INSERT INTO charges VALUES (9, 0, 2, '2024-03-20Z', '2024-04-20Z', 100, 'written_off', 1, 1099511627778, 'support', '2024-04-06Z');"
"INSERT INTO write_offs (subscription_id, idempotency_key, period_no, user_id, amount_minor, currency, reason, at, worker)"
" VALUES (9, 'w', 0, 2, 100, 'USD', 'gone', '2024-04-06Z', 'support');"
"INSERT INTO charges SELECT 8, no, 2, period_start('2024-01-05Z', 'month', 1, no), period_start('2024-01-05Z', 'month', 1, no + 1), 700,"
"       CASE WHEN no < 3 THEN 'waived' ELSE 'skipped' END, 0, 0, 'support', '2024-04-06Z' FROM generate_series(0, 4) AS no;"
"INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (4, 1, 'two', 2, 1), (4, 1, 'two', 2, 150);"
"UPDATE subscriptions SET terms_from_no = 1 WHERE subscription_id = 4;"
"INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (1, 3, 'max', 1, 1302), (1, 3, 'pro', 1, 1000);"
"UPDATE subscriptions SET terms_from_no = 3 WHERE subscription_id = 1;"
"INSERT INTO prorations (subscription_id, idempotency_key, period_no, user_id, plan, quantity, unit_minor, old_minor, new_minor,"
" days_left, days, amount_minor, at) VALUES (1, 'up', 2, 1, 'max', 1, 1302, 1000, 1302, 20, 30, 201, '2024-04-09 12:00Z'),"
" (1, 'down', 2, 1, 'pro', 1, 1000, 1302, 1000, 20, 30, -201, '2024-04-09 18:00Z');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at, source_at) VALUES"
" ('proration', 1, 0, 1, 'wallet', 'subscription_revenue', 201, 'USD', '2024-04-09 12:00Z', '2024-04-09 12:00Z'),"
" ('proration', 2, 0, 1, 'subscription_revenue', 'wallet', 201, 'USD', '2024-04-09 18:00Z', '2024-04-09 18:00Z');"
"INSERT INTO charges SELECT s.subscription_id, no, s.user_id, period_start(anchor_at, unit, every, no),"
"       period_start(anchor_at, unit, every, no + 1), s.amount_minor, c.state, greatest(s.retries * (c.state = 'declined')::int, 1), 1099511627777, 'pool-0',"
"       period_start(anchor_at, unit, every, no) + interval '1 second'"
"  FROM (VALUES (1, 0, 2, 'captured'), (2, 0, 1, 'captured'), (3, 0, 0, 'captured'), (3, 1, 1, 'declined'),"
"               (4, 0, 1, 'captured'), (5, 0, 0, 'captured'), (6, 0, 0, 'declined')) AS c (id, low, high, state)"
"  JOIN subscriptions AS s ON s.subscription_id = c.id, generate_series(low, high) AS no;",
"SET search_path = ledgerlock;"
"INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency, fence) VALUES"
" (1, 'A', 10, 13, 250, 'USD', 1099511627781), (2, 'B', 2, 1, 400, 'USD', 1099511627781),"
" (3, 'C', 5, 1, 100, 'EUR', 1099511627784), (4, 'D', 3, 2, 0, 'USD', 1099511627785);"
"INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, reason, skus, total_minor,"
"                    currency, placed_at, fence, decided_at) VALUES"
" (1, 1, 'k1', '', 'fulfilled', NULL,                 NULL,  900, 'USD', '2024-04-01', 1099511627781, '2024-04-01'),"
" (2, 1, 'k2', '', 'rejected',  'out_of_stock',       '{B}', 2000, 'USD', '2024-04-02', 1099511627782, '2024-04-02'),"
" (3, 2, 'k1', '', 'rejected',  'insufficient_funds', NULL,  750, 'USD', '2024-04-03', 1099511627782, '2024-04-03'),"
" (4, 1, 'k4', '', 'rejected',  'unknown_sku',        '{Z}', 0,   'USD', '2024-04-04', 0, '2024-04-04'),"
" (5, 3, 'k1', '', 'fulfilled', NULL,                 NULL,  390, 'EUR', '2024-04-05', 1099511627784, '2024-04-05'),"
" (6, 1, 'k6', '', 'pending',   NULL,                 NULL,  250, 'USD', '2024-04-09 23:45Z', 0, NULL),"
" (7, 1, 'k7', '', 'fulfilled', NULL,                 NULL,  0,   'USD', '2024-04-07', 1099511627785, '2024-04-07'),"
" (8, 1, 'k8', '', 'cancelled', NULL,                 NULL,  250, 'USD', '2024-04-08', 0, NULL);"
"INSERT INTO order_lines (order_id, sku_id, qty, unit_price_minor) VALUES"
" (1, 1, 2, 250), (1, 2, 1, 400), (2, 2, 5, 400), (3, 1, 3, 250), (5, 3, 3, 100), (5, 3, 1, 90),"
" (6, 1, 1, 250), (7, 4, 1, 0), (8, 1, 1, 250);"
"INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at, source_at) VALUES"
" (1, 'receive', 1, 5, 0, '2024-03-01', '2024-03-01'),"
" (1, 'sale', 1, -2, 1099511627781, '2024-04-01', '2024-04-01'), (2, 'sale', 1, -1, 1099511627781, '2024-04-01', '2024-04-01'),"
" (3, 'sale', 5, -4, 1099511627784, '2024-04-05', '2024-04-05'), (4, 'sale', 7, -1, 1099511627785, '2024-04-07', '2024-04-07');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at, source_at) VALUES"
" ('deposit', 1, 1, 1, 'cash', 'wallet',  9000, 'USD', '2024-01-01', '2024-01-01'),"
" ('deposit', 1, 2, 1, 'cash', 'wallet',  1000, 'USD', '2024-02-01', '2024-02-01'),"
" ('deposit', 2, 3, 2, 'cash', 'wallet',  1500, 'USD', '2024-01-01', '2024-01-01'),"
" ('deposit', 3, 4, 3, 'cash', 'wallet', 10000, 'EUR', '2024-01-01', '2024-01-01'),"
" ('payment', 1, 0, 1, 'wallet', 'order_revenue', 900, 'USD', '2024-04-01', '2024-04-01'),"
" ('payment', 5, 0, 3, 'wallet', 'order_revenue', 390, 'EUR', '2024-04-05', '2024-04-05');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at, source_at)"
" SELECT 'charge', subscription_id, period_no, s.user_id, 'wallet', 'subscription_revenue',"
"        c.amount_minor, currency, charged_at, period_start"
"   FROM charges AS c JOIN subscriptions AS s USING (subscription_id) WHERE c.state = 'captured';"
"INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, counters) VALUES"
" ('pool', 0, 'billing', 'host', 10, now(), now(), '{\"granted\": 7, \"busy\": 2, \"charged\": 5, \"batches\": 3}'),"
" ('pool', 1, 'orders', 'host', 11, now(), now() - interval '1 minute', '{\"granted\": 4, \"restarts\": 1, \"fulfilled\": 3}');"
"INSERT INTO lock_incidents (resource, token, worker, kind, phase)"
" VALUES ('lock:user:1', 7, 'pool-0', 'fenced', 'claim');",
AUDIT_JOURNAL,
"SET search_path = ledgerlock; SELECT refund(1, 'charge', 1, 0, 300, 'late', 'r', '2024-04-09 20:00Z'),"
" void_transfer(1, 'charge', 2, 0, 'never ordered', 'v', '2024-04-09 20:00Z'),"
" return_units(1, 1, 'B', 1, 'broken', 'b', '2024-04-09 20:00Z'), adjust_stock('B', -1, 'broken', 'a', '2024-04-09 20:00Z'),"
" withdraw(1, 'USD', 900, 'asked for', 'w', '2024-04-09 20:00Z')"};

static const char *const audit_world_totals =
"{\"billing\": {\"periods_due\": 18, \"charged\": 9, \"waived\": 3, \"skipped\": 1, \"written_off\": 1, \"declined\": 3, \"still_to_do\": 1, \"charged_twice\": 0,"
"  \"subscriptions\": {\"active\": 6, \"past_due\": 1, \"unpaid\": 1, \"cancelled\": 1, \"parked\": 0}},"
" \"stock\": {\"skus\": 4, \"initial\": 20, \"received\": 5, \"returned\": 1, \"adjusted\": -1, \"before\": 25, \"sold\": 8, \"left\": 17, \"oversold\": 0},"
" \"orders\": {\"in\": 8, \"fulfilled\": 3, \"rejected\": 3, \"cancelled\": 1, \"pending\": 1, \"parked\": 0, \"rejected_by_reason\":"
"  {\"out_of_stock\": 1, \"insufficient_funds\": 1, \"unknown_sku\": 1}},"
" \"money\": {"
"  \"EUR\": {\"deposited\": 10000, \"withdrawn\": 0, \"in_wallets\": 4010, \"subscription_revenue\": 5600, \"order_revenue\": 390, \"refunded\": 0,"
"           \"difference\": 0, \"charged\": 5600, \"declined\": 0},"
"  \"USD\": {\"deposited\": 11500, \"withdrawn\": 900, \"in_wallets\": 6200, \"subscription_revenue\": 4400, \"order_revenue\": 900, \"refunded\": 900,"
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
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at, source_at)"
" SELECT 'deposit', u, leg, u, 'cash', 'wallet', 9000000000000000000, 'BHD', '2022-01-01Z', '2022-01-01Z'"
" FROM (VALUES (90, 91), (91, 92), (92, 93), (92, 94)) AS d (u, leg);"
"INSERT INTO deposits (user_id, idempotency_key, deposit_id, amount_minor, at) SELECT source, leg, leg, amount_minor, source_at"
" FROM transfers WHERE kind = 'deposit' AND leg > 90;"
"INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, state,"
" next_period_no, next_due_at, retries) VALUES"
" (92, 92, 'p', 9000000000000000000, 'BHD', '2022-06-01Z', 'year', 'active', 2, '2024-06-01Z', 0),"
" (93, 93, 'p', 9000000000000000000, 'BHD', '2021-06-01Z', 'year', 'past_due', 0, '2024-06-01Z', 1);"
"INSERT INTO charges VALUES"
" (92, 0, 92, '2022-06-01Z', '2023-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2022-06-01Z'),"
" (92, 1, 92, '2023-06-01Z', '2024-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2023-06-01Z'),"
" (93, 0, 93, '2021-06-01Z', '2022-06-01Z', 9000000000000000000, 'declined', 1, 0, '', '2021-06-01Z');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at, source_at)"
" SELECT 'charge', 92, k, 92, 'wallet', 'subscription_revenue', 9000000000000000000, 'BHD',"
" at, at FROM generate_series(0, 1) AS k, LATERAL (SELECT timestamptz '2022-06-01Z' + k * interval '1 year') AS a (at);"
"UPDATE subscriptions SET retries = 1 WHERE subscription_id = 93;"
"INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)"
" SELECT g, g, 9000000000000000000, 9000000000000000000, 1, 'BHD' FROM generate_series(90, 91) AS g";

static const char audit_world_huge_money[] =
"{\"deposited\": \"36000000000000000000\", \"withdrawn\": 0, \"in_wallets\": \"18000000000000000000\","
" \"subscription_revenue\": \"18000000000000000000\", \"order_revenue\": 0, \"refunded\": 0, \"difference\": 0,"
" \"charged\": \"18000000000000000000\", \"declined\": \"27000000000000000000\"}";

/* clang-format on */

/* The first n parts of the world: 4 are all of it. */
static inline void audit_world_put(const char *url, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fixture_exec(url, audit_world[i]);
}

#endif
