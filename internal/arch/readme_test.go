package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageText reads a file of the repository.
func pageText(t *testing.T, name string) string {
	t.Helper()
	content := read(t, filepath.Join("..", "..", name))
	return string(content)
}

// readmeWords bounds the README, counted as wc -w does.
const readmeWords = 700

func TestTheReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(pageText(t, "README.md"))); n > readmeWords {
		t.Errorf("README.md has %d words, %d are allowed: move what is not for every reader to a page of docs/", n, readmeWords)
	}
}

var figure = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)

// TestTheReadmesFiguresAreThoseOfThePerformancePage looks for each figure of the README's first bullets, and of its section on
// performance, in docs/performance.md, which says how it was measured.
func TestTheReadmesFiguresAreThoseOfThePerformancePage(t *testing.T) {
	readme, page := pageText(t, "README.md"), pageText(t, filepath.Join("docs", "performance.md"))
	intro, _, _ := strings.Cut(readme, "\n## ")
	_, performance, found := strings.Cut(readme, "\n## Performance\n")
	if !found {
		t.Fatal("README.md has no section Performance")
	}
	performance, _, _ = strings.Cut(performance, "\n## ")
	figures := figure.FindAllString(intro+performance, -1)
	if len(figures) < 8 {
		t.Errorf("README.md gives only the figures %q", figures)
	}
	for _, f := range figures {
		if !strings.Contains(page, f) {
			t.Errorf("README.md says %s, which docs/performance.md does not", f)
		}
	}
}

// howToLines bounds a how-to: it is one task.
const howToLines = 120

var firstBlock = regexp.MustCompile("(?s)^# [^\n]+\n\n(?:[^\n]+\n\n)?```sh\n")

// TestAHowToIsShortAndBeginsWithItsCommand checks each page for a task.
func TestAHowToIsShortAndBeginsWithItsCommand(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		if folder := filepath.Base(filepath.Dir(page)); folder != "how-to" && folder != "coming-from" {
			continue
		}
		checked++
		content := read(t, page)
		if n := strings.Count(string(content), "\n"); n > howToLines {
			t.Errorf("%s has %d lines, %d are allowed", page, n, howToLines)
		}
		if !firstBlock.Match(content) {
			t.Errorf("%s does not begin with its command", page)
		}
	}
	if checked < 14 {
		t.Errorf("only %d pages were found", checked)
	}
}
