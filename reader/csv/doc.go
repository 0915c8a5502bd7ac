// Package csv reads delimited text. Scan and a Stitcher take chunks of bytes, cut anywhere, and return splits of whole
// records; a Parser returns the records of a split. The records do not depend on where the text was cut, even inside quotes,
// and no bytes between two records are left out. The package knows nothing of files, of types, or of encodings that are not
// compatible with UTF-8.
//
// # How a text is cut in parallel
//
// Whether a line end ends a record depends on the quotes before it, back to the beginning of the file. Instead of
// guessing, Scan works out a chunk for every state it could begin in: inside quotes, after a quote inside quotes, in a
// field, at the start of a field, after an escape character. With quotes they need at most three passes (usually two) that
// jump from quote to quote, with escapes one that jumps from line end to line end; they give
// for each state the first record end and the state at the chunk's end, and need nothing from the chunks before. A
// Stitcher then takes the chunks in order: the state at the end of one is the state at the start of the next, so which
// of them is true is known, not guessed, when the chunk's turn comes, at the cost of a table look-up. A split is the
// rest of one chunk after its first record end, and the head of the next up to its first record end.
package csv
