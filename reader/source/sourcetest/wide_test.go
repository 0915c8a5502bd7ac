package sourcetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// brokenWide is a source that breaks a clause about cells.
type brokenWide struct {
	Wide
	about  func(*source.About)
	lacks  bool
	change func(used []int, rec *record.Record) // of every record
	adds   func(names []string) []string
}

func (b *brokenWide) About() source.About {
	about := b.Wide.About()
	add := about.AddColumns
	if about.AddColumns = nil; b.lacks {
		about.AddColumns = func(names []string) {
			if b.adds != nil {
				names = b.adds(names)
			}
			add(names)
		}
	}
	if b.about != nil {
		b.about(&about)
	}
	return about
}

func (b *brokenWide) NewParser(used []int) source.Parser {
	return brokenParser{b.Wide.NewParser(used), func(rec *record.Record) {
		if b.change != nil {
			b.change(used, rec)
		}
	}}
}

type brokenParser struct {
	source.Parser
	change func(*record.Record)
}

func (p brokenParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	return p.Parser.Parse(sp, func(rec *record.Record) {
		p.change(rec)
		each(rec)
	})
}

// brokenWides are sources of which each breaks one clause, and what the suite says of it.
var brokenWides = map[string]struct {
	source brokenWide
	says   string
}{
	"as it should be":       {brokenWide{lacks: true}, ""},
	"it does not say so":    {brokenWide{lacks: true, about: func(a *source.About) { a.Wide = false }}, "does not say Wide"},
	"it lacks nothing":      {brokenWide{}, "it has no AddColumns"},
	"it adds no columns":    {brokenWide{lacks: true, adds: func([]string) []string { return nil }}, "after AddColumns"},
	"cells of columns used": {brokenWide{lacks: true, change: func(used []int, rec *record.Record) { rec.Cells = rec.Cells[:min(len(rec.Cells), 1+len(used)*2)] }}, "has the cells"},
	"a cell without a type": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		if len(rec.Cells) > 0 {
			rec.Cells[0].Kind = record.Text
		}
	}}, "has no type"},
	"a name that is not UTF-8": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		if len(rec.Cells) > 0 {
			rec.Cells[0].Name = []byte("\xff")
		}
	}}, "is not UTF-8"},
	"a version twice": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		if len(rec.Cells) > 0 {
			rec.Cells = append(rec.Cells, rec.Cells[0])
		}
	}}, "two cells"},
	"a value and none": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		if len(rec.Cells) > 0 {
			rec.Cells = append(rec.Cells, record.Cell{Name: rec.Cells[0].Name, At: 77})
		}
	}}, "not the only one"},
	"an older version in a field": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		for i := range rec.Fields[1:] {
			if d := &rec.Fields[i+1]; d.Kind == record.Integer {
				d.Int--
			}
		}
	}}, "which was asked for"},
	"null for absent": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		for i := range rec.Fields {
			if rec.Fields[i].Kind == record.Absent {
				rec.Fields[i].Kind = record.Null
			}
		}
	}}, "which was asked for"},
}

const brokenEnv = "SOURCETEST_BROKEN_WIDE"

// The suite fails a test, so it runs in a process of its own.
func TestTheSuiteNoticesABrokenWideSource(t *testing.T) {
	if name := os.Getenv(brokenEnv); name != "" {
		Check(t, func() source.Source {
			b := brokenWides[name].source
			b.Wide = *NewWide("wide", 45, time.UnixMilli(1e12))
			return &b
		})
		return
	}
	for name, b := range brokenWides {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestTheSuiteNoticesABrokenWideSource$")
			cmd.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if (err != nil) != (b.says != "") || !strings.Contains(string(out), b.says) {
				t.Errorf("%v, want %q:\n%s", err, b.says, out)
			}
		})
	}
}
