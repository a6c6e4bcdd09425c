/* audit_world: a small world in which every invariant holds and every total is known.
 * It is 2024-04-10 00:00 UTC. Counted by hand: periods due 13 = 3 + 2 + 2 + 2 + 2 + 2,
 * charged 9, declined 1 + 2, still to do 1 USD 115.00 = wallets 57.00 + 5.00,
 * subscriptions 44.00, orders 9.00 EUR 100.00 = wallet 40.10, subscriptions 56.00,
 * orders 3.90 units 20 + 5 = sold 2 + 1 + 4 + 1, left 17 */
#ifndef LEDGERLOCK_AUDIT_WORLD_H
#define LEDGERLOCK_AUDIT_WORLD_H

#define AUDIT_NOW "2024-04-10 00:00Z"

/* clang-format off */
/* In two parts: a literal may have 4,095 characters. Run both, in this order. */
static const char *const audit_world[2] = {
"SET search_path = ledgerlock;"
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
" (7, 2, 'later',   100, 'USD', '2024-05-31 00:00Z', 'month', 1, 'active',    0, '2024-05-31 00:00Z', NULL, 0);"
"INSERT INTO charges SELECT s.subscription_id, no, s.user_id, period_start(anchor_at, unit, every, no),"
"       period_start(anchor_at, unit, every, no + 1), s.amount_minor, c.state, 1, 1099511627777, 'pool-0',"
"       period_start(anchor_at, unit, every, no) + interval '1 second'"
"  FROM (VALUES (1, 0, 2, 'captured'), (2, 0, 1, 'captured'), (3, 0, 0, 'captured'), (3, 1, 1, 'declined'),"
"               (4, 0, 1, 'captured'), (5, 0, 0, 'captured'), (6, 0, 0, 'declined')) AS c (id, low, high, state)"
"  JOIN subscriptions AS s ON s.subscription_id = c.id, generate_series(low, high) AS no;",
"SET search_path = ledgerlock;"
"INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency, fence) VALUES"
" (1, 'A', 10, 13, 250, 'USD', 1099511627781), (2, 'B', 2, 1, 400, 'USD', 1099511627781),"
" (3, 'C', 5, 1, 100, 'EUR', 1099511627784), (4, 'D', 3, 2, 0, 'USD', 1099511627785);"
"INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, reason, skus, total_minor,"
"                    currency, bucket, placed_at, fence) VALUES"
" (1, 1, 'k1', '', 'fulfilled', NULL,                 NULL,  900, 'USD', 1, '2024-04-01', 1099511627781),"
" (2, 1, 'k2', '', 'rejected',  'out_of_stock',       '{B}', 2000, 'USD', 2, '2024-04-02', 1099511627782),"
" (3, 2, 'k1', '', 'rejected',  'insufficient_funds', NULL,  750, 'USD', 1, '2024-04-03', 1099511627782),"
" (4, 1, 'k4', '', 'rejected',  'unknown_sku',        '{Z}', 0,   'USD', 0, '2024-04-04', 0),"
" (5, 3, 'k1', '', 'fulfilled', NULL,                 NULL,  390, 'EUR', 3, '2024-04-05', 1099511627784),"
" (6, 1, 'k6', '', 'pending',   NULL,                 NULL,  250, 'USD', 1, '2024-04-09 23:45Z', 0),"
" (7, 1, 'k7', '', 'fulfilled', NULL,                 NULL,  0,   'USD', 4, '2024-04-07', 1099511627785);"
"INSERT INTO order_lines (order_id, sku_id, qty, unit_price_minor) VALUES"
" (1, 1, 2, 250), (1, 2, 1, 400), (2, 2, 5, 400), (3, 1, 3, 250), (5, 3, 3, 100), (5, 3, 1, 90),"
" (6, 1, 1, 250), (7, 4, 1, 0);"
"INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES"
" (1, 'receive', 1, 5, 0, '2024-03-01'),"
" (1, 'sale', 1, -2, 1099511627781, '2024-04-01'), (2, 'sale', 1, -1, 1099511627781, '2024-04-01'),"
" (3, 'sale', 5, -4, 1099511627784, '2024-04-05'), (4, 'sale', 7, -1, 1099511627785, '2024-04-07');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at) VALUES"
" ('deposit', 1, 1, 1, 'cash', 'wallet',  9000, 'USD', '2024-01-01'),"
" ('deposit', 1, 2, 1, 'cash', 'wallet',  1000, 'USD', '2024-02-01'),"
" ('deposit', 2, 1, 2, 'cash', 'wallet',  1500, 'USD', '2024-01-01'),"
" ('deposit', 3, 1, 3, 'cash', 'wallet', 10000, 'EUR', '2024-01-01'),"
" ('payment', 1, 0, 1, 'wallet', 'order_revenue', 900, 'USD', '2024-04-01'),"
" ('payment', 5, 0, 3, 'wallet', 'order_revenue', 390, 'EUR', '2024-04-05');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
" SELECT 'charge', subscription_id, period_no, s.user_id, 'wallet', 'subscription_revenue',"
"        c.amount_minor, currency, charged_at"
"   FROM charges AS c JOIN subscriptions AS s USING (subscription_id) WHERE c.state = 'captured';"
"INSERT INTO workers VALUES"
" ('pool', 0, 'host', 10, now(), now(), '{\"granted\": 7, \"busy\": 2, \"charged\": 5, \"batches\": 3}'),"
" ('pool', 1, 'host', 11, now(), now() - interval '1 minute', '{\"granted\": 4, \"restarts\": 1, \"fulfilled\": 3}');"
"INSERT INTO lock_incidents (resource, token, worker, kind, phase)"
" VALUES ('lock:user:1', 7, 'pool-0', 'fenced', 'claim');"};

