// Package compress reads compressed files: NewLimitedReader takes a file's bytes and returns the decompressed ones.
// Truncated, damaged or unfinished data, or data after the last member, gives an error that names the file and the
// approximate position, after all bytes before it were delivered. MaxWindow bounds the memory, regardless of headers.
// The package does not interpret the bytes and starts no goroutine. A BlockCutter cuts files of independent blocks into
// Pieces instead, which Inflaters inflate in parallel.
package compress
