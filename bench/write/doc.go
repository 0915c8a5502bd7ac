// Package write measures how fast a table accepts rows. Run takes the rows' shape, a concurrency or rate, and an
// instance; it creates a table, writes to it with the load's own writer, drops it and returns a result. At a fixed rate
// the latency of a batch counts from when it was due, so stalls show. The same seed gives the same rows.
package write
