package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// promise is the sentence of every room that another module can import, except the root.
const promise = "This package carries no compatibility promise: only the module's root package does."

// TestOnlyTheRootPromisesCompatibility looks at the documentation of every room that another module can import.
func TestOnlyTheRootPromisesCompatibility(t *testing.T) {
	for room := range arrows {
		if room == "." || strings.HasPrefix(room, "cmd/") || room == "internal" || strings.HasPrefix(room, "internal/") {
			continue
		}
		name := filepath.Join("..", "..", room, "doc.go")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(text), "\n// "+promise+"\npackage ") {
			t.Errorf("%s/doc.go does not end with: %s", room, promise)
		}
	}
}
