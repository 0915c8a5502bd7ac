// Package jsonl parses JSON lines. A Parser takes a split of complete lines and returns a record for each non-blank
// line, with its fields in the order of Options.Columns. It follows RFC 8259 strictly: a line that breaks it, is not an
// object, nests deeper than MaxDepth or repeats a key gives a record with Bad set. Nothing is lost: numbers stay
// literals, nested values stay text, and text that is not Unicode is refused, never replaced. Lines exported by the
// vendor's command-line tool are recognised by their shape and become rows with timestamps of cells. With Options.Wide
// each line is a row that describes itself, as AppendWide writes it; IsWide recognises such lines. AppendWhole writes
// them for archives, which Options.Archive reads. The package does not know files or the types of tables.
package jsonl
