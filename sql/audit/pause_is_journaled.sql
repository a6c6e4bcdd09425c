-- A job is paused if the last entry of its journal says so, and for the reason and by the role that it tells, and only then.
WITH last AS (
  SELECT DISTINCT ON (job) job, event, reason, worker FROM job_journal ORDER BY job, entry_id DESC
), told AS (
  SELECT job, reason, worker FROM last WHERE event = 'paused'
)
SELECT 'job ' || coalesce(p.job, t.job) AS what,
       CASE WHEN t.job IS NULL THEN 'it is paused, and its last entry does not say so'
            WHEN p.job IS NULL THEN 'it is not paused, and its last entry says so'
            ELSE 'its last entry tells another reason or role' END AS detail
  FROM paused_jobs AS p FULL JOIN told AS t ON t.job = p.job
 WHERE (p.reason, p.paused_by) IS DISTINCT FROM (t.reason, t.worker)
 ORDER BY what;
