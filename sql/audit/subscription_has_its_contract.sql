-- Every subscription has its contract, and every contract its subscription, of the same user, plan and anchor.
-- Without its contract the same subscription could be made again.
SELECT format('subscription %s', coalesce(s.subscription_id, c.subscription_id)) AS what,
       format('%s; contract: %s', coalesce((s.user_id, s.plan, s.anchor_at)::text, 'gone'),
              coalesce((c.user_id, c.plan, c.anchor_at)::text, 'none')) AS detail
  FROM subscriptions AS s
  FULL JOIN contracts AS c USING (subscription_id)
 WHERE s.user_id IS DISTINCT FROM c.user_id OR s.plan IS DISTINCT FROM c.plan OR s.anchor_at IS DISTINCT FROM c.anchor_at
 ORDER BY 1;
