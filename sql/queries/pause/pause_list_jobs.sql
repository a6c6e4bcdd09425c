-- The jobs that are paused. Locks: none. Columns: job, since as text, the role that paused it, reason.
SELECT job, to_char(since, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since, paused_by AS by, reason
  FROM paused_jobs
 ORDER BY job
