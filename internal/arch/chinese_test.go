package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// internals holds the pages for developers, which exist in English only.
const internals = "docs/internals/"

func read(t *testing.T, name string) []byte {
	t.Helper()
	return conformance.Try(os.ReadFile(name)).Must(t)
}

// englishPages maps the pages for users to their Chinese pages, "" for none, by their paths in the repository.
func englishPages(t *testing.T, root string) map[string]string {
	t.Helper()
	both := map[string]string{"README.md": "README.zh.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found := conformance.Try(filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))).Must(t)
		for _, page := range found {
			rel := conformance.Try(filepath.Rel(root, page)).Must(t)
			if rel = filepath.ToSlash(rel); strings.HasPrefix(rel, internals) {
				both[rel] = ""
			} else if !strings.HasPrefix(rel, "docs/zh/") {
				both[rel] = "docs/zh/" + strings.TrimPrefix(rel, "docs/")
			}
		}
	}
	return both
}

// shape is what a page shares with its translation: levels of headings, code without comments, rows of tables.
type shape struct {
	levels, blocks []string
	rows           int
	figures        []string // outside of code and links, of two digits or more, sorted
}

var (
	headingLevel = regexp.MustCompile(`(?m)^(#+) `)
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	pageFigure   = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)
	codeComment  = regexp.MustCompile(`(?m)(^|\s)(#|//|--) .*$`)
)

func shapeOf(t *testing.T, page string) (s shape) {
	t.Helper()
	text := read(t, page)
	for _, block := range fence.FindAllString(string(text), -1) {
		s.blocks = append(s.blocks, codeComment.ReplaceAllString(block, "$1$2"))
	}
	rest := fence.ReplaceAllString(string(text), "")
	for _, m := range headingLevel.FindAllStringSubmatch(rest, -1) {
		s.levels = append(s.levels, m[1])
	}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "|") {
			s.rows++
		}
	}
	s.figures = pageFigure.FindAllString(linkTarget.ReplaceAllString(rest, "]"), -1)
	slices.Sort(s.figures)
	return s
}

// without returns the figures of a, sorted, that b has less often.
func without(a, b []string) (left []string) {
	for _, figure := range a {
		if i := slices.Index(b, figure); i >= 0 {
			b = slices.Delete(slices.Clone(b), i, i+1)
		} else {
			left = append(left, figure)
		}
	}
	return left
}

// TestEveryPageHasChineseVersion: pages outside internals have a translation of equal commands, headings and figures.
func TestEveryPageHasChineseVersion(t *testing.T) {
	root := filepath.Join("..", "..")
	both := englishPages(t, root)
	for english, chinese := range both {
		if chinese == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, chinese)); err != nil {
			t.Errorf("%s has no Chinese page: %v", english, err)
			continue
		}
		a, b := shapeOf(t, filepath.Join(root, english)), shapeOf(t, filepath.Join(root, chinese))
		conformance.Same(t, a.levels, b.levels, "headings of %s and %s", english, chinese)
		conformance.Equal(t, a.rows, b.rows, "rows of tables of %s and of %s", english, chinese)
		got := without(a.figures, b.figures)
		conformance.True(t, got == nil, "%s does not have the figures of %s: %v", chinese, english, got)
		got = without(b.figures, a.figures)
		conformance.True(t, got == nil, "%s has the figures, which %s does: %v", chinese, english, got)
		for i := range max(len(a.blocks), len(b.blocks)) {
			if i >= len(a.blocks) || i >= len(b.blocks) || a.blocks[i] != b.blocks[i] {
				t.Errorf("%s: code block %d of %d differs from %s, of %d", chinese, i+1, len(b.blocks), english, len(a.blocks))
				break
			}
		}
	}
	for _, pattern := range []string{"docs/zh/*.md", "docs/zh/*/*.md"} {
		found := conformance.Try(filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))).Must(t)
		for _, page := range found {
			if filepath.Base(page) == "terms.md" { // the list of terms has nothing to translate
				continue
			}
			english := filepath.Join(root, "docs", strings.TrimPrefix(filepath.ToSlash(page),
				filepath.ToSlash(filepath.Join(root, "docs", "zh"))+"/"))
			conformance.True(t, conformance.ErrorOf(os.Stat(english)) == nil, "%s has no English page", page)
		}
	}
}

// TestChinesePagesUseTablestoresTerms: every Chinese word of the list of terms is used somewhere, no rejected one is.
func TestChinesePagesUseTablestoresTerms(t *testing.T) {
	root := filepath.Join("..", "..")
	var all strings.Builder
	pages := map[string]string{}
	for _, chinese := range englishPages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, chinese))
		if err != nil {
			continue // none, or another test says so
		}
		pages[chinese] = fence.ReplaceAllString(string(text), "")
		all.WriteString(pages[chinese])
	}
	terms := 0
	list := read(t, filepath.Join(root, "docs", "zh", "terms.md"))
	for line := range strings.Lines(string(list)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[3]), "不写") {
			continue
		}
		terms++
		conformance.Contains(t, all.String(), strings.TrimSpace(cells[2]), "no page uses (%s)", strings.TrimSpace(cells[1]))
		for _, other := range strings.Split(strings.TrimPrefix(strings.TrimSpace(cells[3]), "不写"), "、") {
			other = strings.TrimSpace(other)
			for page, text := range pages {
				conformance.True(t, other == "" || !strings.Contains(text, other),
					"%s: %s: the term is %s", page, other, strings.TrimSpace(cells[2]))
			}
		}
	}
	conformance.True(t, terms >= 15, "the list binds only %d terms", terms)
}
