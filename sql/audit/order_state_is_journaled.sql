-- An order is rejected, parked or cancelled exactly when its last journal entry says so, with its reason, user and total.
WITH last AS (
  SELECT DISTINCT ON (order_id) order_id, event, state, reason, skus, user_id, total_minor
    FROM order_journal
   ORDER BY order_id DESC, entry_id DESC
), both_sides AS (
  SELECT order_id, o.state, o.reason, o.skus, o.user_id, o.total_minor, l.event, l.state AS journaled, l.reason AS journaled_reason,
         l.skus AS journaled_skus, l.user_id AS journaled_user, l.total_minor AS journaled_total
    FROM orders AS o FULL JOIN last AS l USING (order_id)
)
SELECT format('order %s', order_id) AS what,
       format('%s %s of user %s, total %s; journal: %s %s of user %s, total %s', coalesce(state, 'gone'), reason, user_id, total_minor,
              coalesce(journaled, 'no entry'), journaled_reason, journaled_user, journaled_total) AS detail
  FROM both_sides
 WHERE state IS NULL
    OR (journaled IS NULL AND state IN ('rejected', 'parked', 'cancelled'))
    OR (journaled IS NOT NULL AND (user_id <> journaled_user OR total_minor <> journaled_total))
    OR (event <> 'released' AND (state, reason, skus) IS DISTINCT FROM (journaled, journaled_reason, journaled_skus))
    OR (event = 'released' AND state NOT IN ('pending', 'fulfilled'))
 ORDER BY order_id;
