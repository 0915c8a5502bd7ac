package commands

import (
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/tsimport/cmd/tsimport/advise"
)

func advice() *advise.Report {
	return &advise.Report{Files: []string{"a.csv"}, Rows: 1000, Partitions: 4, Rate: 4000, Growth: 1, Candidates: []*advise.Candidate{
		{Column: "user\x1b[2J", Verdict: advise.Recommended, Reason: strings.Repeat("many words ", 20), Share: 0.5, Load: 0.25, Facts: advise.Facts{Distinct: 900}},
		{Column: "price", Verdict: advise.NotRecommended, Reason: "double"},
	}}
}

func TestAdviceForNoTerminalIsPlainAndUncut(t *testing.T) {
	var b strings.Builder
	must(t, newAdvicePrinter(&b).print(advice()))
	if strings.Contains(b.String(), "\x1b") || !strings.Contains(b.String(), "██████░░░░░░  50.0%   25.0%") || !strings.Contains(b.String(), strings.TrimSpace(strings.Repeat("many words ", 20))) {
		t.Errorf("printed:\n%s", b.String())
	}
}

func TestAdviceFoldsItsSentencesToTheTerminal(t *testing.T) {
	var b strings.Builder
	p := &advicePrinter{w: &b, width: 60, colour: true}
	must(t, p.print(advice()))
	if !strings.Contains(b.String(), "\x1b[32m recommended") || strings.Contains(b.String(), "\x1b[2J") {
		t.Errorf("printed %q", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "many words") && utf8.RuneCountInString(line) > 61 {
			t.Errorf("%d characters in a line: %s", utf8.RuneCountInString(line), line)
		}
	}
}

func TestALineWithoutSpacesIsCutWhereItMust(t *testing.T) {
	lines := fold(strings.Repeat("x", 50)+" end", 20)
	if len(lines) != 3 || lines[0] != strings.Repeat("x", 20) || lines[2] != strings.Repeat("x", 10)+" end" {
		t.Errorf("folded into %q", lines)
	}
}
