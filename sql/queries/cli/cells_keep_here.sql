-- Keeps what this session changes of the schema to this node of a Citus cluster: ranges of sequences, and rights on views, which Citus
-- does not hand on. Column: one, text. Locks: none.
SELECT set_config('citus.enable_ddl_propagation', 'off', false)
