// Package sim simulates a table's partitions: which one serves a row, and whether it has capacity.
//
// In come the partition keys and costs of rows with the time of the caller's clock; out go verdicts per row, latencies,
// the partitions' bounds and counts over time.
// Promised: the same calls with the same times and seed give the same answers, a row costs no allocation, a partition
// accepts no more than its capacity times the time it has served plus one burst, and nothing here waits.
// It does not know tables' rows, the protocol, HTTP or the wall clock: package server asks and does the waiting.
package sim
