// Package charset turns text of other encodings into UTF-8: encoded bytes come in, UTF-8 goes out. The mappings are
// those of golang.org/x/text; what it would replace by U+FFFD is reported with its offset here, so that nothing is
// ever replaced without a word. It says of each encoding which bytes may be looked for without decoding, because they
// are never part of another character. It knows nothing of records or files.
package charset
