package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"example.com/tsimport/shuffle/readorder"
	gocmp "github.com/google/go-cmp/cmp"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	conformance.Must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func ask(inputs ...string) *plan.Request {
	r := &plan.Request{Inputs: inputs, Memory: 1 << 30,
		Target: plan.Target{Table: "t", Create: true, Absent: true, Key: []table.KeyColumn{{Name: "id", Type: table.String}}}}
	r.Read.SplitBytes, r.Read.Parsers = 256, 3
	return r
}

// flow returns the flow of a request into partitions that begin at the keys.
func flow(t *testing.T, r *plan.Request, keys ...string) *Flow {
	t.Helper()
	p := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
	t.Cleanup(p.Close)
	return New(p, mapOf(keys...))
}

func mapOf(keys ...string) *partitioner.Map {
	var bounds []table.Value
	for _, k := range keys {
		bounds = append(bounds, table.Value{Type: table.String, Bytes: []byte(k)})
	}
	return partitioner.NewMap(bounds)
}

// runs runs the flow and calls take with each split. It returns the error that the flow handed out.
func runs(t *testing.T, f *Flow, take func(*Parsed)) (failed error) {
	t.Helper()
	ended, ends := make(chan error, 1), 0
	go func() { ended <- f.Run(t.Context()) }()
	for h := range f.Splits() {
		conformance.Equal(t, failed, nil, "a part follows the error")
		switch {
		case h.Err != nil:
			failed = h.Err
		case h.Ended != nil:
			ends++
		default:
			take(h.Parsed)
			h.Arrived()
		}
	}
	inOrder := f.scheduling.When == Never && f.scheduling.Kept == nil
	if says := inOrder && f.plan.Request.Order == plan.OrderNone; failed == nil {
		conformance.Equal(t, ends == len(f.plan.Sources), says, "every source is said to have ended")
	}
	conformance.Equal(t, <-ended, nil, "run")
	return failed
}

type place struct {
	Source       string
	Record, Line int64
	Text         string
}

// rows returns the rows of a split, lane by lane.
func rows(p *Parsed) iter.Seq[table.Ref] {
	return func(yield func(table.Ref) bool) {
		for _, b := range p.Blocks {
			for i := range b.Block.Rows {
				if !yield(table.Ref{Block: b.Block, Index: int32(i)}) {
					return
				}
			}
		}
	}
}

// places returns all records of a split, both rows and rejects, in order.
func places(p *Parsed) (all []place) {
	add := func(r table.Reject) {
		all = append(all, place{filepath.Base(r.Location.Source), r.Location.Record, r.Location.Line, string(r.Raw)})
	}
	for r := range rows(p) {
		add(r.Reject(table.Reason{}))
	}
	for _, r := range p.Rejects {
		add(p.Split.Reject(r.Span, r.Reason, r.Raw))
	}
	slices.SortFunc(all, func(a, b place) int { return int(a.Record - b.Record) })
	return all
}

// mixed returns a file with rejects and multi-line records, and the expected records.
func mixed(name string, records int) (text string, want []place) {
	var b strings.Builder
	b.WriteString("id,n\n")
	line := int64(2)
	for i := range records {
		record := fmt.Sprintf("k%04d,%d\n", i, i)
		switch {
		case i%7 == 0:
			record = fmt.Sprintf("k%04d,ragged,record\n", i)
		case i%5 == 0:
			record = fmt.Sprintf("k%04d,\"two\nlines\"\n", i)
		}
		want = append(want, place{name, int64(i + 1), line, record})
		line += int64(strings.Count(record, "\n"))
		b.WriteString(record)
	}
	return b.String(), want
}

// faulty is a source whose calls may fail. Those that return something return it too.
type faulty struct {
	source.Random
	call func() error
}

func (f faulty) Next() (source.Piece, error) {
	p, err := f.Random.Next()
	if err = cmp.Or(f.call(), err); err != nil {
		return nil, err
	}
	return faultyPiece{p, f.call}, nil
}

func (f faulty) Add(p source.Piece) ([]source.Split, error) {
	splits, err := f.Random.Add(p.(faultyPiece).Piece)
	return splits, cmp.Or(f.call(), err)
}

func (f faulty) Finish() ([]source.Split, error) {
	splits, err := f.Random.Finish()
	return splits, cmp.Or(f.call(), err)
}

