package sourcetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Check tests the contract of source.Source. open must return the same source, unread, with at least two splits.
func Check(t *testing.T, open func() source.Source) {
	t.Helper()
	var whole reading
	with := func(t *testing.T, do func(s source.Source)) {
		t.Helper()
		s := open()
		defer func() {
			for range 2 { // closing a source twice is allowed
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		}()
		do(s)
	}
	with(t, func(s source.Source) { whole = readAll(t, s, nil) })
	if len(whole.records) == 0 || len(whole.places) < 2 {
		t.Fatalf("%d records in %d splits: give the source more", len(whole.records), len(whole.places))
	}

	t.Run("a sample shows the first records and does not move the reading", func(t *testing.T) {
		with(t, func(s source.Source) {
			var sampled []string
			read, err := s.Sample(1000, s.About().Columns, func(rec *record.Record) { sampled = append(sampled, text(rec)) })
			if err != nil || read == 0 || len(sampled) == 0 {
				t.Fatalf("%d bytes, %d records: %v", read, len(sampled), err)
			}
			if !slices.Equal(sampled, whole.records[:min(len(sampled), len(whole.records))]) {
				t.Error("the sampled records are not the first ones")
			}
			conformance.Must(t, s.Suspend())
			same(t, readAll(t, s, nil), whole, source.Place{})
		})
	})

	t.Run("identity is the same in a later process", func(t *testing.T) {
		with(t, func(one source.Source) {
			with(t, func(other source.Source) {
				a, err1 := one.Identity()
				b, err2 := other.Identity()
				if err := errors.Join(err1, err2); err != nil || a != b {
					t.Errorf("identity %+v, later %+v: %v", a, b, err)
				}
				if live := one.About().Live; live != (a.Schema != "") || live && (a.Version != "" || a.Content != "") {
					t.Errorf("live is %t, but the identity is %+v", live, a)
				}
				if a, b := one.About(), other.About(); a.Name != b.Name || a.Bytes != b.Bytes ||
					!slices.Equal(a.Columns, b.Columns) {
					t.Errorf("source %+v, later %+v", a, b)
				}
			})
		})
	})

	t.Run("records do not depend on cuts", func(t *testing.T) {
		for _, size := range []int{1000, 10 << 20} {
			with(t, func(s source.Source) {
				s.SetSplitBytes(size)
				same(t, readAll(t, s, nil), whole, source.Place{})
			})
		}
	})

	t.Run("splits can be parsed in any order, repeatedly and by any parser", func(t *testing.T) {
		with(t, func(s source.Source) {
			r := readAll(t, s, rand.New(rand.NewPCG(1, 1)))
			same(t, r, whole, source.Place{})
		})
	})

	t.Run("unused columns do not affect the others", func(t *testing.T) {
		with(t, func(s source.Source) {
			splits, err := cut(s)
			conformance.Must(t, err)
			columns := len(s.About().Columns)
			if columns == 0 {
				return // records describe themselves, so there is no column unless requested
			}
			last := columns - 1
			p := s.NewParser([]int{last})
			defer p.Close()
			n := 0
			for _, sp := range splits {
				_, _, err := p.Parse(sp, func(rec *record.Record) {
					if rec.Bad == nil && len(rec.Fields) == columns && datum(&rec.Fields[last]) != whole.last[n] {
						t.Errorf("record %d: %s, want %s", n, datum(&rec.Fields[last]), whole.last[n])
					}
					n++
				})
				conformance.Must(t, err)
			}
			if n != len(whole.records) {
				t.Errorf("%d records, want %d", n, len(whole.records))
			}
		})
	})

	t.Run("a record has its cells, whatever columns are requested", func(t *testing.T) { checkCells(t, open) })

	t.Run("reading can begin at, or before, every place reached", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for i, place := range whole.places {
			if i != 1 && i < len(whole.places)-1 && rnd.IntN(len(whole.places)) > 3 {
				continue
			}
			with(t, func(s source.Source) {
				s.Seek(place, whole.chain)
				r := readAll(t, s, nil)
				if begin := r.places[0]; begin.Record > place.Record {
					t.Fatalf("sought %+v, began at %+v", place, begin)
				}
				same(t, r, whole, r.places[0])
				if s.About().Seeking == source.SeeksDirectly && i > len(whole.places)/2 && r.pieces > whole.pieces*2/3+1 {
					t.Errorf("it seeks directly, but from split %d of %d on reads %d of %d pieces", i, len(whole.places), r.pieces,
						whole.pieces)
				}
				if !reflect.DeepEqual(r.chain, whole.chain) {
					t.Errorf("from %+v the chain is %v, want %v", place, r.chain, whole.chain)
				}
			})
		}
	})

	with(t, func(s source.Source) {
		if s.About().Live {
			t.Run("a live source begins at a key and any number", func(t *testing.T) { checkLive(t, open, whole) })
		}
		if s.About().Unique != nil {
			t.Run("no two records have the same key", func(t *testing.T) { checkUnique(t, s) })
		}
	})

	with(t, func(s source.Source) {
		if r, ok := s.(source.Random); ok && r.Divisible() {
			t.Run("stretches can be loaded in any order", func(t *testing.T) { checkRandom(t, r, whole) })
		}
	})
}

