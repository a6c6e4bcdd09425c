-- report_months: what function report returns, as rows. $1 text: now, null for the database's clock. Locks: none.
SELECT * FROM jsonb_to_recordset(report($1::text::timestamptz)) AS r (currency text, month text, deposits text, subscription_revenue text,
         order_revenue text, refunds text, withdrawals text, wallets text, owed text, written_off text, by_card text, difference text)