func (f faulty) LoadStretch(s source.Stretch) ([]source.Split, error) {
	splits, err := f.Random.LoadStretch(s)
	return splits, cmp.Or(f.call(), err)
}

func (f faulty) Close() error    { return cmp.Or(f.call(), f.Random.Close()) }
func (f faulty) Suspend() error  { return cmp.Or(f.call(), f.Random.Suspend()) }
func (f faulty) Reopen() error   { return cmp.Or(f.call(), f.Random.Reopen()) }
func (f faulty) Finished() error { return cmp.Or(f.call(), f.Random.Finished()) }

func (f faulty) NewParser(used []int) source.Parser {
	return faultyParser{f.Random.NewParser(used), f.call}
}

type faultyPiece struct {
	source.Piece
	call func() error
}

func (p faultyPiece) Prepare() error { return cmp.Or(p.call(), p.Piece.Prepare()) }

type faultyParser struct {
	source.Parser
	call func() error
}

func (p faultyParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	records, lines, err = p.Parser.Parse(sp, each)
	return records, lines, cmp.Or(p.call(), err)
}

// The first call of a source fails, then in another flow the second one, and so on. What a first pass cannot read is
// read in order.
func TestFlowEndsAtFailedCallAfterEarlierRecords(t *testing.T) {
	errFaulty := errors.New("faulty")
	first, want := mixed("a.csv", 60)
	second, more := mixed("b.csv", 60)
	third, last := mixed("c.csv.gz", 20)
	inputs := []string{file(t, "a.csv", first), file(t, "b.csv", second), file(t, "c.csv.gz", packed(t, third))}
	want = slices.Concat(want, more, last)
	for name, s := range map[string]Scheduling{"in order": {}, "by a schedule": {When: Always, Rows: 10},
		"switching": {When: Always, Rows: 10, SwitchAfter: 3}} {
		for n, past := int64(1), false; !past; n++ {
			var calls atomic.Int64
			scheduled := int64(math.MaxInt64) // number of calls before the schedule was kept
			s.Keep = func([]*readorder.Schedule) error {
				scheduled = calls.Load()
				return nil
			}
			f := flow(t, ask(inputs...), "k0030")
			f.Follow(s)
			for _, s := range f.plan.Sources {
				s.Source = faulty{random(s), func() error {
					if calls.Add(1) == n {
						return errFaulty
					}
					return nil
				}}
			}
			var got []place
			err := runs(t, f, func(p *Parsed) { got = append(got, places(p)...) })
			past = calls.Load() < n
			slices.SortStableFunc(got, orderOf)
			conformance.MustTrue(t, (err == nil && slices.Equal(got, want) || errors.Is(err, errFaulty)) &&
				((err == nil) == past || s.When == Always && n <= scheduled), "%s: call %d of %d fails: %v after %d records",
				name, n, calls.Load(), err, len(got))
			for i, p := range got {
				conformance.MustTrue(t, i == 0 || orderOf(got[i-1], p) < 0, "%s, call %d: %+v came twice", name, n, p)
				conformance.MustTrue(t, slices.Contains(want, p) && (s.When == Always || p == want[i]), "%s: %+v", name, p)
			}
		}
	}
}

// If records are not kept with their rows, rejected rows are kept as the records that they were made of.
func TestRowsHaveFormOfRecords(t *testing.T) {
	for text, want := range map[string]string{
		"id,i,d,b,x,n\nk,7,1.5,true,AP8=,\n": `{"id":"k","i":7,"d":1.5,"b":true,"x":"AP8="}` + "\n",
		`{"Wide":true,"PK":{"Values":[{"C":"id","V":"k"}]},"Attr":{"Values":[{"C":"n","V":5,"IsInt":true}]}}` +
			"\n": "",
	} {
		r := ask(file(t, "in", text))
		r.Keep, r.Columns.Types = plan.KeepNothing, map[string]plan.Type{"x": {Type: table.Binary}}
		if want == "" {
			want, r.Columns.Types = text, nil
		}
		f := flow(t, r)
		got := ""
		conformance.Must(t, runs(t, f, func(p *Parsed) {
			for row := range rows(p) {
				got += string(f.RowForm()(nil, row.Body()))
			}
		}))
		conformance.Equal(t, got, want, "rows of %s", text)
		conformance.Contains(t, string(f.RowForm()(nil, []byte{1})), `{"error":"`, "the form of a damaged row")
	}
}

