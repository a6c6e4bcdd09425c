-- Lets an orphan pay the period that it was taken for, by adopt_orphan. $1 text: reference. $2 text: what it was taken for. $3 bigint:
-- number of the attempt. Column: 1, or 0 if it was adopted before.
SELECT adopt_orphan($1::text, $2::text, $3::bigint::integer)::integer::bigint
