// Package csv reads delimited text. Scan and a Stitcher take chunks cut anywhere and return splits of whole records. A
// Parser returns the records of a split. They do not depend on the cuts. The encoding must be compatible with ASCII.
//
// # Cutting text in parallel
//
// Whether a line end ends a record depends on all quotes before it. Instead of guessing, Scan evaluates a chunk for
// every state in which it could begin: inside quotes, after a quote inside quotes, in a field, at the start of a field,
// or after an escape character. With quotes, this takes at most three passes (usually two) from quote to quote; with
// escapes, only the first line ends and the last bytes matter. For each start state, it finds the first record end and
// the end state. A Stitcher then takes the chunks in order. The end state of one chunk is the start state of the next,
// so finding the true state is only a table look-up. A split is the rest of a chunk after its first record end, and the
// next chunk up to its first record end.
package csv
