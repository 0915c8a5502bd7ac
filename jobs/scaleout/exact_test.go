package scaleout

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	gocmp "github.com/google/go-cmp/cmp"
)

// The cost of a step must not grow with a product of splits, shards and workers.
func TestForecasts(t *testing.T) {
	for _, c := range []struct {
		change func(*Outlook)
		want   string // name, tasks, bytes, requests and seconds of each step, and the memory of the last
	}{
		{func(*Outlook) {}, "plan 1 107374182401 2 33.55, read 401 202204182401 4900 88.56, " +
			"write 12 297570000000 17992 153.3, finish 1 0 413 0.1936, 1074049792"},
		{func(o *Outlook) { o.Unique, o.Looked = true, false }, "plan 1 0 2 0, read 401 202204182401 4900 88.56, " +
			"write 12 94830000000 11732 109, finish 1 0 413 0.1936, 1074049792"},
		{func(o *Outlook) { o.Rates.MaxWCU = 1000 }, "plan 1 107374182401 2 33.55, read 401 202204182401 4900 88.56, " +
			"write 12 297570000000 9617272 2e+06, finish 1 0 413 0.1936, 1074049792"},
		{func(o *Outlook) { o.Rates.MaxRows = 1000 }, "plan 1 107374182401 2 33.55, read 401 202204182401 4900 88.56, " +
			"write 12 297570000000 4817272 1e+06, finish 1 0 413 0.1936, 1074049792"},
		{func(o *Outlook) { o.Direct, o.Rates.MaxBytes = true, 1e5 }, "plan 1 107374182401 2 33.55, " +
			"read 401 107374182401 873604 1.09e+06, finish 1 0 401 0.188, 1074049792"},
		{func(o *Outlook) { *o = Outlook{Bytes: 1000, Rows: 1e6, RowBytes: 60, Looked: true} }, "plan 1 1000 2 2.5e-06, " +
			"read 1 52201000 7 1.56, write 3 163800000 13 2.7, finish 1 0 4 0.0075, 768"},
	} {
		o := &Outlook{Bytes: 100<<30 + 1, Rows: 1e9, RowBytes: 109, Units: 2e9, Looked: true, Workers: 4, Processors: 8,
			Memory: 1 << 30}
		c.change(o)
		got, last := "", int64(0)
		for _, s := range Forecast(o) {
			got += fmt.Sprintf("%s %d %d %d %.4g, ", s.Name, s.Tasks, s.Bytes, s.Requests, s.Seconds)
			last = s.Memory
			conformance.True(t, s.Name == "finish" || s.Name == "write" || s.Memory == o.Memory, "%+v", s)
		}
		conformance.Equal(t, fmt.Sprint(got, last), c.want, "the steps of %+v", *o)
	}
	for plan, want := range map[[2]int]string{{0, 1}: "1 1 2000", {1, 9}: "3 2 5000", {2, 5}: "3 2 5000",
		{3, 5}: "2 1 3000", {5, 5}: "1 1 2000", {4, 4}: "1 1 2000"} { // workers and shards, of which one has all rows
		p := &Plan{Workers: plan[0], Shards: make([]Shard, plan[1]), Bytes: 1000}
		p.Shards[plan[1]/2].Weight = 1
		conformance.Equal(t, fmt.Sprint(p.atATime(), p.atATimeAfter(), (p.DiskBytes()-1<<30)/2), want, "%v", plan)
	}
}

