// Package result holds the result of measuring a table's write throughput. A Recorder takes the requests of a run and the
// outcomes of their rows as they end, and returns a Result: totals, percentiles of latency, and counts by second and by
// partition, which can be written as text, JSON, raw samples or Go's benchmark format. Memory does not grow with
// the length of the run, requests outside the measured time are not counted in the totals, and a Result survives the round
// trip through JSON unchanged. The package does not know how requests are sent.
package result
