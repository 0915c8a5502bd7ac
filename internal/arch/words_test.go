package arch

import (
	"example.com/tsimport/internal/conformance"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const (
	wordsPage    = "CONTRIBUTING.md"
	wordsHeading = "## Words that are not used"
)

// firstOfNames is in the first line of the table that also applies to names.
const firstOfNames = "`hunger`"

type ban struct {
	names   bool           // holds for names too
	phrases [][]string     // the words of each: most texts lack one of them
	words   *regexp.Regexp // as whole words, in any case
	except  *regexp.Regexp // nil without exceptions
	write   string
}

// find returns the banned words in a text, each with its line. lower is the text in lower case.
func (b *ban) find(text, lower string) (found []string, lines []int) {
	lacks := func(word string) bool { return !strings.Contains(lower, word) }
	if !slices.ContainsFunc(b.phrases, func(words []string) bool { return !slices.ContainsFunc(words, lacks) }) {
		return nil, nil
	}
	if b.except != nil {
		text = b.except.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("x", len(s)) })
	}
	for _, at := range b.words.FindAllStringIndex(text, -1) {
		found = append(found, strings.Join(strings.Fields(text[at[0]:at[1]]), " "))
		lines = append(lines, 1+strings.Count(text[:at[0]], "\n"))
	}
	return found, lines
}

func bans(t *testing.T) (bans []*ban) {
	text := read(t, filepath.Join("..", "..", wordsPage))
	_, table, found := strings.Cut(string(text), wordsHeading)
	conformance.MustTrue(t, found, "%s has no list of words that are not used", wordsPage)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		b := &ban{words: phrases(cells[1]), except: phrases(cells[3]), write: strings.TrimSpace(cells[2])}
		b.names = strings.Contains(cells[1], firstOfNames) || len(bans) > 0 && bans[len(bans)-1].names
		for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			b.phrases = append(b.phrases, strings.Fields(span[1]))
		}
		bans = append(bans, b)
	}
	conformance.MustTrue(t, len(bans) >= 10, "%s bans only %d lines of words", wordsPage, len(bans))
	return bans
}

// phrases matches the phrases of a cell, also across line ends, even those of a comment; nil if there are none.
func phrases(cell string) *regexp.Regexp {
	var all []string
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		words := strings.Fields(span[1])
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		all = append(all, strings.Join(words, `(?:[ \t]*\n[ \t]*(?://)?[ \t]*|[ \t]+)`))
	}
	if all == nil {
		return nil
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
}

// TestBannedWordsAreNotUsed reads pages, comments and names of Go files, and the texts of cmd/tsimport/commands.
func TestBannedWordsAreNotUsed(t *testing.T) {
	bans := bans(t)
	seen := map[string]bool{}
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		var texts []text
		switch {
		case strings.HasSuffix(rel, ".go"):
			texts = goTexts(t, name, path.Dir(rel) == "cmd/tsimport/commands", seen)
		case strings.HasSuffix(rel, ".md") && rel != "CHANGELOG.md":
			words := string(read(t, name))
			if rel == wordsPage {
				words, _, _ = strings.Cut(words, wordsHeading) // the list itself
			}
			texts = []text{{line: 1, words: words}}
		}
		for _, x := range texts {
			lower := strings.ToLower(x.words)
			for _, b := range bans {
				if x.name && !b.names {
					continue
				}
				found, at := b.find(x.words, lower)
				for i, words := range found {
					t.Errorf("%s:%d: %q: write %s (%s)", rel, x.line+at[i]-1, words, b.write, wordsPage)
				}
			}
		}
	})
}

// isPlaceOfWords excludes folders that only a working copy holds.
func isPlaceOfWords(folder string) bool {
	switch top, _, _ := strings.Cut(folder, "/"); top {
	case "dist", "try", "tsimport-store", "tsimport-runs", "node_modules":
		return false
	}
	return !strings.HasSuffix(folder, "/node_modules") && !strings.HasSuffix(folder, "/venv")
}