static const char *const audit_world_totals =
"{\"billing\": {\"periods_due\": 13, \"charged\": 9, \"declined\": 3, \"still_to_do\": 1, \"charged_twice\": 0,"
"  \"subscriptions\": {\"active\": 4, \"past_due\": 1, \"unpaid\": 1, \"cancelled\": 1, \"parked\": 0}},"
" \"stock\": {\"skus\": 4, \"initial\": 20, \"received\": 5, \"before\": 25, \"sold\": 8, \"left\": 17, \"oversold\": 0},"
" \"orders\": {\"in\": 7, \"fulfilled\": 3, \"rejected\": 3, \"pending\": 1, \"parked\": 0, \"rejected_by_reason\":"
"  {\"out_of_stock\": 1, \"insufficient_funds\": 1, \"unknown_sku\": 1}},"
" \"money\": {"
"  \"EUR\": {\"deposited\": 10000, \"in_wallets\": 4010, \"subscription_revenue\": 5600, \"order_revenue\": 390,"
"           \"difference\": 0, \"charged\": 5600, \"declined\": 0},"
"  \"USD\": {\"deposited\": 11500, \"in_wallets\": 6200, \"subscription_revenue\": 4400, \"order_revenue\": 900,"
"           \"difference\": 0, \"charged\": 4400, \"declined\": 19000}},"
" \"locks\": {\"granted\": 11, \"busy\": 2, \"lost\": 0, \"fenced\": 0, \"uncertain\": 0, \"commit_unknown\": 0,"
"  \"batches\": 3, \"restarts\": 1},"
" \"incidents\": {\"lost\": 0, \"fenced\": 1, \"uncertain\": 0, \"epoch_bump\": 0, \"commit_unknown\": 0,"
"  \"forced_unlock\": 0, \"parked\": 0, \"resumed\": 0}}";
/* More of everything, sound like the rest, than 64 bits can sum up; BHD has three decimals. */
static const char audit_world_huge[] =
"INSERT INTO users (user_id, balance_minor, currency) SELECT g, CASE WHEN g < 92 THEN 9000000000000000000 ELSE 0 END,"
" 'BHD' FROM generate_series(90, 93) AS g;"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
" SELECT 'deposit', u, leg, u, 'cash', 'wallet', 9000000000000000000, 'BHD', '2022-01-01Z'"
" FROM (VALUES (90, 1), (91, 1), (92, 1), (92, 2)) AS d (u, leg);"
"INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, state,"
" next_period_no, next_due_at) VALUES"
" (92, 92, 'p', 9000000000000000000, 'BHD', '2022-06-01Z', 'year', 'active', 2, '2024-06-01Z'),"
" (93, 93, 'p', 9000000000000000000, 'BHD', '2021-06-01Z', 'year', 'past_due', 0, '2024-06-01Z');"
"INSERT INTO charges VALUES"
" (92, 0, 92, '2022-06-01Z', '2023-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2022-06-01Z'),"
" (92, 1, 92, '2023-06-01Z', '2024-06-01Z', 9000000000000000000, 'captured', 1, 0, '', '2023-06-01Z'),"
" (93, 0, 93, '2021-06-01Z', '2022-06-01Z', 9000000000000000000, 'declined', 1, 0, '', '2021-06-01Z');"
"INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
" SELECT 'charge', 92, k, 92, 'wallet', 'subscription_revenue', 9000000000000000000, 'BHD', '2023-06-01Z'"
" FROM generate_series(0, 1) AS k;"
"INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)"
" SELECT g, g, 9000000000000000000, 9000000000000000000, 1, 'BHD' FROM generate_series(90, 91) AS g";

static const char audit_world_huge_money[] =
"{\"deposited\": \"36000000000000000000\", \"in_wallets\": \"18000000000000000000\","
" \"subscription_revenue\": \"18000000000000000000\", \"order_revenue\": 0, \"difference\": 0,"
" \"charged\": \"18000000000000000000\", \"declined\": \"27000000000000000000\"}";
/* clang-format on */

#endif
