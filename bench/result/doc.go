// Package result holds what a measurement of a table's write throughput gave. The requests of a run and the outcomes of
// their rows come in as they end; a Result goes out: totals, percentiles of latency, counts per second and per partition, as
// text, as JSON, as raw samples a line each, in Go's benchmark format and as a web page. It promises that its memory does
// not grow with the length of the run, that what is outside the measured time counts nowhere in the totals, and that a
// Result written as JSON reads back as it was. It does not know how requests are sent.
package result
