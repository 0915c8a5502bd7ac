// Package csv reads delimited text. Scan and a Stitcher take chunks cut anywhere and return splits of whole records; a
// Parser returns a split's records, which do not depend on the cuts. It knows no encodings unlike UTF-8.
//
// # How a text is cut in parallel
//
// Whether a line end ends a record depends on all quotes before it. Instead of guessing, Scan works out a chunk for
// every state it could begin in: inside quotes, after a quote inside quotes, in a field, at the start of a field, after
// an escape character. With quotes this takes at most three passes (usually two) that jump from quote to quote, with
// escapes one that jumps from line end to line end. They give the first record end and the end state for each start
// state, and need nothing from the chunks before. A Stitcher then takes the chunks in order: the end state of one is
// the start state of the next, so the true one is known at the cost of a table look-up. A split is the rest of one
// chunk after its first record end, and the head of the next up to its first record end.
package csv
