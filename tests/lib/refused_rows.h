/* refused_rows: rows in every table, and for each guard of the schema a statement that
 * it refuses. */
#ifndef LEDGERLOCK_REFUSED_ROWS_H
#define LEDGERLOCK_REFUSED_ROWS_H

/* Two rows of each table, which differ in each column that may: so a key that was
 * widened by one more refuses nothing. */

/* clang-format off */
static const char world[] =
    "SET search_path = ledgerlock;"
    "INSERT INTO users (user_id, external_ref, balance_minor, currency) VALUES"
    " (1, 'ann', 500, 'USD'), (2, 'bob', 600, 'EUR');"
    "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) VALUES"
    " (1, 'A', 10, 10, 250, 'USD'), (2, 'B', 20, 20, 300, 'USD');"
    "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, "
    "next_due_at) SELECT i, i, 'p' || i, 100 + i, CASE i WHEN 1 THEN 'USD' ELSE 'EUR' END, '2024-01-31Z', 'month', '2024-01-31Z' "
    "FROM generate_series(1, 2) AS i;"
    "SELECT make_months('2023-11-01Z', '2024-03-02Z');"
    "INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, "
    "tries, fence, worker, charged_at) SELECT i, 0, i, date '2024-01-31' + i, date '2024-02-29' + i, 100 + i, 'captured', i, i, 'w' || i, "
    "now() - i * interval '1 s' FROM generate_series(1, 2) AS i;"
    "SELECT place_order(1, 'k1', '[{\"sku\": \"A\", \"qty\": 1}, {\"sku\": \"B\", \"qty\": 2}]'),"
    " place_order(1, 'k2', '[{\"sku\": \"A\", \"qty\": 1}]');"
    "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at, source_at) VALUES"
    " (1, 'receive', 8, 5, 1, now(), now()), (1, 'sale', 1, -5, 1, now(), now()), (1, 'sale', 2, -6, 2, now() - interval '1 s', now());"
    "SELECT receive_stock('A', '7', 5); SELECT deposit(1, 'USD', 100, 'a'), deposit(1, 'USD', 200, 'b', now() - interval '1 s');"
    "INSERT INTO transfers VALUES ('payment', 1, 0, 1, now(), 'wallet', 'order_revenue', 1, 'USD', now());"
    "SELECT pause_job('billing'); SELECT report_audit(1, 66, '[]');"
    "INSERT INTO lock_incidents (resource, token, worker, kind, phase) VALUES ('user:1', 1, 'w', 'lost', 'x');"
    "INSERT INTO workers SELECT (jsonb_populate_record(NULL::workers, jsonb_build_object('pool', 'p', 'slot', i, "
    "'job', 'billing', 'host', 'h', 'pid', i, 'started_at', now(), 'seen_at', now() + i * interval '1 s', 'counters', '{}'))).* "
    "FROM generate_series(1, 2) AS i;"
    "INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no) VALUES ('billing', 1, 'w', now(), 1, 0, '{1}', '{0}', 1);"
    "INSERT INTO order_journal (order_id, event, state, user_id, total_minor) VALUES (1, 'parked', 'parked', 1, 1);"
    "INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (1, 3, 'p', 2, 50);"
    "INSERT INTO closures (user_id, at) VALUES (1, now()); INSERT INTO signups VALUES (1, 'k', 1, 0);"
    "INSERT INTO prorations (subscription_id, idempotency_key, period_no, user_id, plan, quantity, unit_minor, old_minor,"
    " new_minor, days_left, days, amount_minor, at) VALUES (1, 'k1', 1, 1, 'p', 1, 2, 1, 2, 20, 30, 1, now());"
    "INSERT INTO corrections (user_id, kind, idempotency_key, amount_minor, currency, of_kind, of_source, of_leg, of_at, of_minor,"
    " before_minor, reason) VALUES (1, 'refund', 'k1', 10, 'USD', 'charge', 1, 0, now(), 101, 0, 'r'),"
    " (1, 'withdrawal', 'k2', 5, 'USD', NULL, NULL, NULL, NULL, NULL, NULL, 'r');"
    "SET ledgerlock.repair = on; INSERT INTO seals (month, table_name, kind, currency, row_ct, total, checksum) VALUES"
    " ('2023-11-01', 'months', '', '', 0, 0, 0); INSERT INTO sealed_wallets VALUES (1, 'USD', 1);"
    "INSERT INTO write_offs (subscription_id, idempotency_key, period_no, user_id, amount_minor, currency, reason) VALUES"
    " (1, 'k1', 0, 1, 5, 'USD', 'r'), (1, 'k2', 1, 1, 5, 'USD', 'r');"
    "INSERT INTO adjustments (sku_id, idempotency_key, qty, reason) VALUES (1, 'k1', 5, 'r'), (1, 'k2', -1, 'r');"
    "INSERT INTO returns (user_id, idempotency_key, order_id, sku_id, qty, sold_qty, before_qty, cost_minor, refunded_minor, reason)"
    " VALUES (1, 'k1', 1, 1, 1, 5, 0, 250, 0, 'r'), (1, 'k2', 1, 1, 1, 5, 1, 250, 0, 'r');"
    "INSERT INTO sealed_stock VALUES (1, 1, 0, 0, 1); INSERT INTO sealed_batches VALUES (1, now(), 'w', 1);";

