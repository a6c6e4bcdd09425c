-- migrate_hash_text: the checksum of one migration or function, made by the server.
-- $1 text. Column: checksum (SHA-256, hex). No lock.
SELECT pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to($1::text, 'UTF8')), 'hex') AS checksum;
