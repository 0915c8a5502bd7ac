// Package shuffle queues rows between the reader and the writer, one queue for each lane, in memory and on disk. Lanes
// takes blocks in source order; rows leave one by one from the front of their Queue. The rows of a lane keep their
// order when they are spilled, read back or divided again, no row is lost or leaves twice, and memory beyond the budget
// is only what a lane needs to continue. The package does not know requests or rates.
package shuffle
