-- This database may be filled and wiped by the laboratory if the rows say so: its owner made the schema that says so, the
-- schema holds nothing but the laboratory's tables, and the pool's tables hold nobody else's users.
-- Columns: bool marked, text of a foreign table or null, bool others' users. Locks: none.
SELECT to_regnamespace('ledgerlock_lab') IS NOT NULL,
       (SELECT min(relname)::text FROM pg_catalog.pg_class
         WHERE relnamespace = to_regnamespace('ledgerlock_lab') AND relkind IN ('r', 'p', 'v', 'm', 'f')
           AND relname NOT IN ('lab_items', 'lab_charges', 'lab_sales', 'lab_card_charges', 'lab_card_attempts')),
       EXISTS (SELECT FROM users WHERE external_ref IS DISTINCT FROM 'lab-' || user_id)
         OR EXISTS (SELECT FROM stock WHERE sku <> 'lab-' || sku_id)
