package arch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossaryPage = "docs/glossary.md"

// emphasized are words that pages set in italics without defining them.
var emphasized = []string{"and", "and a line end", "any", "at the same time", "error", "every", "is", "new", "of allowed", "ok", "old", "text", "without", "scanned", "too few samples to tell", "file order", "dynamodb json"}

var italics = regexp.MustCompile(`(?:^|[^*\w])\*([A-Za-z][A-Za-z -]{2,}?)\*(?:[^*\w]|$)`)

// glossary returns the words that the page defines.
func glossary(t *testing.T, root string) map[string]bool {
	t.Helper()
	text := read(t, filepath.Join(root, filepath.FromSlash(glossaryPage)))
	words := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.TrimSpace(cells[1]) == "word" || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for word := range strings.SplitSeq(cells[1], ",") {
			if word = strings.TrimSpace(word); words[word] {
				t.Errorf("%s defines %s twice", glossaryPage, word)
			}
			words[word] = true
		}
	}
	return words
}

// TestTheGlossaryHasTheWordsOfAllPages checks that each word that a page introduces in italics is defined, and that pages or comments use each
// word that is defined.
func TestTheGlossaryHasTheWordsOfAllPages(t *testing.T) {
	root := filepath.Join("..", "..")
	words := glossary(t, root)
	if len(words) < 80 {
		t.Errorf("%s defines only %d words", glossaryPage, len(words))
	}
	var all strings.Builder
	introduced := 0
	for page := range englishPages(t, root) {
		text := read(t, filepath.Join(root, page))
		if page == glossaryPage {
			continue
		}
		all.Write(text)
		for _, m := range italics.FindAllStringSubmatch(codeSpan.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "x"), -1) {
			word := strings.ToLower(m[1])
			if slices.Contains(emphasized, word) {
				continue
			}
			if introduced++; !words[word] && !words[strings.TrimSuffix(word, "s")] && !words[strings.TrimSuffix(word, "ed")] && !words[strings.TrimSuffix(word, "led")] {
				t.Errorf("%s introduces %q, which %s does not define", page, word, glossaryPage)
			}
		}
	}
	if introduced < 15 {
		t.Errorf("pages introduce only %d words", introduced)
	}
	comments, err := filepath.Glob(filepath.Join(root, "*", "*", "*.go"))
	must(t, err)
	for _, name := range comments {
		text := read(t, name)
		all.Write(text)
	}
	used := strings.ToLower(all.String())
	for word := range words {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToLower(word))).MatchString(used) {
			t.Errorf("%s defines %s, which nothing uses", glossaryPage, word)
		}
	}
}
