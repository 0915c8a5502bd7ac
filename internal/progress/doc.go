// Package progress reads and writes the files from which a later attempt continues. Read and Decode refuse files that
// are damaged or have another version, and say what to do. Changes compares the facts of two attempts.
package progress
