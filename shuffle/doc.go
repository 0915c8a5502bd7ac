// Package shuffle queues rows between reader and writer, one queue per lane, in memory and on disk. Lanes takes blocks
// in source order; rows leave from the front of their Queue. They keep their order when spilled, read back or divided
// again; none is lost or leaves twice. Memory exceeds the budget only for a lane without rows in memory.
package shuffle
