// Package write measures how fast a table accepts rows. Run takes a shape of rows, a concurrency or rate, and an
// instance. It creates a table, writes to it with the writer of loads, drops it and returns a result. At a fixed rate,
// latency is measured from a batch's due time, so that it includes stalls. The same seed gives the same rows.
package write
