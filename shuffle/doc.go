// Package shuffle keeps rows between the reader and the writer, a queue for each lane, in memory and on disk. Blocks come
// in in source order; rows go out one by one from the front of their lane. It promises that the rows of a lane keep their
// order when they are spilled, read back or cut again, that no row leaves twice or is lost, and that memory beyond the budget
// is only ever what a lane needs to continue. It knows nothing of requests and rates, and of keys only what it is told.
package shuffle
