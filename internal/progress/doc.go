// Package progress reads and writes the files from which a later attempt continues. Read and Decode refuse a damaged
// one, or one of another version, and say what to do. Changes compares an attempt's facts with a later one's.
package progress
