// Package charset decodes text to UTF-8. Find returns an Encoding by name, DetectBOM by byte order mark. The mappings
// are those of golang.org/x/text; a sequence that it would replace by U+FFFD is reported with its offset, so nothing is
// replaced silently. An Encoding also says which bytes can be searched for without decoding because they are never part
// of another character. The package does not know records or files.
package charset
