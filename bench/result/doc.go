// Package result holds the result of a write benchmark. A Recorder takes requests and the outcomes of their rows as
// they end, and returns a Result: totals, latency percentiles, and counts by second and by partition. A Result can be
// written as text, JSON, raw samples or Go's benchmark format, and survives a round trip through JSON. Memory does not
// grow with the length of the run. Totals are of the measured time only. The package sends no requests.
package result
