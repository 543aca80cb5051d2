//! Learned depth in the engine: rows of the table, all of which the example `learned_depth` writes.
