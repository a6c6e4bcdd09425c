-- status_counters: the sums of the counters of all workers of each job; two samples make a rate. Locks: none.
-- Column: a JSON object of {counter: sum} by job.
SELECT coalesce(json_object_agg(job, sums), '{}')::text
  FROM (SELECT job, json_object_agg(counter, n ORDER BY counter) AS sums
          FROM (SELECT w.job, c.key AS counter, sum(c.value::bigint) AS n
                  FROM workers AS w, jsonb_each_text(w.counters) AS c
                 GROUP BY w.job, c.key) AS one
         GROUP BY job) AS of_job;
