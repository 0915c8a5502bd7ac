// Package result holds the result of a write benchmark. A Recorder takes requests and outcomes as they end, and returns
// a Result: totals, latency percentiles, and counts by second and partition, as text, JSON, raw samples or Go's
// benchmark format. Memory does not grow with the length of the run. Totals are of the measured time only.
package result
