package arch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goTest      = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" + `]*? -run '?([^ '"` + "`" + `\n]+)`)
	benches     = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" + `]*? -bench '?([^ '"` + "`" + `\n]+)`)
	declareTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestEachPatternOfTestsMatchesOne looks at the go test commands of the Makefile and the pages: go test passes when its -run or
// -bench matches nothing, so a test that is renamed would leave the command without one.
func TestEachPatternOfTestsMatchesOne(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	must(t, err)
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
	for _, page := range append(pages, filepath.Join(root, "Makefile"), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text := read(t, page)
		for _, m := range slices.Concat(goTest.FindAllStringSubmatch(string(text), -1), benches.FindAllStringSubmatch(string(text), -1)) {
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
					t.Errorf("%s: %s matches no test or benchmark of ./%s, or only tests that need -tags e2e", filepath.Base(page), pattern, m[1])
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found only %d patterns of tests", found)
	}
}

// testsOf returns the names of the tests in a folder: all of them, or those that need no tag.
func testsOf(t *testing.T, folder string, all bool) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	must(t, err)
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