/* Closes a month, with a row in each table that has months; a person repairs. */
#define CLOSE_MONTH \
    "INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, " \
    "tries, fence, worker, charged_at) VALUES (3, 0, 1, '2023-12-01Z', '2024-01-01Z', 100, 'captured', 1, 1, 'w', '2024-01-01Z');" \
    "INSERT INTO stock_movements VALUES (1, 'receive', 9, 5, 0, '2023-12-01Z', '2023-12-01Z');" \
    "INSERT INTO transfers VALUES ('deposit', 1, 0, 1, '2023-12-01Z', 'cash', 'wallet', 1, 'USD', '2023-12-01Z');" \
    "SELECT close_month('2023-12-01'); SET LOCAL ledgerlock.repair = on;"

/* As everybody but a person who repairs by hand. */
#define NO_REPAIR "SET LOCAL ledgerlock.repair = off; "

/* The row with key k1 once more, but for what the JSON says. */
#define AGAIN(table, json)                                                               \
    "INSERT INTO " table " OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(p, '" json \
    "')).* FROM " table " AS p WHERE idempotency_key = 'k1'"
#define FIRST(table, change) "UPDATE " table " SET " change " WHERE idempotency_key = 'k1'"

#define EMPTIED(table) {table, NO_REPAIR "TRUNCATE " table " CASCADE"}

/* A month that is closed, also for a person who repairs. */
#define CLOSED(table)                                                                    \
    EMPTIED(table "_2023_12"),                                                           \
        {table "_2023_12", CLOSE_MONTH "TRUNCATE " table "_2023_12"},                    \
        {table "_2023_12", CLOSE_MONTH "DELETE FROM " table "_2023_12"},                 \
        {table "_2023_12", CLOSE_MONTH "INSERT INTO " table " SELECT * FROM " table "_2023_12"}

