-- Lets no node but the one of the cell give out numbers of its rows; for the coordinator. Column: the nodes that could not be told, as text;
-- empty: none. Locks: SHARE ROW EXCLUSIVE on the sequences of each.
SELECT coalesce(string_agg(format('node %s: %s', nodeid, result), '; '), '')
  FROM run_command_on_all_nodes(format('SELECT %I.end_identities()', current_schema())) WHERE NOT success
