// Package result holds the result of a write benchmark. A Recorder takes requests as they end, and returns a Result:
// totals, latency percentiles, and counts by second and partition. Results can be written as text, JSON or Go's
// benchmark format, and each request, by a SampleWriter, as a line of JSON. Memory does not grow with the length of a
// run. Totals exclude the warm-up.
package result