func TestStoppedFlowIsNotComplete(t *testing.T) {
	text, _ := mixed("a.csv", 2000)
	f := flow(t, ask(file(t, "a.csv", text)))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	h := <-f.Splits()
	conformance.True(t, h.Err == nil, "%v", h.Err)
	cancel(errors.New("stopped"))
	conformance.Equal(t, <-ended, nil, "run")
	select {
	case _, open := <-f.Splits():
		conformance.Equal(t, open, true, "Splits is closed as if all had been handed out")
	default:
	}
}

func TestTruncateDropsRecordsApart(t *testing.T) {
	for n := range uint32(5) {
		p := &Parsed{Records: 4}
		for i := range uint32(4) {
			p.Rejects, p.Archived = append(p.Rejects, Reject{Span: table.Span{Record: i}}), append(p.Archived,
				Archived{Span: table.Span{Record: i}})
			p.Expired = append(p.Expired, Expired{Record: i})
		}
		p.Truncate(int(n))
		conformance.Same(t, []int{len(p.Rejects), len(p.Archived), len(p.Expired), p.Records},
			slices.Repeat([]int{int(n)}, 4), "rejects, archived and expired records, and records")
	}
}

func TestEachPassesOnFirstRecords(t *testing.T) {
	text, want := mixed("a.csv", 40)
	for n := range int64(84) {
		r, limit := ask(file(t, "a.csv", text)), n/2-1 // the first limit is none
		if n%2 == 0 {
			r.Read.SplitBytes = 1 << 20
		}
		var got []place
		records, enough := 0, errors.New("enough for now")
		left, err := flow(t, r, "k0003", "k0020").Each(t.Context(), limit, func(p *Parsed) error {
			got, records = append(got, places(p)...), records+p.Records
			return nil
		})
		first := want[:min(uint64(limit), 40)]
		conformance.True(t, err == nil && left == max(limit-40, min(limit, 0)) && records == len(first) &&
			slices.Equal(got, first), "the first %d: %v, %d left, %d, %v", limit, err, left, records, got)
		_, err = flow(t, r).Each(t.Context(), limit, func(*Parsed) error { return enough })
		conformance.True(t, limit == 0 && err == nil || errors.Is(err, enough), "an error after a part of %d: %v", limit, err)
	}
}

func TestLargeSplitIsHandedOverInParts(t *testing.T) {
	text, want := mixed("a.csv", 20_000)
	for name, change := range map[string]func(*Flow){"three lanes": func(f *Flow) { f.Recut(mapOf("k0100", "k0900")) },
		"a lane that lends": func(f *Flow) { f.Lends = true }, "a lane that reuses": func(f *Flow) { f.Reuses = true }} {
		r := ask(file(t, "a.csv", text))
		r.Memory, r.Read.SplitBytes = 1<<20, 1<<20
		f := flow(t, r)
		change(f)
		limit, blockLimit := f.plan.Shares().SplitLimit(3)+1<<10, f.plan.Shares().BlockLimit(f.partitions.Load().Len())
		reusable := false
		var got []place
		parts, input := 0, int64(0)
		conformance.Must(t, runs(t, f, func(p *Parsed) {
			all := places(p)
			conformance.Equal(t, len(all), p.Records, "rows and rejects of a part")
			n := len(p.Rejects) * rejectBytes
			conformance.Equal(t, (p.Split.Number == 0), (p.Split.FirstRecord == 0), "split %d", p.Split.Number)
			lines := int64(strings.Count(text[:p.Split.Offset], "\n")) // a resumed load begins there
			conformance.Equal(t, lines, p.Split.FirstLine, "lines before offset %d", p.Split.Offset)
			got, parts, input = append(got, all...), parts+1, input+p.Split.Input
			next := map[int]uint32{} // the blocks of a lane cover the part without a gap
			for _, b := range p.Blocks {
				conformance.True(t, b.Block.From == next[b.Lane] && b.Block.To > b.Block.From && b.Block.Split == p.Split,
					"%s: a block from %d to %d after one to %d", name, b.Block.From, b.Block.To, next[b.Lane])
				n += len(b.Block.Data) + len(b.Block.Rows)*table.RowBytes
				next[b.Lane], reusable = b.Block.To, reusable || b.Block.Reusable
				if spare := cap(b.Block.Data) - len(b.Block.Data); f.Reuses {
					f.Free(b.Block)
				} else if !f.Lends {
					size := len(b.Block.Data)
					conformance.True(t, spare == 0 && size <= blockLimit, "%d bytes, %d to spare", size, spare)
				}
			}
			conformance.True(t, n <= limit, "%s: a part of %d bytes, more than %d", name, n, limit)
			for lane, to := range next {
				conformance.Equal(t, int(to), p.Records, "%s: end of the blocks of lane %d", name, lane)
			}
		}))
		conformance.Equal(t, gocmp.Diff(want, got), "", "%s: (-want +got)", name)
		conformance.Equal(t, reusable, f.Reuses, "%s: a block may be reused", name)
		conformance.True(t, parts >= 10 && input == int64(len(text)-len("id,n\n")),
			"%s: %d parts of %d bytes, want 10 or more of %d", name, parts, input, len(text)-len("id,n\n"))
	}
}

