// Package compress reads compressed files. NewLimitedReader returns the decompressed bytes. For truncated, damaged,
// unfinished or trailing data it returns an error with the file and the approximate position, after all bytes before
// it. MaxWindow bounds the memory, regardless of headers. The package starts no goroutines. A BlockCutter cuts a file
// of independent blocks into Pieces, which Inflaters can inflate in parallel.
package compress
