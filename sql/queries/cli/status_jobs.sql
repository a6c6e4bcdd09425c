-- status_jobs: of each job that has workers: those that reported within the last ten seconds, the sums of its counters, and by how much they have grown per second; a counter that began anew has not grown.
-- $1 text: what status_counters gave before. $2 bigint: so many microseconds ago. Locks: none.
-- Column: a JSON object of {workers, rates_per_s, counters} by job.
SELECT coalesce(json_object_agg(job, json_build_object(
         'workers', (SELECT count(*) FROM live_workers AS w WHERE w.job = j.job),
         'rates_per_s', coalesce(rates, '{}'), 'counters', coalesce(sums, '{}'))), '{}')::text
  FROM (SELECT DISTINCT job FROM workers) AS j,
       LATERAL (SELECT json_object_agg(counter, n ORDER BY counter) AS sums,
                       json_object_agg(counter, greatest(n - coalesce(($1::text::json -> j.job ->> counter)::bigint, 0), 0)
                                                * 1000000 / $2::bigint ORDER BY counter) AS rates
                  FROM (SELECT c.key AS counter, sum(c.value::bigint)::bigint AS n
                          FROM workers AS w, jsonb_each_text(w.counters) AS c WHERE w.job = j.job GROUP BY c.key) AS one) AS grown
