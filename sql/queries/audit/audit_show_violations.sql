-- audit_show_violations: the first rows that an invariant returns. The audit puts the text of a file of sql/audit in
-- place of "TABLE invariant". Columns: what, detail. Locks: none.
SELECT * FROM (
TABLE invariant
) AS violation
 LIMIT 3
