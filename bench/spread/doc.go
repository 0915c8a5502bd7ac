// Package spread measures how evenly a load uses the partitions of a table. A dataset, a simulated table and the names of
// ways to load come in; for each of them a fresh engine is started, the load is run, and what the engine counted goes out
// as shares of the capacity that was there. It promises that every way meets the same partitions with the same empty
// buckets, and that a table that tsimport has loaded is compared with the file row by row. It does not know how tsimport
// loads: it starts the binary, as a user does.
package spread
