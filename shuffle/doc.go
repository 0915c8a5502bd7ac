// Package shuffle keeps rows between the reader and the writer. Blocks come in in source order, rows go out one by
// one from the front of their lane. It promises that the rows of a lane keep their order, that no row leaves twice, and
// that the memory of a block is counted until its last row is final. It knows nothing of keys, requests and rates.
package shuffle
