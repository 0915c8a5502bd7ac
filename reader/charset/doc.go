// Package charset decodes text to UTF-8. Find returns an Encoding by name, DetectBOM by byte order mark. It has
// the mappings of golang.org/x/text and some pairs of GB18030 that these lack. Undecodable sequences never become
// U+FFFD: their offset is returned. An Encoding also knows which bytes are never part of a multi-byte character.
package charset
