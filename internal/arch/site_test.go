package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var navPage = regexp.MustCompile(`[a-zA-Z/-]+\.md`)

// TestEveryPageIsInTheNavigationOfTheSite compares the navigation with the pages of docs/.
func TestEveryPageIsInTheNavigationOfTheSite(t *testing.T) {
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, "packaging", "site", "mkdocs.yml"))
	_, nav, found := strings.Cut(string(text), "\nnav:\n")
	if !found {
		t.Fatal("mkdocs.yml has no navigation")
	}
	times := map[string]int{}
	for _, page := range navPage.FindAllString(nav, -1) {
		times[page]++
	}
	for page := range englishPages(t, root) {
		if name, isDoc := strings.CutPrefix(page, "docs/"); isDoc && times[name] != 1 {
			t.Errorf("packaging/site/mkdocs.yml: %s is %d times in the navigation", page, times[name])
		}
	}
}