func TestShardsOfSmallExamples(t *testing.T) {
	keys := func(all ...int64) (values []table.Value) {
		for _, i := range all {
			values = append(values, table.Value{Type: table.Integer, Int: i})
		}
		return values
	}
	type places = [][]table.Value
	for _, c := range []struct {
		want       string // bounds, then ranges, weight and hot key of each shard
		partitions []table.Value
		sample     places
	}{
		{"10 20 30 40 50 60 70 [0 3 6] 0.375 [1 4 7] 0.375 [2 5] 0.250", keys(10, 20, 30, 40, 50, 60, 70), nil},
		{"4 6 [0] 0.429 [1] 0.286 [2] 0.286", nil, places{keys(1, 2, 3, 4), {}, keys(5, 6, 7)}},
		{"5 7 8 [2] 0.472 hot 7 [3] 0.417 [0 1] 0.111", keys(5),
			places{keys(1, 7, 7, 7, 7, 9, 9, 9), keys(7, 7, 7, 7, 9, 9, 9, 9)}}, // eight of sixteen, and seven
		{"5 [0] 0.660 [1] 0.340", keys(5), places{slices.Concat(slices.Repeat(keys(7), 8), make([]table.Value, 16))}},
		{"[0] 1.000", nil, places{slices.Repeat(keys(1<<63-1), 9)}}, // no key follows
		{"10 20 30 40 50 [0 1] 0.333 [2 3] 0.333 [4 5] 0.333", keys(10, 20, 30, 40, 50),
			places{keys(1, 2), keys(21, 22), keys(41, 42)}},
		{"10 20 [1] 0.564 [0] 0.267 [2] 0.169", keys(10, 20), places{keys(10, 20, 10, 11), keys(9, 19)}},
	} {
		text := table.Value{Type: table.String, Bytes: []byte("k")}
		_, hot := shardKeys(nil, places{slices.Repeat([]table.Value{text}, 8)}, 1)
		conformance.Equal(t, hot[0].HotKey, "k", "a hot text")
		bounds, shards := shardKeys(c.partitions, c.sample, 1)
		var got []string
		for _, b := range bounds {
			got = append(got, fmt.Sprint(b.Int))
		}
		for _, s := range shards {
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%v %.3f hot %s", s.Ranges, s.Weight, s.HotKey), " hot "))
		}
		conformance.Equal(t, strings.Join(got, " "), c.want, "bounds and shards")
	}
}

// TestShardsHaveEqualRowsInAnyOrderOfTheInput has fewer and more partitions than places of the sample.
func TestShardsHaveEqualRowsInAnyOrderOfTheInput(t *testing.T) {
	const rows, places = 1 << 20, 64
	key := func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i)} }
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, partitions := range []int{24, 64, 128, 512} {
		var bounds []table.Value
		for i := range partitions - 1 {
			bounds = append(bounds, key((i+1)*rows/partitions))
		}
		for _, random := range []int{0, rows} {
			sample := make([][]table.Value, places)
			for i := range places * 40 {
				sample[i/40] = append(sample[i/40], key((i/40*rows/places+i%40+rnd.IntN(random+1))%rows))
			}
			_, shards := shardKeys(bounds, sample, 2)
			weight := 0.0
			for _, s := range shards {
				weight += s.Weight
				share := float64(len(s.Ranges)*len(shards)) / float64(partitions)
				conformance.True(t, share >= 0.8 && share <= 1.25, "a shard has %d of %d partitions", len(s.Ranges), partitions)
			}
			conformance.True(t, len(shards) == 2*shardsEach && math.Abs(weight-1) <= 1e-9, "%d shards: %v", len(shards), weight)
		}
	}
}

