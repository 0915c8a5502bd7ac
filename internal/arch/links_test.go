package arch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"example.com/tsimport/internal/conformance"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^) ]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestPageLinksAreValid(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text := conformance.Read(t, "", page)
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
	conformance.True(t, links >= 40, "the pages have only %d links", links)
}

var namedPage = regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)

func TestPagesNamedInCodeExist(t *testing.T) {
	names := 0
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		if !strings.HasSuffix(rel, ".go") {
			return
		}
		for _, page := range namedPage.FindAllString(string(conformance.Read(t, "", name)), -1) {
			names++
			conformance.True(t, conformance.ErrorOf(os.Stat(filepath.Join("..", "..", filepath.FromSlash(page)))) == nil,
				"%s names %s, which does not exist", rel, page)
		}
	})
	conformance.True(t, names >= 40, "only %d names of pages were found", names)
}

func pages(t *testing.T) (pages []string) {
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"*.md", filepath.Join("docs", "*.md"), filepath.Join("docs", "*", "*.md"),
		filepath.Join("docs", "*", "*", "*.md")} {
		found := conformance.Try(filepath.Glob(filepath.Join(root, pattern))).Must(t)
		pages = append(pages, found...)
	}
	return pages
}

var (
	delimiterRow = regexp.MustCompile(`^\|?(\s*:?-{3,}:?\s*\|)+\s*(:?-{3,}:?)?\s*$`)
	ruledRow     = regexp.MustCompile(`-{3,}:?\s*\|\s*:?-{3,}`)
)

// TestPageTablesAndPicturesAreWellFormed finds table rows and diagram lines that an editor's reflow has damaged.
func TestPageTablesAndPicturesAreWellFormed(t *testing.T) {
	tables, pictures := 0, 0
	for _, page := range pages(t) {
		text := conformance.Read(t, "", page)
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
	conformance.True(t, tables >= 40 && pictures != 0, "only %d tables, %d pictures: another form?", tables, pictures)
}

// hasAnchor reports whether a heading of the page has the anchor: the heading's words in lower case, joined by hyphens.
func hasAnchor(t *testing.T, page, anchor string) bool {
	text := conformance.Read(t, "", page)
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

var navPage = regexp.MustCompile(`[a-zA-Z/-]+\.md`)

func TestSiteNavigationListsAllPages(t *testing.T) {
	root := filepath.Join("..", "..")
	text := conformance.Read(t, root, "packaging/site/mkdocs.yml")
	_, nav, found := strings.Cut(string(text), "\nnav:\n")
	conformance.MustEqual(t, found, true, "mkdocs.yml has no navigation")
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

func pageText(t *testing.T, name string) string {
	t.Helper()
	content := conformance.Read(t, "../..", name)
	return string(content)
}

// readmeWords limits the number of words of the README, as counted by wc -w.
const readmeWords = 700

func TestReadmeIsShort(t *testing.T) {
	n := len(strings.Fields(pageText(t, "README.md")))
	conformance.True(t, n <= readmeWords,
		"README.md has %d words, %d are allowed: move what is not for every reader to a page of docs/", n, readmeWords)
}

var figure = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)

// TestReadmeFiguresMatchPerformancePage looks up each figure and its command in docs/internals/performance.md.
func TestReadmeFiguresMatchPerformancePage(t *testing.T) {
	readme, page := pageText(t, "README.md"), pageText(t, filepath.Join("docs", "internals", "performance.md"))
	intro, _, _ := strings.Cut(readme, "\n## ")
	_, performance, found := strings.Cut(readme, "\n## Performance\n")
	conformance.MustEqual(t, found, true, "README.md has no section Performance")
	performance, _, _ = strings.Cut(performance, "\n## ")
	figures := figure.FindAllString(intro+performance, -1)
	conformance.True(t, len(figures) >= 8, "README.md gives only the figures %q", figures)
	for _, f := range figures {
		conformance.Contains(t, page, f, "a figure of README.md")
	}
}

// howToLines limits the number of lines of a how-to, which covers one task.
const howToLines = 120

var firstBlock = regexp.MustCompile("(?s)^# [^\n]+\n\n(?:[^\n]+\n\n)?```sh\n")

func TestHowTosAreShortAndBeginWithCommand(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		if folder := filepath.Base(filepath.Dir(page)); folder != "how-to" && folder != "coming-from" {
			continue
		}
		checked++
		content := conformance.Read(t, "", page)
		n := strings.Count(string(content), "\n")
		conformance.True(t, n <= howToLines, "%s has %d lines, %d are allowed", page, n, howToLines)
		conformance.Equal(t, firstBlock.Match(content), true, "%s does not begin with its command", page)
	}
	conformance.True(t, checked >= 14, "only %d pages were found", checked)
}

var (
	goTest = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" +
		`]*? -run ['"]?([^ '"` + "`" + `\n]+)`)
	benches = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" +
		`]*? -bench ['"]?([^ '"` + "`" + `\n]+)`)
	declareTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestTestPatternsMatch checks that each pattern of -run matches a test and each pattern of -bench a benchmark.
