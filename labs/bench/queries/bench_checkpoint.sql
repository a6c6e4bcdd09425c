-- Writes out what the load made, so that it is not written while something is measured. Locks: none.
CHECKPOINT