// The source states the number of its rows. Only the first part of a page has the page's key.
func TestPageOfRowsIsHandedOverInParts(t *testing.T) {
	const n = 5000
	rows, keyed := sourcetest.NewRows("rows", n), sourcetest.NewKeyed("rows", n)
	rows.Page, keyed.Page = n, n
	for hasKeys, origin := range map[bool]source.Origin{false: rows, true: keyed} {
		r := ask("rows")
		r.Read.Sources, r.Memory, r.Target.Key[0].Type = origin, 1<<20, table.Integer
		parts, records := 0, 0
		conformance.Must(t, runs(t, flow(t, r), func(p *Parsed) {
			first := parts == 0
			conformance.True(t, p.Inside == (hasKeys && !first) && (p.Key != nil) == (hasKeys && first) &&
				(p.Split.Number == 0) == first && p.Split.Position.Record == int64(records) &&
				(hasKeys || p.Split.Input == int64(100*p.Records)), "keys %v, part %d: %+v", hasKeys, parts, p)
			parts, records = parts+1, records+p.Records
		}))
		conformance.True(t, parts > 5 && records == n, "keys %v: %d parts of %d rows", hasKeys, parts, records)
	}
}

// The rejects of a binary format do not refer to the split's text, so they count as memory of the part.
func TestPartHoldsFewLargeRejects(t *testing.T) {
	r := ask(file(t, "a.csv", "id,n\n"+strings.Repeat("k,"+strings.Repeat("x", 2000)+"\n", 5000)))
	r.Memory, r.Read.SplitBytes = 16<<20, 16<<20
	r.Columns.Types = map[string]plan.Type{"n": {Type: table.Integer}}
	f := flow(t, r)
	f.plan.Sources[0].Raw = nil
	rejects, limit := 0, f.plan.Shares().SplitLimit(3)
	conformance.Must(t, runs(t, f, func(p *Parsed) {
		size := 0
		for _, r := range p.Rejects {
			size += len(r.Raw)
		}
		rejects += len(p.Rejects)
		conformance.True(t, size <= limit, "%d rejects of %d bytes, more than %d", len(p.Rejects), size, limit)
	}))
	conformance.Equal(t, rejects, 5000, "rejects")
}

func TestPiecesOfPendingRecordDoNotWaitForRoom(t *testing.T) {
	r := newByteBudget(100)
	conformance.MustEqual(t, r.take(t.Context(), 150), true, "what is larger than the room was not let in alone")
	taken := make(chan bool)
	go func() { taken <- r.take(t.Context(), 10) }()
	select {
	case <-taken:
		t.Fatal("taken while there is no room")
	case <-time.After(time.Millisecond):
	}
	r.setAside(150)
	conformance.Equal(t, <-taken, true, "a piece that its record waits for was not let in")
	conformance.Equal(t, r.try(1), false, "try took what there is no room for")
	r.setAside(-150)
	r.add(-150)
	conformance.True(t, r.try(90) && r.held == 100, "%d bytes are held, want 100", r.held)
}