func TestTestPatternsMatch(t *testing.T) {
	root := filepath.Join("..", "..")
	type folder struct {
		name string
		all  bool
	}
	known := map[folder][]string{}
	in := func(name string, all bool) []string {
		of := folder{name, all}
		if known[of] == nil {
			known[of] = testsOf(t, filepath.Join(root, name), all)
		}
		return known[of]
	}
	found := 0
	for _, page := range append(slices.Sorted(maps.Keys(englishPages(t, root))), "Makefile", "CONTRIBUTING.md") {
		text := conformance.Read(t, root, page)
		for _, m := range slices.Concat(goTest.FindAllStringSubmatch(string(text), -1),
			benches.FindAllStringSubmatch(string(text), -1)) {
			for _, pattern := range strings.Split(strings.ReplaceAll(m[2], "$$", "$"), "|") { // no pattern has parentheses
				if pattern == "^$" {
					continue // -run '^$' runs benchmarks only
				}
				found++
				pattern, _, _ = strings.Cut(pattern, "/")
				wanted, err := regexp.Compile(pattern)
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(page), m[2], err)
				} else if !slices.ContainsFunc(in(m[1], strings.Contains(m[0], "-tags e2e")), wanted.MatchString) {
					t.Errorf("%s: %s matches no test of ./%s without -tags e2e", filepath.Base(page), pattern, m[1])
				}
			}
		}
	}
	conformance.True(t, found >= 15, "found only %d patterns of tests", found)
}

// testsOf returns the names of the tests in a folder, including tests with the e2e build tag if all is set.
func testsOf(t *testing.T, folder string, all bool) (names []string) {
	files := conformance.Try(filepath.Glob(filepath.Join(folder, "*_test.go"))).Must(t)
	for _, file := range files {
		source := conformance.Read(t, "", file)
		if !all && strings.HasPrefix(string(source), "//go:build e2e") {
			continue
		}
		for _, m := range declareTest.FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// internals holds the pages for developers, which exist in English only.
const internals = "docs/internals/"

// englishPages maps the path of each page to that of its Chinese version. Pages for developers map to "".
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

// shape holds the parts of a page that its translation must share.
type shape struct {
	levels, blocks []string
	rows           int
	figures        []string // numbers of two or more digits outside code and links, sorted
}

var (
	headingLevel = regexp.MustCompile(`(?m)^(#+) `)
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	pageFigure   = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)
	codeComment  = regexp.MustCompile(`(?m)(^|\s)(#|//|--) .*$`)
)

func shapeOf(t *testing.T, page string) (s shape) {
	t.Helper()
	text := conformance.Read(t, "", page)
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

// without returns the figures that occur more often in a than in b, sorted.
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

// TestPagesHaveChineseVersions compares the commands, headings and figures of each page with its translation.
func TestPagesHaveChineseVersions(t *testing.T) {
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
			if filepath.Base(page) == "terms.md" { // the list of terms has no English version
				continue
			}
			english := filepath.Join(root, "docs", strings.TrimPrefix(filepath.ToSlash(page),
				filepath.ToSlash(filepath.Join(root, "docs", "zh"))+"/"))
			conformance.True(t, conformance.ErrorOf(os.Stat(english)) == nil, "%s has no English page", page)
		}
	}
}

// TestChinesePagesUseTablestoreTerms checks that the pages use the terms in docs/zh/terms.md and none that it rejects.
func TestChinesePagesUseTablestoreTerms(t *testing.T) {
	root := filepath.Join("..", "..")
	var all strings.Builder
	pages := map[string]string{}
	for _, chinese := range englishPages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, chinese))
		if err != nil {
			continue // a page without a translation, which another test reports
		}
		pages[chinese] = fence.ReplaceAllString(string(text), "")
		all.WriteString(pages[chinese])
	}
	terms := 0
	list := conformance.Read(t, root, "docs/zh/terms.md")
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
