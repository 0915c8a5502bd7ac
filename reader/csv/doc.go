// Package csv reads delimited text. Scan and a Stitcher take chunks cut anywhere and return splits of whole records. A
// Parser returns a split's records, which do not depend on the cuts. The text must be in UTF-8 or a similar encoding.
//
// # How a text is cut in parallel
//
// Whether a line end ends a record depends on all quotes before it. Instead of guessing, Scan evaluates a chunk for
// every state it could begin in: inside quotes, after a quote inside quotes, in a field, at the start of a field, after
// an escape character. With quotes this takes at most three passes (usually two) that jump from quote to quote; with
// escapes, one pass that jumps from line end to line end. The result is the first record end and the end state for each
// start state, found without the chunks before. A Stitcher then takes the chunks in order. The end state of one chunk
// is the start state of the next, so the true state costs only a table look-up. A split is the rest of a chunk after
// its first record end, plus the head of the next chunk up to its first record end.
package csv
