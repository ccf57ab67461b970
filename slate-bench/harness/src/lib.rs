//! What the benches share: the clock, statistics, counted allocations, tables, charts and the command line.
