-- waits_of_subscription(subscription): what it waits for, but for row locks and locks in Redis. No row: there is no such subscription.
CREATE OR REPLACE FUNCTION waits_of_subscription(p_subscription_id bigint)
RETURNS TABLE ("for" text, detail text)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
  WITH s AS (
    SELECT *, state IN ('active', 'past_due') AND next_due_at <= now() AS is_due,
           to_char(next_due_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS due_text
      FROM subscriptions WHERE subscription_id = p_subscription_id
  )
  SELECT CASE WHEN state = 'cancelled' THEN 'nothing'
              WHEN state = 'unpaid' OR state = 'parked' THEN 'a person'
              WHEN state = 'paying' THEN 'a card'
              WHEN is_due THEN 'a worker'
              ELSE 'its time' END AS for,
         CASE state
           WHEN 'cancelled' THEN 'it is cancelled'
           WHEN 'unpaid' THEN format('unpaid: %s tries of period %s were declined, and no more follow; resume_subscription makes it due',
                                     retries, next_period_no)
           WHEN 'parked' THEN format('parked: %s; ledgerlock parked release subscription:%s',
                                     coalesce((SELECT detail FROM lock_incidents
                                                WHERE kind = 'parked' AND resource = 'subscription:' || s.subscription_id
                                                ORDER BY incident_id DESC LIMIT 1), 'not in the journal'), subscription_id)
           WHEN 'paying' THEN wait_of_payment('charge', subscription_id, next_period_no)
           WHEN 'past_due' THEN format('past due: period %s was declined, try %s is due %s %s', next_period_no, retries + 1,
                                       CASE WHEN is_due THEN 'since' ELSE 'at' END, due_text)
           ELSE format('%speriod %s is due %s %s',
                       CASE WHEN NOT is_due AND EXISTS (SELECT FROM charges AS c
                                                         WHERE c.subscription_id = s.subscription_id AND c.state = 'skipped'
                                                           AND c.period_no = s.next_period_no - 1) THEN 'paused: ' ELSE '' END,
                       next_period_no, CASE WHEN is_due THEN 'since' ELSE 'at' END, due_text) END AS detail
    FROM s
  UNION ALL
  SELECT 'its job', concat_ws(': ', format('%s is paused since %s by %s', p.job, to_char(p.since, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), p.paused_by),
                              nullif(p.reason, ''))
    FROM s, paused_jobs AS p WHERE s.is_due AND p.job = 'billing'
  UNION ALL
  SELECT 'a pool', 'no worker of billing has reported for ten seconds'
    FROM s
   WHERE s.is_due AND NOT EXISTS (SELECT FROM live_workers WHERE job = 'billing')
$$;
COMMENT ON FUNCTION waits_of_subscription IS
  'What a subscription waits for, but for locks. Errors: none of its own.';
REVOKE ALL ON FUNCTION waits_of_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waits_of_subscription TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;