func TestLoadWithSlowExpressionsStopsPromptly(t *testing.T) {
	r := ask(file(t, "a.csv", "id\n"+strings.Repeat("x\n", 2_000_000))) // the whole load would take an hour
	r.Read.SplitBytes = 1 << 20
	r.Columns.Set = []keyexpr.Column{{Name: "n", Expr: "count(1..20000, # % 7 == 3)"}}
	f := flow(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	time.AfterFunc(10*time.Millisecond, cancel)
	conformance.Equal(t, <-ended, nil, "error")
}

// Rows and rejects are checked after all splits have been read, when their text may have been overwritten.
func TestNothingPointsIntoReleasedText(t *testing.T) {
	for _, name := range []string{"a.csv", "a.jsonl"} {
		var text strings.Builder
		if name == "a.csv" {
			text.WriteString("id,n,s\n")
		}
		rnd := rand.New(rand.NewPCG(23, 1))
		for i := range 3000 {
			n := fmt.Sprint(i)
			if i%100 < 30 && i%10 == 0 {
				n = `"odd"`
			}
			if name == "a.csv" {
				fmt.Fprintf(&text, "k%04d,%s,\"with \"\"quotes\"\" %d\"\n", i, n, rnd.Uint64())
			} else {
				fmt.Fprintf(&text, "{\"id\":\"k%04d\",\"n\":%s,\"s\":\"tab\\t%d\"}\n", i, n, rnd.Uint64())
			}
		}
		read := func(spoil bool) (all []string, spoiled int64) {
			r := ask(file(t, name, text.String()))
			r.Columns.Types = map[string]plan.Type{"n": {Type: table.Integer}}
			f := flow(t, r)
			var spoils atomic.Int64
			if spoil {
				f.plan.Sources[0].GiveBack = func(sp source.Split) {
					spoils.Add(1)
					for i := range sp.Data {
						sp.Data[i] = 0xdd
					}
				}
			}
			var splits []*Parsed
			conformance.Equal(t, runs(t, f, func(p *Parsed) { splits = append(splits, p) }), nil, "runs")
			for _, p := range splits {
				for r := range rows(p) {
					all = append(all, fmt.Sprintf("%q %q %q", r.Key(), r.Body(), r.Record()))
				}
				for _, r := range p.Rejects {
					all = append(all, fmt.Sprintf("%q %v", r.Raw, r.Reason))
				}
			}
			slices.Sort(all)
			return all, spoils.Load()
		}
		want, _ := read(false)
		got, spoiled := read(true)
		if diff := gocmp.Diff(want, got); diff != "" || len(got) != 3000 {
			t.Errorf("%s: %d records (-as they are +of texts that are spoiled)\n%.2000s", name, len(got), diff)
		}
		conformance.True(t, spoiled >= 50, "%s: %d texts were given back", name, spoiled)
	}
}

func TestMain(m *testing.M) { conformance.Main(m) }

// cellsOf returns the cells and values of a load of self-describing rows.
func cellsOf(t *testing.T, change func(*plan.Request)) (*cells, *values) {
	t.Helper()
	r := ask(file(t, "a.ndjson",
		`{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true}]},"Attr":{"Values":[{"C":"version","V":1617242400000,"IsInt":true}]}}`+"\n"))
	r.Target.Key = []table.KeyColumn{{Name: "id", Type: table.Integer}}
	if change != nil {
		change(r)
	}
	p := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
	t.Cleanup(p.Close)
	return newCells(p), conformance.Try(newValues(p, p.Sources[0])).Must(t)
}

func cellOf(name string, n, at int64) record.Cell {
	return record.Cell{Name: []byte(name), Datum: record.Datum{Kind: record.Integer, Int: n}, At: at}
}

func shown(made []encode.Cell) (all []string) {
	for _, c := range made {
		all = append(all, fmt.Sprintf("%s=%s %d %s at %d", c.Name, c.Value.Type, c.Value.Int, c.Value.Bytes, c.At))
	}
	return all
}

// TestCellsAreMadeByName has, in each line, changes of a request and the cells of records, as "name"=value@timestamp.
func TestCellsAreMadeByName(t *testing.T) {
	conformance.Golden(t, "cells.golden", func(input string) string {
		parts := strings.Split(input, " | ")
		c, v := cellsOf(t, func(r *plan.Request) {
			conformance.Must(t, json.Unmarshal([]byte(parts[0]), r))
			r.Service = func() (earliest, latest time.Time) { return time.Unix(1000_000, 0), time.Unix(1000_000, 0) }
		})
		p := newParser(&Flow{plan: c.plan})
		result := fmt.Sprintf("as they came %v, kept %q\n", p.asTheyCame, p.keep(v, nil, nil, []byte("raw")))
		for _, cells := range parts[1:] {
			rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer}, {Kind: record.Absent}}}
			if !v.versioned {
				rec.Fields = rec.Fields[:1]
			}
			for _, text := range strings.Split(cells, ", ") {
				var name string
				var n, at int64
				if _, err := fmt.Sscanf(text, "%q=%d@%d", &name, &n, &at); err != nil {
					rec.Cells = append(rec.Cells, record.Cell{Name: []byte(text)}) // a null
					continue
				}
				rec.Cells = append(rec.Cells, cellOf(name, n, at))
				if v.versioned && name == "version" {
					rec.Fields[1] = rec.Cells[len(rec.Cells)-1].Datum
				}
			}
			row, why := v.rowValues(rec)
			conformance.MustTrue(t, why == nil, "%v", why)
			if p.encoder.Cells, why = c.make(v, rec); why != nil {
				result += fmt.Sprintln(why.Code, why.Column, why.Message)
				continue
			}
			result += fmt.Sprintf("%s; left out %v, expired %d; has a %v, n %v, id %v\n", strings.Join(shown(p.encoder.Cells),
				", "), c.left, c.expired, p.has("a", row), p.has("n", row), p.has("id", row))
		}
		return result
	})
}

