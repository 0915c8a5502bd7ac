package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^) ]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestLinksOfThePagesLeadSomewhere checks each link from a page to a file of the repository, and that there is a heading for
// its anchor.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", filepath.Join("docs", "*.md")} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageLink.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if name != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link %s leads to no file", filepath.Base(page), m[1])
			} else if anchor != "" && !hasAnchor(t, to, anchor) {
				t.Errorf("%s: link %s: no heading of %s has this anchor", filepath.Base(page), m[1], filepath.Base(to))
			}
		}
	}
	if links < 40 {
		t.Errorf("the pages have only %d links", links)
	}
}

// hasAnchor reports whether a heading of the page has the anchor: its words in lower case with hyphens between, as code hosts
// make it.
func hasAnchor(t *testing.T, page, anchor string) bool {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range pageHeading.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		made := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if made == anchor {
			return true
		}
	}
	return false
}
