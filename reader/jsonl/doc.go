// Package jsonl parses JSON lines. A Parser returns a record for each non-blank line of a split, with fields in the
// order of Options.Columns. It follows RFC 8259 strictly: a broken line, a non-object, nesting beyond MaxDepth or a
// repeated key sets Bad. No information is lost: numbers remain literals, nested values text, and invalid Unicode is
// refused. Lines of Tablestore's command-line tool are recognised and become rows with cell timestamps. With
// Options.Wide a line describes itself; AppendWide writes such lines and IsWide recognises them. AppendWhole writes
// them for archives, to be read with Options.Archive.
package jsonl
