// Package jsonl parses JSON lines. A Parser returns a record for each non-blank line of a split, with fields in the
// order of Options.Columns. It follows RFC 8259 strictly: a broken line, a non-object, nesting beyond MaxDepth or a
// repeated key sets Bad. Nothing is lost: numbers stay literals, nested values text; text that is not Unicode is
// refused. Lines of the vendor's command-line tool are recognised and become rows with cell timestamps. With
// Options.Wide a line describes itself, as AppendWide writes it and IsWide recognises. AppendWhole writes such lines
// for archives, read by Options.Archive.
package jsonl
