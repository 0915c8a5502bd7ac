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
	conformance.True(t, links >= 40, "the pages have only %d links", links)
}

var namedPage = regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)

func TestPagesThatCodeNamesExist(t *testing.T) {
	names := 0
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		if !strings.HasSuffix(rel, ".go") {
			return
		}
		for _, page := range namedPage.FindAllString(string(read(t, name)), -1) {
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

// TestPageTablesAndPicturesAreWellFormed finds what an editor's reflow damages: rows of tables and lines of pictures.
func TestPageTablesAndPicturesAreWellFormed(t *testing.T) {
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
	conformance.True(t, tables >= 40 && pictures != 0, "only %d tables, %d pictures: another form?", tables, pictures)
}

// hasAnchor reports whether a heading of the page has the anchor, its words in lower case joined by hyphens.
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

var navPage = regexp.MustCompile(`[a-zA-Z/-]+\.md`)

func TestEveryPageIsInTheNavigationOfTheSite(t *testing.T) {
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, "packaging", "site", "mkdocs.yml"))
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
	content := read(t, filepath.Join("..", "..", name))
	return string(content)
}

// readmeWords limits the README, counted by wc -w.
const readmeWords = 700

func TestTheReadmeIsShort(t *testing.T) {
	n := len(strings.Fields(pageText(t, "README.md")))
	conformance.True(t, n <= readmeWords,
		"README.md has %d words, %d are allowed: move what is not for every reader to a page of docs/", n, readmeWords)
}

var figure = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)

// TestTheReadmesFiguresAreThoseOfThePerformancePage looks for each in docs/internals/performance.md, with its command.
func TestTheReadmesFiguresAreThoseOfThePerformancePage(t *testing.T) {
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

// howToLines limits a how-to, which covers one task.
const howToLines = 120

var firstBlock = regexp.MustCompile("(?s)^# [^\n]+\n\n(?:[^\n]+\n\n)?```sh\n")

func TestAHowToIsShortAndBeginsWithItsCommand(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		if folder := filepath.Base(filepath.Dir(page)); folder != "how-to" && folder != "coming-from" {
			continue
		}
		checked++
		content := read(t, page)
		n := strings.Count(string(content), "\n")
		conformance.True(t, n <= howToLines, "%s has %d lines, %d are allowed", page, n, howToLines)
		conformance.Equal(t, firstBlock.Match(content), true, "%s does not begin with its command", page)
	}
	conformance.True(t, checked >= 14, "only %d pages were found", checked)
}

var (
	goTest = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" +
		`]*? -run '?([^ '"` + "`" + `\n]+)`)
	benches = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" +
		`]*? -bench '?([^ '"` + "`" + `\n]+)`)
	declareTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestEachPatternOfTestsMatchesOne: a -run or -bench that matches nothing passes, so a new name could empty a command.
func TestEachPatternOfTestsMatchesOne(t *testing.T) {
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
		text := read(t, filepath.Join(root, page))
		for _, m := range slices.Concat(goTest.FindAllStringSubmatch(string(text), -1),
			benches.FindAllStringSubmatch(string(text), -1)) {
			for _, pattern := range strings.Split(strings.ReplaceAll(m[2], "$$", "$"), "|") { // no pattern has parentheses
				if pattern == "^$" {
					continue // none, for benchmarks
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

// testsOf returns the names of the tests in a folder: all of them, or those that need no build tag.
func testsOf(t *testing.T, folder string, all bool) (names []string) {
	files := conformance.Try(filepath.Glob(filepath.Join(folder, "*_test.go"))).Must(t)
	for _, file := range files {
		source := read(t, file)
		if !all && strings.HasPrefix(string(source), "//go:build e2e") {
			continue
		}
		for _, m := range declareTest.FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