type text struct {
	line  int
	name  bool
	words string
}

var (
	files  = map[string]*ast.File{}
	places = token.NewFileSet()
)

func parsed(t *testing.T, name string) (*ast.File, *token.FileSet) {
	t.Helper()
	if files[name] == nil {
		file := conformance.Try(parser.ParseFile(places, name, nil, parser.ParseComments|parser.SkipObjectResolution)).Must(t)
		files[name] = file
	}
	return files[name], places
}

// goTexts returns the comments of a Go file, its names that are not in seen, and, if wanted, its literals.
func goTexts(t *testing.T, name string, literals bool, seen map[string]bool) (texts []text) {
	file, fset := parsed(t, name)
	add := func(at token.Pos, isName bool, words string) {
		texts = append(texts, text{fset.Position(at).Line, isName, words})
	}
	add(file.Package, true, strings.TrimSuffix(filepath.Base(name), ".go"))
	for _, group := range file.Comments {
		var lines []string
		for _, c := range group.List {
			lines = append(lines, c.Text)
		}
		add(group.Pos(), false, strings.Join(lines, "\n"))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if !seen[n.Name] {
				seen[n.Name] = true
				if isTestName(n.Name) { // a sentence
					add(n.Pos(), false, strings.TrimSpace(strings.ReplaceAll(splitName(n.Name), ";", " ")))
				} else {
					add(n.Pos(), true, splitName(n.Name))
				}
			}
		case *ast.BasicLit:
			if literals && n.Kind == token.STRING {
				if words, err := strconv.Unquote(n.Value); err == nil {
					add(n.Pos(), false, words)
				}
			}
		}
		return true
	})
	return texts
}

func isTestName(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

// splitName separates the words of a name, as in which;Lane, so that no phrase matches across them.
func splitName(name string) string {
	var words strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) || r == '_' {
			words.WriteByte(';')
		}
		words.WriteRune(r)
	}
	return words.String()
}

// realTime are the test files outside e2e that wait for the machine's clock, each with the reason against a bubble.
var realTime = map[string]string{
	"cmd/tsbench/main_test.go":                "another process makes a folder",
	"bench/write/run_test.go":                 "the system closes connections when it has the time",
	"engine/contract/assumptions_test.go":     "a real instance, whose clock is its own",
	"engine/contract/service_test.go":         "a real instance takes ten table operations a second",
	"internal/tablestore/client/slow_test.go": "a link of this machine whose buffers are full",
	"pipeline/drawnkills_test.go":             "in the bubble of drawn_test.go",
	"reader/postgres/pooler_test.go":          "a real PostgreSQL replicates, or has no session left",
}

// bubbles are the names by which a test file runs in virtual time.
var bubbles = []string{"synctest", "virtually", "virtual", "inBubble", "eachSeed"}

// waits are the functions of package time by which a test waits. Others only limit a wait.
var waits = []string{"Sleep", "Tick", "NewTicker"}

func TestOnlyTheFilesOfTheListWaitInRealTime(t *testing.T) {
	found := map[string]bool{}
	others := func(folder string) bool {
		return slices.Contains([]string{"e2e", "packaging/k8s", "packaging/oci"}, folder)
	}
	eachFile(t, others, func(name, rel string) {
		if strings.HasSuffix(name, "_test.go") && waitsInRealTime(t, name) {
			found[rel] = true
		}
	})
	got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(realTime))
	conformance.Same(t, got, want, "files that wait in real time")
}

func waitsInRealTime(t *testing.T, name string) bool {
	file, _ := parsed(t, name)
	waiting, bubble := false, false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			waiting = waiting || ok && x.Name == "time" && slices.Contains(waits, n.Sel.Name)
		case *ast.Ident:
			bubble = bubble || slices.Contains(bubbles, n.Name)
		}
		return !bubble
	})
	return waiting && !bubble
}
