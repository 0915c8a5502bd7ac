// Package jsonl parses JSON lines: a split of whole lines comes in, a record for each line that is not blank goes out,
// its fields in the order of Options.Columns. It promises RFC 8259 to the letter (a line that breaks it, is not an object,
// nests deeper than MaxDepth or names a key twice is a record with Bad set) and that nothing is lost: numbers stay
// literals, nested values stay text, and what is not Unicode text is refused, never replaced. Lines that the vendor's
// command line tool exports are recognised by their shape, and become rows with the time stamps of their cells. It
// knows nothing of files, of where lines are cut, or of the types of tables.
package jsonl
