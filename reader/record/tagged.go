package record

import "bytes"

// Tagged returns the base64 in an object with the one member base64, which is a text without escapes: so exports
// write a binary value. As the text of an object it would no longer be one.
func Tagged(object []byte) (text []byte, ok bool) {
	inner := bytes.TrimSpace(object)
	for _, token := range []string{"{", `"base64"`, ":", `"`} {
		if inner, ok = bytes.CutPrefix(inner, []byte(token)); !ok {
			return nil, false
		}
		if token != `"` {
			inner = bytes.TrimLeft(inner, " \t\r\n")
		}
	}
	text, rest, ok := bytes.Cut(inner, []byte(`"`))
	if !ok || bytes.ContainsRune(text, '\\') || !bytes.Equal(bytes.TrimSpace(rest), []byte("}")) {
		return nil, false
	}
	return text, true
}
