// Package sim simulates the partitions of a table: which partition serves a row, and whether it has capacity. A Table
// takes the partition keys and costs of rows with the caller's time, and returns verdicts, latencies, bounds and
// counts. The same calls with the same times and seed give the same answers. A row costs no allocation, and a partition
// accepts no more than its capacity times the time it has served, plus one burst.
package sim
