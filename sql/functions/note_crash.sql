-- note_crash(job, items, worker, alone): charges rows with the death of the worker that worked them, once for each
-- worker. In company nobody knows which row it was: all become suspects, and dying in company again adds nothing.
-- Alone there is no doubt. Returns the rows and what each is charged with.
CREATE OR REPLACE FUNCTION ledgerlock.note_crash(
  p_job text, p_items bigint[], p_worker text, p_alone boolean)
RETURNS TABLE (item bigint, crashes integer) LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  INSERT INTO quarantine AS q (job, item, crashes, worker, crashed_at)
  SELECT p_job, i, 1, p_worker, now() FROM unnest(p_items) AS i ORDER BY i
  ON CONFLICT (job, item) DO UPDATE
     SET crashes = CASE WHEN q.worker = excluded.worker THEN q.crashes
                        WHEN p_alone THEN q.crashes + 1
                        ELSE greatest(q.crashes, 1) END,
         worker = excluded.worker, crashed_at = excluded.crashed_at
  RETURNING q.item, q.crashes;
END $$;
COMMENT ON FUNCTION ledgerlock.note_crash IS
  'Charges rows with the death of their worker: they are suspects from then on, each worked alone.';
REVOKE ALL ON FUNCTION ledgerlock.note_crash FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.note_crash TO ledgerlock_worker;
