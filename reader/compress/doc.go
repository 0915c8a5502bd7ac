// Package compress reads compressed files: NewLimitedReader returns the decompressed bytes. Truncated, damaged,
// unfinished or trailing data gives an error with the file and approximate position, after all bytes before it.
// MaxWindow bounds the memory, whatever headers say. No goroutine is started. A BlockCutter cuts files of independent
// blocks into Pieces, which Inflaters inflate in parallel.
package compress
