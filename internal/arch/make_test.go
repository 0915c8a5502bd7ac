package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest      = regexp.MustCompile(`(?:\$\(GO\)|go) test (?:[^\n` + "`" + `]* )?\./([a-z0-9_/]+)\b[^\n` + "`" + `]*? -run '?([^ '"` + "`" + `\n]+)`)
	declareTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestEachPatternOfTestsMatchesOne looks at the go test commands of the Makefile and the pages: go test passes when its -run
// matches nothing, so a test that is renamed would leave the command without one.
func TestEachPatternOfTestsMatchesOne(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, filepath.Join(root, "Makefile"), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goTest.FindAllStringSubmatch(string(text), -1) {
			for _, pattern := range strings.Split(strings.ReplaceAll(m[2], "$$", "$"), "|") { // no pattern has parentheses
				if pattern == "^$" {
					continue // none, for benchmarks
				}
				found++
				pattern, _, _ = strings.Cut(pattern, "/")
				wanted, err := regexp.Compile(pattern)
				if err != nil {
					t.Errorf("%s: -run %s: %v", filepath.Base(page), m[2], err)
				} else if !matchesTest(t, filepath.Join(root, m[1]), wanted, strings.Contains(m[0], "-tags e2e")) {
					t.Errorf("%s: -run %s matches no test of ./%s, or only tests that need -tags e2e", filepath.Base(page), pattern, m[1])
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found only %d patterns of tests", found)
	}
}

// matchesTest reports whether a folder has a test with such a name, among all tests or those that need no tag.
func matchesTest(t *testing.T, folder string, wanted *regexp.Regexp, all bool) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !all && strings.HasPrefix(string(source), "//go:build e2e") {
			continue
		}
		for _, m := range declareTest.FindAllSubmatch(source, -1) {
			if wanted.Match(m[1]) {
				return true
			}
		}
	}
	return false
}