func TestSplitsOfInputs(t *testing.T) {
	for _, c := range [][4]int64{{100, 1, 5, 5}, {100, 1, 0, leastSplit}, {1 << 40, 1, 0, mostSplit},
		{16 << 20, 4, 0, 512 << 10}, {manySplits * mostSplit * 2, 1, 0, 2 * mostSplit}} {
		conformance.Equal(t, splitSize(c[0], int(c[1]), c[2]), c[3], "bytes of a split: %v", c)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n, lines := range []int{3, 6, 1, 15, 16, 52, 1} { // lines of ten bytes, with the header
			text := "id,what..\n" + strings.Repeat("k23456,89\n", lines-1)
			w.inputs = append(w.inputs, w.file(fmt.Sprintf("%d.csv", n), text))
		}
		heard, say := sayings()
		w.planned(func(r *Request) { r.SplitSize, r.Say = 100, say })
		conformance.Equal(t, strings.ReplaceAll(heard(), w.dir+"/", ""), "scanning 4.csv for record boundaries\n"+
			"scanning 5.csv for record boundaries\ntable t was created\n", "what planning says")
		p := conformance.Try(ReadPlan(t.Context(), w.store)).Must(t)
		conformance.Equal(t, fmt.Sprint(p.Splits), "[{[{0 0 0 0 -1} {1 0 0 0 -1} {2 0 0 0 -1}] 100} {[{3 0 0 0 -1}] 150} "+
			"{[{4 0 0 0 11}] 110} {[{4 11 12 120 -1}] 40} {[{5 0 0 0 11}] 110} {[{5 11 12 120 10}] 100} "+
			"{[{5 21 22 220 10}] 100} {[{5 31 32 320 10}] 100} {[{5 41 42 420 -1}] 100} {[{6 0 0 0 -1}] 10}]", "splits")
		clear(w.store.Objects)
		w.inputs = []string{w.file("large.csv", "id,what\n"+strings.Repeat("k,"+strings.Repeat("w", 1021)+"\n", 16<<10))}
		w.planned(func(r *Request) { r.SplitSize = 9 << 20 })
		p = conformance.Try(ReadPlan(t.Context(), w.store)).Must(t)
		conformance.Equal(t, fmt.Sprint(p.Splits), "[{[{0 0 0 0 8193}] 8389632} {[{0 8193 8194 8389640 -1}] 8387584}]",
			"splits of two stretches each")
	})
}

// counting counts the bytes of the pieces that are read. In the end, the source has changed if changed is set.
type counting struct {
	source.Source
	bytes, largest int64
	changed        error
}

func (c *counting) Finished() error { return c.changed }

func (c *counting) Next() (source.Piece, error) {
	p, err := c.Source.Next()
	if err == nil {
		c.bytes, c.largest = c.bytes+p.Bytes(), max(c.largest, p.Bytes())
	}
	return p, err
}

// TestLastPieceOfASplitEndsWithIt reads splits in pieces of several sizes. Pieces of one split have the same size.
func TestLastPieceOfASplitEndsWithIt(t *testing.T) {
	for _, size := range []int64{16, 18, 41, 97, 500, 3000, 1 << 20} {
		inJob(func(t *testing.T, w *world) {
			must(t, w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) error {
				prepared := conformance.Try(j.prepare(ctx)).Must(t)
				for i, split := range j.Plan.Splits {
					s := prepared.Plan.Sources[split.Parts[0].Source]
					c := &counting{Source: s.Source, changed: errors.New("changed while it was read")}
					s.SetSplitBytes(int(size))
					if s.Source = c; split.Parts[0].Records >= 0 {
						refused(t, j.readSplit(ctx, i), exitcode.Failed, c.changed.Error())
					}
					c.bytes, c.changed = 0, nil
					must(t, j.readSplit(ctx, i))
					bytes := cmp.Or(j.Plan.bytesOf(i), c.bytes) // the last split ends with its source
					more := c.bytes - bytes
					conformance.True(t, more >= 0 && more <= (bytes-1)/size && bytes <= split.Bytes+10 && c.largest <= size &&
						s.About().Pieces == size, "split %d of %d bytes: %+v, then pieces of %d", i, bytes, c, s.About().Pieces)
					s.Source = c.Source
				}
				return nil
			}))
			w.finish()
		})(t)
	}
}

func TestDamagedPlansAreRefused(t *testing.T) {
	for i, c := range []struct {
		says   string
		change func(*Plan)
	}{
		{"<nil>", func(*Plan) {}}, {"fields are missing", func(p *Plan) { p.ID = "" }},
		{"fields are missing", func(p *Plan) { p.Job = nil }}, {"fields are missing", func(p *Plan) { p.Splits = nil }},
		{"fields are missing", func(p *Plan) { p.Shards = nil }}, {"fields are missing", func(p *Plan) { p.Direct = true }},
		{"a range -1", func(p *Plan) { p.Shards[1].Ranges[0] = -1 }}, {"not divided", func(p *Plan) { p.Bounds[0].Int = 6 }},
		{"a range 3", func(p *Plan) { p.Shards[1].Ranges[0] = 3 }},
		{"not divided", func(p *Plan) { p.Shards = p.Shards[1:] }},
		{"not divided", func(p *Plan) { p.Shards[0].Ranges = []int{0, 1, 2} }},
	} {
		p, store := &Plan{Version: planVersion, ID: "one", Job: &checkpoint.Job{}, Splits: make([]Split, 1),
			Shards: []Shard{{Ranges: []int{0, 2}}, {Ranges: []int{1}}},
			Bounds: []Bound{{Type: table.Integer, Int: 5}, {Type: table.Integer, Int: 6}}}, storetest.NewMemory(jobdir.ErrExists)
		c.change(p)
		must(t, conformance.ErrorOf(keepPlan(t.Context(), store, p)))
		_, err := Open(t.Context(), store, Options{})
		conformance.Contains(t, fmt.Sprint(err), c.says, "plan %d", i)
	}
}

