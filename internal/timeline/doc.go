// Package timeline keeps counts over time in bounded memory. A Line holds at most a given number of evenly spaced
// points; a Heat does so for many slots. When there would be too many points, the interval doubles and neighbouring
// points are merged, so no count is lost.
package timeline
