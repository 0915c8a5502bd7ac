package bottleneck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEachWordHasASectionOfThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "why-slow.md"))
	if err != nil {
		t.Fatal(err)
	}
	var headings, words []string
	for line := range strings.Lines(string(text)) {
		if h, ok := strings.CutPrefix(line, "## "); ok {
			headings = append(headings, strings.TrimSpace(h))
		}
	}
	for _, w := range Words() {
		words = append(words, w.String())
	}
	if !slices.Equal(headings, words) {
		t.Errorf("docs/why-slow.md has the sections %v; the words are %v", headings, words)
	}
}