// A repeated name does not allocate, and names that never repeat are forgotten.
func TestRememberedNamesAreBounded(t *testing.T) {
	c, v := cellsOf(t, nil)
	rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer}}}
	for i := range 5 * maxCellNames {
		rec.Cells = []record.Cell{cellOf("always", 1, -1), cellOf(fmt.Sprint("only in ", i), 1, -1),
			cellOf(fmt.Sprintf("%0300d", i), 1, -1)}
		rec.Cells = rec.Cells[:2+i%2]
		made, why := c.make(v, rec)
		conformance.MustTrue(t, why != nil == (i%2 == 1) && (why == nil || why.Code == table.CodeColumnName),
			"record %d: %d cells, %v", i, len(made), why)
		conformance.MustTrue(t, len(c.names) <= maxCellNames+3, "%d names are remembered after %d records", len(c.names), i)
	}
	rec.Cells = []record.Cell{cellOf("always", 1, -1), cellOf("b", 1, 5), cellOf("b", 1, 6)}
	if n := testing.AllocsPerRun(100, func() {
		if _, why := c.make(v, rec); why != nil {
			t.Fatal(why)
		}
	}); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// TestValuesAreComputed has, in each line, changes of a request, a record and perhaps the timestamps of its fields.
func TestValuesAreComputed(t *testing.T) {
	conformance.Golden(t, "computed.golden", func(input string) string {
		parts := strings.Split(input, " | ")
		r := ask(file(t, "a.csv", "id,n,at\nb,7,1617242400000\n"))
		r.Target.Key = []table.KeyColumn{{Name: "k"}, {Name: "n"}}
		r.Columns.Keys = []keyexpr.Column{{Name: "k", Expr: `id + pad(n, 2)`}}
		r.Columns.Set = []keyexpr.Column{{Name: "up", Expr: `upper(id)`}}
		r.Columns.Exclude = []string{"id"}
		conformance.Must(t, json.Unmarshal([]byte(parts[0]), r))
		p := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
		defer p.Close()
		v := conformance.Try(newValues(p, p.Sources[0])).Must(t)
		rec := new(record.Record)
		for _, text := range strings.Split(parts[1], ",") {
			rec.Fields = append(rec.Fields, record.Datum{Kind: record.Text, Bytes: []byte(text)})
		}
		if len(parts) > 2 {
			conformance.Must(t, json.Unmarshal([]byte(parts[2]), &rec.Timestamps))
		}
		result := fmt.Sprintln("fields", v.converter.Fields())
		of, why := v.of(rec)
		result += fmt.Sprintf("kept %q\n", newParser(&Flow{plan: p}).keep(v, nil, nil, []byte("raw")))
		for _, value := range of.row {
			result += fmt.Sprintf("[%s %d %g %q %v]", value.Type, value.Int, value.Double, value.Bytes, value.Absent)
		}
		if why != nil {
			result += why.Code + " " + why.Message
		}
		key := v.appendKey([]byte("-"), rec)
		result += fmt.Sprintf("\nstamps %v, table %q, archived %v\nkey %q", of.stamps, of.table, of.archived, key)
		v.keysOnly()
		again := v.appendKey([]byte("-"), rec)
		return result + fmt.Sprintf(" of fields %v, again %v", v.converter.Fields(), string(again) == string(key))
	})
}
