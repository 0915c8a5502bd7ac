// Package sim simulates the partitions of a table: which partition serves a row, and whether it has capacity. A Table
// takes the partition keys and costs of rows with the caller's time, and returns verdicts, latencies, bounds and
// counts. The same calls, times and seed give the same answers. Deciding a row rarely allocates. With the default
// limiter, a partition accepts at most its capacity times the time it has been serving, plus one burst.
package sim
