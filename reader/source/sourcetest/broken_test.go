package sourcetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

type broken struct {
	*keyedPart
	how    string
	splits int
}

// ways maps clauses to the suite's message about a source that violates them.
var ways = map[string]string{
	"a live source counts from 0 after Seek":        "sought",
	"a live source begins before the key":           "record",
	"a live source says what its content is":        "the identity is",
	"a live source states rows":                     "states its rows",
	"a live source does not say what is unique":     "which columns tell its records apart",
	"a live source has no keys":                     "has no key",
	"a key comes twice":                             "two records have the key",
	"the kind of a key is another":                  "has kind",
	"a unique column is not there":                  "it has no column",
	"a split of several has no key":                 "all splits have one or none",
	"a key is too long":                             "all splits have one or none",
	"a source that seeks directly reads everything": "it seeks directly",
	"a frozen source begins after the key":          "record",
}

func TestSuiteDetectsBrokenSource(t *testing.T) {
	if how := os.Getenv("SOURCETEST_BROKEN"); how != "" {
		Check(t, func() source.Source {
			k := NewKeyed("broken", 95)
			k.Live = strings.Contains(how, "live")
			division := conformance.Try(k.Divide(t.Context())).Must(t)
			return &broken{keyedPart: conformance.Try(k.Open(t.Context(), division)).Must(t)[0].(*keyedPart), how: how}
		})
		return
	}
	for how, says := range ways {
		detects(t, "SOURCETEST_BROKEN", how, says)
	}
}

// detects runs the running test in a separate process, because the suite fails its test. Without says, it passes.
func detects(t *testing.T, variable, how, says string) {
	test := t.Name()
	t.Run(how, func(t *testing.T) {
		t.Parallel()
		c := exec.Command(os.Args[0], "-test.run=^"+test+"$")
		c.Env = append(os.Environ(), variable+"="+how)
		out, err := c.CombinedOutput()
		conformance.True(t, (err != nil) == (says != "") && strings.Contains(string(out), says), "%v, want %q:\n%s", err,
			says, out)
	})
}

func (b *broken) About() source.About {
	a := b.keyedPart.About()
	switch b.how {
	case "a live source does not say what is unique":
		a.Unique = nil
	case "the kind of a key is another":
		a.Unique = []source.KeyColumn{{Name: "id", Kind: record.String}}
	case "a unique column is not there":
		a.Unique[0].Name = "other"
	}
	return a
}

func (b *broken) Identity() (source.Identity, error) {
	id, err := b.keyedPart.Identity()
	if b.how == "a live source says what its content is" {
		id.Content = "this"
	}
	return id, err
}

func (b *broken) Seek(to source.Place, known source.Chain) {
	b.keyedPart.Seek(to, known)
	if to.Key == nil {
		return
	}
	switch b.how {
	case "a live source begins before the key":
		b.next -= 10
	case "a frozen source begins after the key":
		b.next += 10
	case "a source that seeks directly reads everything":
		b.begin, b.next = source.Place{}, b.from
	}
}

func (b *broken) Begin() source.Place {
	if b.how == "a live source counts from 0 after Seek" {
		return source.Place{Key: b.begin.Key}
	}
	return b.keyedPart.Begin()
}

func (b *broken) Add(p source.Piece) ([]source.Split, error) {
	splits, err := b.keyedPart.Add(p)
	b.splits++
	sp := &splits[0]
	switch b.how {
	case "a live source states rows":
		sp.Rows = int64(len(p.(keyedPage)))
	case "a live source has no keys":
		sp.Key = nil
	case "a split of several has no key":
		if b.splits == 2 {
			sp.Key = nil
		}
	case "a key is too long":
		sp.Key = append(sp.Key, make([]byte, source.MaxKey)...)
	}
	return splits, err
}

func (b *broken) NewParser(used []int) source.Parser {
	if b.how == "a key comes twice" {
		return twice{b.keyedPart.NewParser(used)}
	}
	return b.keyedPart.NewParser(used)
}