// TestRowsOfAShardKeepTheirNumbers reads a run of five frames of eight rows in each order and from each place.
func TestRowsOfAShardKeepTheirNumbers(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory(jobdir.ErrExists)
	w := runfile.NewSorted(ctx, store, "run")
	key := func(n int) string { return fmt.Sprintf("%02d", n) }
	const rows = 40
	for n := range rows {
		must(t, w.Add(&runfile.Row{Key: []byte(key(n)), Body: bytes.Repeat([]byte{byte(n)}, 60<<10), Size: n}))
	}
	must(t, w.Close())
	run := &reducedResult{Objects: w.Objects, Rows: w.Rows}
	for _, f := range w.Frames {
		run.Frames = append(run.Frames, frame{f.Extent, f.First, f.Last})
	}
	unique, reduced := &Job{store: store, Plan: &Plan{Unique: true}}, &Job{store: store, Plan: &Plan{}}
	for _, c := range []struct {
		o           shardOrigin
		first, rows int
	}{{shardOrigin{job: unique}, 0, rows}, {shardOrigin{job: reduced}, 0, rows},
		{shardOrigin{job: reduced, inTurn: true}, 0, rows},
		{shardOrigin{job: reduced, inTurn: true, lower: []byte(key(15)), upper: []byte(key(24))}, 8, 16},
		{shardOrigin{job: reduced, inTurn: true, lower: []byte(key(16)), upper: []byte(key(25))}, 16, 16},
		{shardOrigin{job: reduced, inTurn: true, lower: []byte(key(99))}, 0, 0}} {
		o := c.o
		o.run = run
		s := conformance.Try(o.Open(ctx, nil)).Must(t)[0]
		conformance.Equal(t, s.About().Bytes, w.Objects[0].Bytes, "bytes")
		var read []string
		frames, parser := o.frames(), s.NewParser(nil)
		all := func() (firsts []int64) { // numbers of the first rows of the frames read
			for {
				p, err := s.Next()
				if err != nil {
					return firsts
				}
				split := conformance.Try(s.Add(p)).Must(t)[0]
				firsts = append(firsts, split.First)
				if split.First != int64(c.first+len(read)) {
					continue // it is read again
				}
				n, _, err := parser.Parse(split, func(r *record.Record) {
					conformance.True(t, r.Row.Body[0] == byte(r.Row.Size) && string(r.Row.Key) == key(r.Row.Size) &&
						int(r.Span.Record) == len(read)%8, "row %+v", r.Span)
					read = append(read, string(r.Row.Key))
				})
				conformance.True(t, err == nil && int64(n) == split.Rows, "%d rows, %v", n, err)
			}
		}
		conformance.Equal(t, s.Begin().Record, int64(c.first), "the first row")
		firsts := all()
		conformance.MustEqual(t, len(read), c.rows, "rows of %+v", c.o)
		for i, k := range read {
			number := c.first + i
			of := number
			if !o.inTurn {
				of = int(rowOf(frames, int64(number)))
			}
			s.Seek(source.Place{Record: int64(number)}, source.Chain{})
			from, left := int(s.Begin().Record), all()
			conformance.True(t, k == key(of) && from == number/8*8 && slices.Equal(left, firsts[i/8:]),
				"row %d is %s; it is in the frame of row %d, then %v of %v", number, k, from, left, firsts)
		}
		slices.Sort(read)
		conformance.Equal(t, len(slices.Compact(read)), c.rows, "different rows")
		must(t, s.Suspend())
		conformance.True(t, s.Begin().Record == int64(c.first) && slices.Equal(all(), firsts), "after Suspend %v", s.Begin())
	}
	for _, numbers := range [][]int64{{}, {0}, {7, 8}, {8, 9, 39}, {15, 31}, {40}, {39, 41}} {
		var found []int64
		left, damaged := numbers, *run
		damaged.Frames = slices.Clone(run.Frames)
		for i := range damaged.Frames { // a frame without a wanted row must not be read
			if !slices.ContainsFunc(numbers, func(n int64) bool { return n/8 == int64(i) }) {
				damaged.Frames[i].At.Sum++
			}
		}
		err := (&shardOrigin{job: unique, run: &damaged}).origins(ctx, func() (number int64, more bool, err error) {
			if more = len(left) > 0; more {
				number, left = left[0], left[1:]
			}
			return number, more, nil
		}, func(number int64, r *runfile.Row) error {
			conformance.Equal(t, number, int64(r.Size), "the row found")
			found = append(found, number)
			return nil
		})
		there := slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return n >= rows })
		conformance.True(t, slices.Equal(found, there) && (err == nil) == (len(found) == len(numbers)),
			"rows %v: found %v, %v", numbers, found, err)
	}
}

