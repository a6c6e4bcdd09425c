-- Counts the outcome on the unguarded side as check_newest does on the other: charges beyond the first of each period and order,
-- units sold above those received, and SKUs of which as many are not left. A wallet is changed by a subtraction, beside its charge, so it
-- is always the sum of its rows. A mistake stays, the most that there was: a total that a later delivery puts right was wrong. Reads the counts that plain_write keeps, never the charges, whose number grows.
-- Columns: charges, charged_twice, oversold, wrong_totals. Locks: the row of the figures.
UPDATE ledgerlock_plain.figures
   SET charges = w.charges, charged_twice = greatest(charged_twice, i.twice), oversold = greatest(figures.oversold, s.oversold),
       wrong_totals = greatest(wrong_totals, s.wrong)
  FROM (SELECT coalesce(sum(charges), 0)::bigint AS charges FROM ledgerlock_plain.wallets) AS w,
       (SELECT coalesce(sum(again), 0)::bigint AS twice FROM ledgerlock_plain.items WHERE again > 0) AS i,
       (SELECT coalesce(sum(oversold + greatest(sold - received, 0)), 0)::bigint AS oversold,
               count(*) FILTER (WHERE on_hand <> received - sold) AS wrong
          FROM ledgerlock_plain.stock) AS s
RETURNING figures.charges, figures.charged_twice, figures.oversold, figures.wrong_totals
