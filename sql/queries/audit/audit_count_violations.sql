-- audit_count_violations: how many rows an invariant returns. The audit puts the text of a file of sql/audit in place of
-- "TABLE invariant". Counted here, not by the program: there may be millions. Columns: count. Locks: none.
SELECT count(*) FROM (
TABLE invariant
) AS violation
