package scan

import (
	"strings"
	"testing"
)

func TestAFieldIsQuotedForEachByteThatNeedsIt(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				text := strings.Repeat("\x7f", at) + string([]byte{byte(c)}) + strings.Repeat("-", length-at-1)
				quotes, ascii := lookThrough(text)
				if want := strings.ContainsAny(string([]byte{byte(c)}), ",\"\r\n"); quotes != want || ascii != (c < 0x80) {
					t.Fatalf("%q needs quotes: %v, is ASCII: %v", text, quotes, ascii)
				}
				if q, a := lookThrough([]byte(text)); q != quotes || a != ascii {
					t.Fatalf("%q as bytes needs quotes: %v, is ASCII: %v", text, q, a)
				}
			}
		}
	}
}