// checkLive begins at every place that a reading reached, with another record number.
func checkLive(t *testing.T, open func() source.Source, whole reading) {
	const counted = 1 << 30
	for i, place := range whole.places {
		s := open()
		if r, ok := s.(source.Random); ok && r.Anywhere() {
			t.Fatal("splits of a live source cannot be read in any order")
		}
		if len(s.About().Unique) == 0 {
			t.Fatal("a live source does not say which columns tell its records apart")
		}
		if i > 0 && place.Key == nil {
			t.Fatalf("split %d of a live source has no key", i)
		}
		to := source.Place{Record: counted, Key: place.Key}
		s.Seek(to, source.Chain{})
		r := readAll(t, s, nil)
		if begin := s.Begin(); begin.Record != counted || string(begin.Key) != string(place.Key) {
			t.Errorf("sought %+v, but began at %+v", to, begin)
		}
		same(t, r, whole, place)
		conformance.Must(t, s.Close())
	}
}

func checkUnique(t *testing.T, s source.Source) {
	splits, err := cut(s)
	conformance.Must(t, err)
	var places []int
	unique := s.About().Unique
	for _, k := range unique {
		place := slices.Index(s.About().Columns, k.Name)
		if place < 0 {
			t.Fatalf("it has no column %s", k.Name)
		}
		places = append(places, place)
	}
	p := s.NewParser(places)
	defer p.Close()
	seen := map[string]bool{}
	for _, sp := range splits {
		if _, _, err := p.Parse(sp, func(rec *record.Record) {
			if rec.Bad != nil {
				return
			}
			key, text := make([]record.Datum, len(unique)), ""
			for n, place := range places {
				key[n] = rec.Fields[place]
				text += datum(&key[n])
				if kind := key[n].Kind; kind != unique[n].Kind {
					t.Errorf("column %s of a record has kind %d, want %d", unique[n].Name, kind, unique[n].Kind)
				}
			}
			if seen[text] {
				t.Errorf("two records have the key %s", text)
			}
			seen[text] = true
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func checkRandom(t *testing.T, s source.Random, whole reading) {
	splits, err := cut(s)
	conformance.Must(t, err)
	p := s.NewParser(all(s))
	parse := func(sp source.Split) (records []string) {
		n, _, err := p.Parse(sp, func(rec *record.Record) { records = append(records, text(rec)) })
		if err != nil || n != len(records) || sp.Rows > 0 && int64(n) != sp.Rows {
			t.Fatalf("%d of %d records: %v", n, sp.Rows, err)
		}
		return records
	}
	stretches := make([]source.Stretch, len(splits))
	var before int64
	for i, sp := range splits {
		n := int64(len(parse(sp)))
		stretches[i] = source.Stretch{Record: before, Records: n, Offset: sp.Offset, Bytes: int64(len(sp.Data))}
		before += n
	}
	conformance.Must(t, errors.Join(p.Close(), s.Close(), s.Reopen()))
	p = s.NewParser(all(s))
	records := make([][]string, len(splits))
	for _, i := range rand.New(rand.NewPCG(2, 1)).Perm(len(splits)) {
		loaded, err := s.LoadStretch(stretches[i])
		conformance.Must(t, err)
		for _, sp := range loaded {
			records[i] = append(records[i], parse(sp)...)
		}
	}
	conformance.Must(t, errors.Join(p.Close(), s.Finished()))
	if got := slices.Concat(records...); !slices.Equal(got, whole.records) {
		t.Errorf("in random order %d records are read, want the same %d as in order", len(got), len(whole.records))
	}
}

type reading struct {
	records []string
	last    []string       // last field of each record
	places  []source.Place // places of the splits
	pieces  int
	chain   source.Chain
}

// same checks that a reading from begin gave the same as the end of a reading of the whole source.
func same(t *testing.T, got, whole reading, begin source.Place) {
	t.Helper()
	if want := whole.records[begin.Record:]; !slices.Equal(got.records, want) {
		for i := range min(len(got.records), len(want)) {
			if got.records[i] != want[i] {
				t.Fatalf("record %d is %s, want %s", int(begin.Record)+i, got.records[i], want[i])
			}
		}
		t.Fatalf("%d records from %+v, want %d", len(got.records), begin, len(want))
	}
}

func all(s source.Source) (used []int) {
	for i := range s.About().Columns {
		used = append(used, i)
	}
	return used
}

type counting struct {
	source.Source
	pieces int
}

func (c *counting) Next() (source.Piece, error) {
	p, err := c.Source.Next()
	if err == nil {
		c.pieces++
	}
	return p, err
}

func cut(s source.Source) (splits []source.Split, err error) {
	for split, err := range source.Splits(s) {
		if err != nil {
			return splits, err
		}
		splits = append(splits, split)
	}
	return splits, nil
}

// readAll reads a source to its end. With rnd, it parses the splits twice, in random order.
func readAll(t *testing.T, s source.Source, rnd *rand.Rand) (r reading) {
	t.Helper()
	counted := &counting{Source: s}
	splits, err := cut(counted)
	r.pieces = counted.pieces
	conformance.Must(t, err)
	order := make([]int, len(splits))
	for i := range order {
		order[i] = i
	}
	if rnd != nil {
		order = append(rnd.Perm(len(splits)), rnd.Perm(len(splits))...)
	}
	records, last, lines := make([][]string, len(splits)), make([][]string, len(splits)), make([]int, len(splits))
	p := s.NewParser(all(s))
	for _, i := range order {
		if rnd != nil && rnd.IntN(2) == 0 {
			conformance.Must(t, p.Close())
			p = s.NewParser(all(s))
		}
		records[i], last[i] = nil, nil
		n, l, err := p.Parse(splits[i], func(rec *record.Record) {
			if int(rec.Span.Record) != len(records[i]) {
				t.Errorf("split %d: record %d is marked as %d", i, len(records[i]), rec.Span.Record)
			}
			records[i] = append(records[i], text(rec))
			field := ""
			if len(rec.Fields) > 0 {
				field = datum(&rec.Fields[len(rec.Fields)-1])
			}
			last[i] = append(last[i], field)
		})
		lines[i] = l
		if sp := splits[i]; err != nil || n != len(records[i]) || sp.Rows > 0 && sp.Rows != int64(n) {
			t.Fatalf("split %d: %d records, %d came, %d were stated: %v", i, n, len(records[i]), sp.Rows, err)
		}
	}
	conformance.Must(t, p.Close())
	at := s.Begin()
	for i, sp := range splits {
		if sp.Rows > 0 && sp.First != at.Record {
			t.Errorf("split %d begins with record %d, want %d", i, sp.First, at.Record)
		}
		if keyed := sp.Key != nil; i > 0 && keyed != (splits[i-1].Key != nil) || len(sp.Key) > source.MaxKey {
			t.Errorf("split %d has a key of %d bytes: all splits have one or none, of at most %d", i, len(sp.Key), source.MaxKey)
		}
		if s.About().Live && sp.Rows > 0 {
			t.Errorf("split %d of a live source states its rows", i)
		}
		at.Offset, at.Key = sp.Offset, sp.Key
		r.places = append(r.places, at)
		at.Record, at.Line = at.Record+int64(len(records[i])), at.Line+int64(lines[i])
	}
	r.records, r.last = slices.Concat(records...), slices.Concat(last...)
	if chain := s.About().Chain; chain != nil {
		r.chain = chain()
	}
	return r
}

func text(rec *record.Record) string {
	if rec.Bad != nil {
		return fmt.Sprintf("bad: %s", rec.Bad.Code)
	}
	var s []byte
	for i := range rec.Fields {
		s = appendDatum(s, &rec.Fields[i])
	}
	for _, at := range rec.Timestamps {
		s = fmt.Appendf(s, " at %d", at)
	}
	for i := range rec.Cells {
		c := &rec.Cells[i]
		s = fmt.Appendf(s, " cell %q at %d ", c.Name, c.At)
		s = appendDatum(s, &c.Datum)
	}
	return string(s)
}

func datum(d *record.Datum) string { return string(appendDatum(nil, d)) }

func appendDatum(s []byte, d *record.Datum) []byte {
	s = append(s, byte('a'+d.Kind), ' ')
	if d.Quoted {
		s = append(s, "quoted "...)
	}
	if d.Local {
		s = append(s, "local "...)
	}
	for _, n := range []int64{int64(d.Scale), int64(d.Unit), d.Int, int64(math.Float64bits(d.Double))} {
		s = append(strconv.AppendInt(s, n, 10), ' ')
	}
	return append(append(s, d.Bytes...), '|')
}
