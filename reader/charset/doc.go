// Package charset decodes text to UTF-8. Find returns an Encoding by name, DetectBOM by byte order mark. The mappings
// are those of golang.org/x/text, but nothing is replaced by U+FFFD: undecodable sequences are reported by their
// offset. An Encoding also says which bytes are never part of another character.
package charset
