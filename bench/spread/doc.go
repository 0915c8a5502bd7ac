// Package spread measures how evenly loads use the partitions of a table. Run takes a dataset, a simulated table and a list of
// ways to load it. For each way it starts a fresh engine, runs the load, and reports the share of the available capacity that
// the engine saw used. All ways meet the same partitions with the same empty buckets, and each table that tsimport loads is
// compared with the file row by row. The package runs tsimport as a binary, as a user does.
package spread