// twice is a parser that gives the key 0 to the first record of each split.
type twice struct{ source.Parser }

func (t twice) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	return t.Parser.Parse(sp, func(rec *record.Record) {
		if rec.Span.Record == 0 {
			rec.Fields[0].Int = 0
		}
		each(rec)
	})
}

func TestKeyedRowsKeepContract(t *testing.T) {
	for _, live := range []bool{false, true} {
		k := NewKeyed("keyed", 95)
		k.Live, k.Parts = live, 2
		division := conformance.Try(k.Divide(t.Context())).Must(t)
		for part := range 2 {
			Check(t, func() source.Source {
				return conformance.Try(k.Open(t.Context(), division)).Must(t)[part]
			})
		}
	}
}

func TestRowsKeepContract(t *testing.T) {
	Check(t, func() source.Source {
		r := NewRows("rows", 95)
		r.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged}}
		return r
	})
}

func TestWideRowsKeepContract(t *testing.T) {
	Check(t, func() source.Source {
		w := NewWide("wide", 95, time.UnixMilli(1e12))
		w.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged}}
		return w
	})
}

func TestRowsWithUniqueKeysKeepContract(t *testing.T) {
	Check(t, func() source.Source {
		r := NewRows("rows", 95)
		r.Unique = true
		return r
	})
}

type brokenWide struct {
	Wide
	about  func(*source.About)
	lacks  bool
	change func(used []int, rec *record.Record) // called for each record
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

// onCells returns a source that applies change to each record with cells.
func onCells(change func(rec *record.Record)) brokenWide {
	return brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		if len(rec.Cells) > 0 {
			change(rec)
		}
	}}
}

// brokenWides are sources that violate one clause each, with the suite's message about it.
var brokenWides = map[string]struct {
	source brokenWide
	says   string
}{
	"as it should be":    {brokenWide{lacks: true}, ""},
	"it does not say so": {brokenWide{lacks: true, about: func(a *source.About) { a.Wide = false }}, "does not say Wide"},
	"it lacks nothing":   {brokenWide{}, "it has no AddColumns"},
	"it adds no columns": {brokenWide{lacks: true, adds: func([]string) []string { return nil }}, "after AddColumns"},
	"cells of the used": {brokenWide{lacks: true, change: func(used []int,
		rec *record.Record) {
		rec.Cells = rec.Cells[:min(len(rec.Cells), 1+len(used)*2)]
	}}, "has the cells"},
	"a typeless cell": {onCells(func(rec *record.Record) { rec.Cells[0].Kind = record.Text }), "has no type"},
	"a bad name":      {onCells(func(rec *record.Record) { rec.Cells[0].Name = []byte("\xff") }), "is not UTF-8"},
	"a version twice": {onCells(func(rec *record.Record) { rec.Cells = append(rec.Cells, rec.Cells[0]) }), "two cells"},
	"a value and none": {onCells(func(rec *record.Record) {
		rec.Cells = append(rec.Cells, record.Cell{Name: rec.Cells[0].Name, At: 77})
	}), "not the only one"},
	"an older version in a field": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		for i := range rec.Fields[1:] {
			if d := &rec.Fields[i+1]; d.Kind == record.Integer {
				d.Int--
			}
		}
	}}, "in the requested column"},
	"null for absent": {brokenWide{lacks: true, change: func(_ []int, rec *record.Record) {
		for i := range rec.Fields {
			if rec.Fields[i].Kind == record.Absent {
				rec.Fields[i].Kind = record.Null
			}
		}
	}}, "in the requested column"},
}

func TestSuiteDetectsBrokenWideSource(t *testing.T) {
	if name := os.Getenv("SOURCETEST_BROKEN_WIDE"); name != "" {
		Check(t, func() source.Source {
			b := brokenWides[name].source
			b.Wide = *NewWide("wide", 45, time.UnixMilli(1e12))
			return &b
		})
		return
	}
	for name, b := range brokenWides {
		detects(t, "SOURCETEST_BROKEN_WIDE", name, b.says)
	}
}
