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
				if got, want := needsQuotes(text), strings.ContainsAny(string([]byte{byte(c)}), ",\"\r\n"); got != want {
					t.Fatalf("%q needs quotes: %v", text, got)
				}
			}
		}
	}
}
