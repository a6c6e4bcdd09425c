-- Every rejection in the journal names the batch that made it: its token, time and worker.
SELECT format('order %s', order_id) AS what, format('rejected by batch %s of %s at %s', token, worker, at) AS detail
  FROM order_journal AS j
 WHERE event = 'rejected'
   AND NOT EXISTS (SELECT FROM batches AS b
                    WHERE b.job = 'orders' AND (b.token, b.worker, b.at) = (j.token, j.worker, j.at))
 ORDER BY order_id;
