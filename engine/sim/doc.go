// Package sim says how a table's partitions would treat a request: who serves a row, and whether there is capacity.
//
// In come the partition keys and costs of rows with the time of the caller's clock; out go verdicts per row, latencies,
// the partitions' bounds and counts over time.
// Promised: the same calls with the same times and seed give the same answers, a row costs no allocation, a partition
// accepts no more than its capacity times the time it has served plus one burst, and nothing here waits.
// It does not know tables' rows, the protocol, HTTP or the wall clock: package server asks and does the waiting.
package sim