// TestDifferencesOfTheTableAreFound has shards of several ranges and frames, in which the service refuses a row in ten.
// It changes the table before it is compared, at the ends of all keys and within.
func TestDifferencesOfTheTableAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 360
		w, text, texts := newWorld(t), "id,what\n", make([]string, rows)
		for n := range texts {
			if texts[n] = strings.Repeat(fmt.Sprint(n, " "), 2000); n%10 == 5 {
				texts[n] = refusedText
			}
			text += fmt.Sprintf("k%07d,%s\n", n, texts[n])
		}
		w.inputs, w.verify = []string{w.file("in.csv", text)}, true
		w.partition(12, rows)
		w.planned(func(r *Request) { r.Workers = 1 })
		w.readAll()
		must(t, w.start("writer", 4, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
			conformance.Equal(t, fmt.Sprint(j.Plan.Shards[0].Ranges), "[0 3 4 11]", "ranges of the first shard")
			for i := range j.Plan.Shards {
				must(t, j.writeShard(ctx, i))
				run := conformance.Try(j.rowsOf(ctx, i, nil)).Must(t)
				for _, f := range run.Frames {
					must(t, runfile.ReadFrames(ctx, w.store, run.Objects, &f.At, new(runfile.Unpacker), func(r *runfile.Row) error {
						conformance.Equal(t, r.Size, len("idk0000000what")+len(texts[r.Record]), "bytes of row %d", r.Record)
						return nil
					}))
				}
			}
			return nil
		}))
		keys := slices.Sorted(maps.Keys(w.rows()))
		middle, last := keys[len(keys)/2], keys[len(keys)-1]
		must(t, tabletest.Do(w.sdk(), tabletest.Delete("t", tabletest.Key("id", keys[0]))))
		for _, key := range []string{"a", middle, last, last + "0"} {
			must(t, tabletest.Do(w.sdk(), tabletest.Put("t", tabletest.Key("id", key), tabletest.Cells{"what": "other"})))
		}
		s := conformance.Try(w.work()).Must(t)
		slices.SortFunc(s.Compared.Examples, func(a, b difference) int { return strings.Compare(a.Key, b.Key) })
		of := func(kind, key string, columns ...string) difference {
			return difference{kind, fmt.Sprintf("id=%q", key), columns}
		}
		conformance.True(t, s.ExitCode == exitcode.Differences && s.Rejected == rows/10, "%+v", s)
		conformance.Equal(t, gocmp.Diff(&Comparison{int64(len(keys)), 1, 2, 2, []difference{of("extra", "a"),
			of("missing", keys[0]), of("different", middle, "what"), of("different", last, "what"),
			of("extra", last+"0")}}, s.Compared), "", "the comparison (-want +got)")
	})
}
