// Package timeline keeps what happens over time in bounded memory. Counts with their times come in, at most a given number
// of points goes out, evenly spaced from the start. It promises that nothing is lost when the points become too many: the
// interval doubles and neighbours are merged. It does not know what is counted.
package timeline
