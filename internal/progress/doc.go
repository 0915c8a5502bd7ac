// Package progress reads and writes the files from which a later attempt continues. Read and Decode refuse damaged
// files and files of another version, and say what to do. Changes compares the facts of two attempts.
package progress
