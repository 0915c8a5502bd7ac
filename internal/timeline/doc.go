// Package timeline keeps counts over time in bounded memory. A Line holds at most a given number of points, evenly
// spaced from the start; a Heat does so for many slots. When there would be too many points, the interval doubles and
// neighbours are merged, so no count is lost.
package timeline