/* Each breaks one guard and no other, and no two break the same. */
static const struct refusal {
    const char *table; /* on which the guard stands */
    const char *sql;
} refusals[] = {
    {"currency", "UPDATE users SET currency = 'usd' WHERE user_id = 1"},
    {"users", "UPDATE users SET user_id = 0 WHERE user_id = 1"},
    {"users", "UPDATE users SET user_id = 1 WHERE user_id = 2"},
    {"users", "UPDATE users SET external_ref = 'ann' WHERE user_id = 2"},
    {"users", "UPDATE users SET balance_minor = -1 WHERE user_id = 1"},
    {"stock", "UPDATE stock SET sku_id = 0 WHERE sku_id = 1"},
    {"stock", "UPDATE stock SET sku_id = 1 WHERE sku_id = 2"},
    {"stock", "UPDATE stock SET sku = 'A' WHERE sku_id = 2"},
    {"stock", "UPDATE stock SET initial_qty = -1 WHERE sku_id = 1"},
    {"stock", "UPDATE stock SET on_hand = -1 WHERE sku_id = 1"},
    {"stock", "UPDATE stock SET unit_price_minor = -1 WHERE sku_id = 1"},
    {"subscriptions",
     "UPDATE subscriptions SET subscription_id = 0 WHERE subscription_id = 1"},
    {"subscriptions",
     "UPDATE subscriptions SET subscription_id = 1 WHERE subscription_id = 2"},
    {"subscriptions", "UPDATE subscriptions SET amount_minor = -1"},
    {"subscriptions", "UPDATE subscriptions SET unit = 'hour'"},
    {"subscriptions", "UPDATE subscriptions SET every = 0"},
    {"subscriptions", "UPDATE subscriptions SET state = 'asleep'"},
    {"subscriptions", "UPDATE subscriptions SET next_period_no = -1"},
    {"subscriptions", "UPDATE subscriptions SET retries = -1"},
    {"subscriptions", "UPDATE subscriptions SET anchor_at = '-infinity'"},
    {"subscriptions", "UPDATE subscriptions SET next_due_at = 'infinity'"},
    {"subscriptions", "UPDATE subscriptions SET cancel_at = 'infinity'"},
    {"subscriptions", "UPDATE subscriptions SET state = 'past_due'"},
    {"subscriptions", "UPDATE subscriptions SET state = 'cancelled'"},
    {"contracts",
     "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit,"
     " next_due_at) SELECT subscription_id + 10, user_id, plan, 7, currency, anchor_at, 'week', anchor_at FROM"
     " subscriptions"},
    {"subscriptions",
     "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, "
     "anchor_at, unit, next_due_at) VALUES (9, 1, 'p', 100, 'EUR', '2024-01-31Z', 'month', "
     "'2024-01-31Z')"},
    {"charges",
     "UPDATE charges SET subscription_id = 1, period_start = period_start - interval '1 day' WHERE subscription_id = 2"},
    {"charges", "UPDATE charges SET period_no = -1"},
    {"charges", "UPDATE charges SET period_end = period_start"},
    {"charges", "UPDATE charges SET amount_minor = -1"},
    {"users", "UPDATE users SET closed_at = now() WHERE user_id = 1"},
    {"closures", "INSERT INTO closures (user_id, at) VALUES (1, now())"},
    {"closures", NO_REPAIR "DELETE FROM closures"},
    {"prorations",
     "INSERT INTO prorations OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(p, '{\"days\": 31}')).* FROM prorations AS p"},
    {"prorations", "UPDATE prorations SET days_left = 32"},
    {"prorations", AGAIN("prorations", "{\"idempotency_key\": \"k3\"}")},
    {"prorations", NO_REPAIR "DELETE FROM prorations"},
    {"signups", "UPDATE signups SET trial_periods = -1"},
    {"signups", "INSERT INTO signups VALUES (1, 'k', 2, 1)"},
    {"signups", NO_REPAIR "DELETE FROM signups"},
    {"charges", "UPDATE charges SET state = 'lent'"},
    {"charges", "UPDATE charges SET tries = 0"},
    {"charges",
     "UPDATE charges SET state = 'waived', charged_at = period_end - interval '1 s'"},
    {"charges", "UPDATE charges SET charged_at = period_start - interval '1 s'"},
    {"orders", "UPDATE orders SET order_id = 0 WHERE idempotency_key = 'k2'"},
    {"orders", "UPDATE orders SET order_id = 1 WHERE order_id = 2"},
    {"orders", "UPDATE orders SET idempotency_key = 'k1' WHERE idempotency_key = 'k2'"},
    {"orders", "UPDATE orders SET state = 'lost'"},
    {"orders",
     "UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1, reason = 'mood', skus = '{A}'"},
    {"orders", "UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1"},
    {"orders",
     "UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1, reason = 'out_of_stock', skus = '{}'"},
    {"orders", "UPDATE orders SET total_minor = -1"},
    {"orders", "UPDATE orders SET placed_at = '-infinity'"},
    {"orders", "UPDATE orders SET state = 'fulfilled', fence = 1"},
    {"orders",
     "UPDATE orders SET state = 'fulfilled', fence = 1, decided_at = placed_at -"
     " interval '1 s'"},
    {"orders", "UPDATE orders SET state = 'fulfilled', decided_at = now()"},
    {"orders",
     "INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('order_id', 9, 'user_id', 99))).* FROM orders AS o WHERE order_id = 1"},
    {"order_lines", "UPDATE order_lines SET sku_id = 1, unit_price_minor = 250"},
    {"order_lines", "UPDATE order_lines SET order_id = 99 WHERE order_id = 2"},
    {"order_lines", "UPDATE order_lines SET qty = 0"},
    {"order_lines", "UPDATE order_lines SET unit_price_minor = -1"},
    {"order_lines",
     "INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES (1, 99, 1, 1)"},
    {"stock_movements", "UPDATE stock_movements SET source = 1 WHERE source = 2"},
    {"stock_movements", "UPDATE stock_movements SET qty = -qty"},
    {"stock_movements", "UPDATE stock_movements SET moved_at = '-infinity'"},
    {"transfers",
     "UPDATE transfers SET (leg, source_at) = (SELECT leg, source_at FROM transfers WHERE leg = 1) WHERE leg = 2"},
    {"transfers", "UPDATE transfers SET moved_at = 'infinity'"},
    {"transfers", "UPDATE transfers SET source = 7 WHERE leg = 2"},
    {"transfers", "UPDATE transfers SET leg = 7 WHERE kind = 'payment'"},
    {"transfers", "UPDATE transfers SET amount_minor = 0"},
    {"transfers", "UPDATE transfers SET debit = 'wallet'"},
    {"subscription_terms", "UPDATE subscription_terms SET from_period = -1"},
    {"subscription_terms", "UPDATE subscription_terms SET quantity = 0"},
    {"subscription_terms", "UPDATE subscription_terms SET unit_minor = -1"},
    {"subscription_terms",
     "INSERT INTO subscription_terms (terms_id, subscription_id, from_period, plan, quantity, unit_minor)"
     " OVERRIDING SYSTEM VALUE SELECT terms_id, subscription_id, from_period, 'q', 1, 1 FROM subscription_terms"},
    {"subscription_terms", NO_REPAIR "DELETE FROM subscription_terms"},
    {"deposits", "UPDATE deposits SET idempotency_key = 'a'"},
    {"deposits", "UPDATE deposits SET deposit_id = -deposit_id"},
    {"deposits", "UPDATE deposits SET amount_minor = 0"},
    {"deposits", "UPDATE deposits SET user_id = 99 WHERE deposit_id = 1"},
    {"deposits", NO_REPAIR "DELETE FROM deposits"},
    {"contracts", "UPDATE contracts SET user_id = 99"},
    {"contracts", NO_REPAIR "DELETE FROM contracts"},
    {"deliveries",
     "INSERT INTO deliveries (sku_id, idempotency_key, qty, at) VALUES (1, '7', 5, now())"},
    {"deliveries",
     "INSERT INTO deliveries OVERRIDING SYSTEM VALUE SELECT sku_id, '8', delivery_id, qty, at FROM deliveries"},
    {"deliveries", "UPDATE deliveries SET qty = 0"},
    {"deliveries", "UPDATE deliveries SET sku_id = 99"},
    {"deliveries", NO_REPAIR "DELETE FROM deliveries"},
    {"corrections", FIRST("corrections", "user_id = 99")},
    {"corrections", FIRST("corrections", "kind = 'gift'")},
    {"corrections", AGAIN("corrections", "{\"idempotency_key\": \"k3\", \"before_minor\": 10}")},
    {"corrections", FIRST("corrections", "amount_minor = 0")},
    {"corrections", FIRST("corrections", "of_kind = 'deposit'")},
    {"corrections", FIRST("corrections", "reason = ' '")},
    {"corrections", AGAIN("corrections", "{\"correction_id\": 99, \"before_minor\": 10}")},
    {"corrections", FIRST("corrections", "of_leg = NULL")},
    {"corrections", FIRST("corrections", "before_minor = 92")},
    {"corrections", FIRST("corrections", "kind = 'void'")},
    {"corrections", FIRST("corrections", "kind = 'return'")},
    {"corrections", AGAIN("corrections", "{\"correction_id\": 99, \"idempotency_key\": \"k3\"}")},
    {"corrections", NO_REPAIR "DELETE FROM corrections"},
    {"write_offs", FIRST("write_offs", "subscription_id = 99")},
    {"write_offs", FIRST("write_offs", "amount_minor = 0")},
    {"write_offs", FIRST("write_offs", "reason = ' '")},
    {"write_offs", FIRST("write_offs", "idempotency_key = 'k2', period_no = 7")},
    {"write_offs", FIRST("write_offs", "period_no = 1")},
    {"write_offs", NO_REPAIR "DELETE FROM write_offs"},
    {"adjustments", FIRST("adjustments", "sku_id = 99")},
    {"adjustments", AGAIN("adjustments", "{\"idempotency_key\": \"k3\"}")},
    {"adjustments", FIRST("adjustments", "qty = 0")},
    {"adjustments", FIRST("adjustments", "reason = ' '")},
    {"adjustments", FIRST("adjustments", "idempotency_key = 'k2'")},
    {"adjustments", NO_REPAIR "DELETE FROM adjustments"},
    {"returns", FIRST("returns", "user_id = 99")},
    {"returns", AGAIN("returns", "{\"idempotency_key\": \"k3\", \"before_qty\": 2}")},
    {"returns", FIRST("returns", "order_id = 99")},
    {"returns", FIRST("returns", "sku_id = 99")},
    {"returns", FIRST("returns", "qty = 0")},
    {"returns", FIRST("returns", "refunded_minor = 251")},
    {"returns", FIRST("returns", "reason = ' '")},
    {"returns", FIRST("returns", "idempotency_key = 'k2'")},
    {"returns", FIRST("returns", "qty = 6")},
    {"returns", FIRST("returns", "before_qty = 1")},
    {"returns", NO_REPAIR "DELETE FROM returns"},
    {"months", "INSERT INTO months SELECT * FROM months"},
    {"months", "UPDATE months SET month = month + 1 WHERE month = '2024-02-01'"},
    {"seals", "INSERT INTO seals SELECT * FROM seals"},
    {"seals", "UPDATE seals SET row_ct = -1"},
    {"seals", "UPDATE seals SET month = '1999-01-01'"},
    {"sealed_wallets", "INSERT INTO sealed_wallets SELECT * FROM sealed_wallets"},
    {"sealed_stock", "INSERT INTO sealed_stock SELECT * FROM sealed_stock"},
    {"sealed_batches", "INSERT INTO sealed_batches SELECT * FROM sealed_batches"},
    {"lock_incidents",
     "INSERT INTO lock_incidents OVERRIDING SYSTEM VALUE SELECT * FROM lock_incidents"},
    {"lock_incidents", "UPDATE lock_incidents SET kind = 'mislaid'"},
    {"lock_token", "INSERT INTO lock_token (one, last) VALUES (true, 1)"},
    {"lock_token", "UPDATE lock_token SET one = false"},
    {"lock_token", "UPDATE lock_token SET last = 9007199254740992"},
    {"workers", "UPDATE workers SET slot = 1 WHERE slot = 2"},
    {"schema_migrations",
     "INSERT INTO schema_migrations SELECT * FROM schema_migrations"},
    {"schema_migrations", "UPDATE schema_migrations SET kind = 'rumour'"},
    {"batches", "INSERT INTO batches OVERRIDING SYSTEM VALUE SELECT * FROM batches"},
    {"batches", "UPDATE batches SET done = -1"},
    {"batches", "UPDATE batches SET refused = -1, done = 2"},
    {"batches", "UPDATE batches SET ids = '{1,2}'"},
    {"batches", "INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) SELECT job, token, worker, at, done, refused, ids, feed_no FROM batches"},
    {"feed_base", "INSERT INTO feed_base (base) VALUES (1)"},
    {"feed_base", "UPDATE feed_base SET one = false"},
    {"feed_base", "UPDATE feed_base SET base = -1"},
    {"subscription_journal",
     "INSERT INTO subscription_journal OVERRIDING SYSTEM VALUE SELECT * FROM subscription_journal"},
    {"subscription_journal", "UPDATE subscription_journal SET event = 'sung'"},
    {"subscription_journal", "UPDATE subscription_journal SET try_no = 1"},
    {"subscription_journal", "UPDATE subscription_journal SET from_period = 1"},
    {"subscription_journal", "UPDATE subscription_journal SET plan = NULL"},
    {"order_journal",
     "INSERT INTO order_journal OVERRIDING SYSTEM VALUE SELECT * FROM order_journal"},
    {"order_journal", "UPDATE order_journal SET event = 'sung'"},
    {"stock_journal",
     "INSERT INTO stock_journal OVERRIDING SYSTEM VALUE SELECT * FROM stock_journal"},
    {"stock_journal", "UPDATE stock_journal SET event = 'sung'"},
    {"users", NO_REPAIR "UPDATE users SET external_ref = 'eve' WHERE user_id = 1"},
    {"stock", NO_REPAIR "UPDATE stock SET initial_qty = 11 WHERE sku_id = 1"},
    {"subscriptions", NO_REPAIR "UPDATE subscriptions SET amount_minor = 1"},
    {"charges", NO_REPAIR "UPDATE charges SET worker = 'w'"},
    {"orders", NO_REPAIR "UPDATE orders SET placed_at = now()"},
    {"order_lines", NO_REPAIR "DELETE FROM order_lines"},
    {"stock_movements", NO_REPAIR "UPDATE stock_movements SET moved_at = now()"},
    {"transfers", NO_REPAIR "TRUNCATE transfers"},
    {"lock_incidents", NO_REPAIR "DELETE FROM lock_incidents"},
    {"batches", NO_REPAIR "UPDATE batches SET done = 2"},
    {"subscription_journal", NO_REPAIR "DELETE FROM subscription_journal"},
    {"order_journal", NO_REPAIR "TRUNCATE order_journal"},
    {"stock_journal", NO_REPAIR "DELETE FROM stock_journal"},
    {"months", NO_REPAIR "DELETE FROM months"},
    {"seals", NO_REPAIR "UPDATE seals SET total = 0"},
    {"sealed_wallets", NO_REPAIR "UPDATE sealed_wallets SET net_minor = 0"},
    {"sealed_stock", NO_REPAIR "TRUNCATE sealed_stock"},
    {"sealed_batches", NO_REPAIR "DELETE FROM sealed_batches"},
    {"audits", "INSERT INTO audits (took_ms, invariants, broken) VALUES (-1, 66, '{}')"},
    {"audits", "INSERT INTO audits (took_ms, invariants, broken) VALUES (1, 0, '{}')"},
    {"audits", "INSERT INTO audits (took_ms, invariants, broken) VALUES (1, 66, '{NULL}')"},
    {"audits", "INSERT INTO audits OVERRIDING SYSTEM VALUE SELECT * FROM audits"},
    {"paused_jobs", "INSERT INTO paused_jobs (job) VALUES ('Billing!')"},
    {"paused_jobs", "INSERT INTO paused_jobs (job) VALUES ('billing')"},
    {"job_journal", "INSERT INTO job_journal OVERRIDING SYSTEM VALUE SELECT * FROM job_journal"},
    {"job_journal", "UPDATE job_journal SET event = 'sung'"},
    {"job_journal", NO_REPAIR "DELETE FROM job_journal"},
    {"retry_schedules", "INSERT INTO retry_schedules OVERRIDING SYSTEM VALUE SELECT * FROM retry_schedules"},
    {"retry_schedules", "INSERT INTO retry_schedules (pauses_s) VALUES ('{}')"},
    {"retry_schedules", NO_REPAIR "DELETE FROM retry_schedules"},
    {"orders", "UPDATE orders SET state = 'fulfilled', fence = 1, decided_at = 'infinity'"},
    {"subscription_journal", "UPDATE subscription_journal SET at = 'infinity'"},
    {"order_journal", "UPDATE order_journal SET at = '-infinity'"},
    {"deposits", "UPDATE deposits SET at = recorded_at + interval '61 s'"},
    {"deliveries", "UPDATE deliveries SET at = recorded_at + interval '61 s'"},
    {"prorations", "UPDATE prorations SET at = recorded_at + interval '61 s'"},
    {"closures", "UPDATE closures SET at = recorded_at + interval '61 s'"},
    {"corrections", "UPDATE corrections SET at = recorded_at + interval '61 s'"},
    {"write_offs", "UPDATE write_offs SET at = recorded_at + interval '61 s'"},
    {"adjustments", "UPDATE adjustments SET at = recorded_at + interval '61 s'"},
    {"returns", "UPDATE returns SET at = recorded_at + interval '61 s'"},
    {"batches", "UPDATE batches SET at = recorded_at + interval '61 s'"},
    {"order_journal", NO_REPAIR "DELETE FROM order_journal"},
    {"transfers", NO_REPAIR "UPDATE transfers SET amount_minor = 1 WHERE leg > 0"},
    {"charges", NO_REPAIR "DELETE FROM charges"},
    {"lock_token", NO_REPAIR "UPDATE lock_token SET last = 9; UPDATE lock_token SET last = 8"},
    {"orders", NO_REPAIR "DELETE FROM orders"},
    {"orders", NO_REPAIR "UPDATE orders SET state = 'cancelled'; UPDATE orders SET state = 'pending'"},
    {"subscriptions", NO_REPAIR "DELETE FROM subscriptions"},
    EMPTIED("charges"),
    EMPTIED("stock_movements"),
    EMPTIED("order_lines"),
    EMPTIED("lock_incidents"),
    EMPTIED("batches"),
    EMPTIED("subscription_journal"),
    EMPTIED("stock_journal"),
    EMPTIED("job_journal"),
    EMPTIED("subscription_terms"),
    EMPTIED("retry_schedules"),
    EMPTIED("prorations"),
    EMPTIED("closures"),
    EMPTIED("signups"),
    EMPTIED("contracts"),
    EMPTIED("deposits"),
    EMPTIED("deliveries"),
    EMPTIED("months"),
    EMPTIED("seals"),
    EMPTIED("corrections"),
    EMPTIED("write_offs"),
    EMPTIED("adjustments"),
    EMPTIED("returns"),
    CLOSED("charges"), CLOSED("stock_movements"), CLOSED("transfers"),
    {"users", /* it contains the primary key, which would refuse first */
     "ALTER TABLE users DROP CONSTRAINT users_pkey CASCADE; INSERT INTO users (user_id, currency) VALUES (1, 'USD')"},
    {"subscriptions",
     "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
     " VALUES (9, 1, 'p', 100, 'USD', '2023-11-10Z', 'month', '2023-11-10Z')"},
};

/* clang-format on */

#endif
