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
	links := 0
	for _, page := range pages(t) {
		text := read(t, page)
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

// pages returns the pages of the repository.
func pages(t *testing.T) (pages []string) {
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"*.md", filepath.Join("docs", "*.md"), filepath.Join("docs", "*", "*.md"), filepath.Join("docs", "*", "*", "*.md")} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		must(t, err)
		pages = append(pages, found...)
	}
	return pages
}

var (
	delimiterRow = regexp.MustCompile(`^\|?(\s*:?-{3,}:?\s*\|)+\s*(:?-{3,}:?)?\s*$`)
	ruledRow     = regexp.MustCompile(`-{3,}:?\s*\|\s*:?-{3,}`)
)

// TestTablesAndPicturesOfThePagesHaveTheirLines finds what an editor that fills paragraphs does to a page: the row under a table's
// header runs into others, and the second line of a picture is not set in.
func TestTablesAndPicturesOfThePagesHaveTheirLines(t *testing.T) {
	tables, pictures := 0, 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, line := range strings.Split(fence.ReplaceAllString(string(text), ""), "\n") {
			if !ruledRow.MatchString(line) {
				continue
			}
			if tables++; !delimiterRow.MatchString(line) {
				t.Errorf("%s: a table has lost its lines: %.60s", filepath.Base(page), line)
			}
		}
		for _, block := range fence.FindAllString(string(text), -1) {
			lines := strings.Split(block, "\n")
			if !strings.Contains(lines[1], "─>") {
				continue
			}
			if pictures++; len(lines) < 3 || !strings.HasPrefix(lines[2], "  ") {
				t.Errorf("%s: a picture has lost its lines: %.60s", filepath.Base(page), lines[1])
			}
		}
	}
	if tables < 40 || pictures == 0 {
		t.Errorf("the pages have only %d tables and %d pictures: is their form another?", tables, pictures)
	}
}

// hasAnchor reports whether a heading of the page has the anchor: its words in lower case with hyphens between, as code hosts
// make it.
func hasAnchor(t *testing.T, page, anchor string) bool {
	text := read(t, page)
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
