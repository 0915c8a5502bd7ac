package ratelimit

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

var constantsWord = flag.String("constants", "", "constants with this word, for TestConstantsAreJudged; . is all")

// unjudged are constants of which no test here says a word when they are half or twice as large, each with why it is there.
var unjudged = map[string]string{
	"longest":     "a bound of waiting times",
	"recentMost":  "a bound of memory",
	"maxRefill":   "bounds for how long a partition that gives next to nothing is left alone",
	"measureTime": "the requests of a measurement that is made again; the first has no rate to go by",
	"longSample":  "ends a measurement of few rows, which cruise corrects soon (correctSlow)",
	"idleRows":    "keeps a partition that accepts a row now and then from being taken for a window",
	"reliefGain":  "how soon a lane finds what others had: judged by loads (TestTheLastLaneHasWhatOthersHad)",
	"provedAfter": "tells a bucket that had saved something up from a rate that has grown",
	"cutHeard":    "how far back the lowest rate of a partition that is cut is looked for",
}

// TestConstantsAreJudged halves and doubles each constant of the laws and prints which tests of this room fail by that.
func TestConstantsAreJudged(t *testing.T) {
	if *constantsWord == "" {
		t.Skip("takes hours: make constants")
	}
	word := regexp.MustCompile(*constantsWord)
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		for _, c := range constantsOf(t, name, text) {
			if !word.MatchString(c.name) {
				continue
			}
			half, twice := c.failed(t, name, text, "/2"), c.failed(t, name, text, "*2")
			fmt.Printf("%s %s: half: %s; twice: %s\n", name, c.name, half, twice)
			if why := unjudged[c.name]; half+twice == "" && why == "" {
				t.Errorf("%s: %s may be half or twice as large, and no test fails", name, c.name)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	conformance.Must(t, err)
}

// constant is a number of a law, and where its value stands in its file.
type constant struct {
	name     string
	from, to int
}

func constantsOf(t *testing.T, name string, text []byte) (all []constant) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, 0)
	must(t, err)
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				if s := s.(*ast.ValueSpec); len(s.Values) == 1 && s.Type == nil {
					all = append(all, constant{s.Names[0].Name, files.Position(s.Values[0].Pos()).Offset, files.Position(s.Values[0].End()).Offset})
				}
			}
		}
	}
	return all
}

// failed names the tests that fail when the constant is changed.
func (c *constant) failed(t *testing.T, name string, text []byte, change string) string {
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "ratelimit.test")
	must(t, os.WriteFile(changed, slices.Concat(text[:c.from], []byte("("), text[c.from:c.to], []byte(")"+change), text[c.to:]), 0o600))
	path, err := filepath.Abs(name)
	must(t, err)
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	must(t, err)
	must(t, os.WriteFile(overlay, replace, 0o600))
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary).CombinedOutput(); err != nil {
		return "does not build: " + strings.Join(strings.Fields(string(out)), " ")
	}
	out, err := exec.Command(binary, "-test.timeout", "5m").CombinedOutput()
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, m[1])
	}
	if err != nil && failed == nil {
		failed = []string{"ended early"} // a panic, or nothing comes to its end any more
	}
	return strings.Join(failed, ", ")
}
