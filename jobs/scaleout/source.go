package scaleout

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sort"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// shardOrigin provides the rows that a shard sends as one source, in an order that keeps all lanes busy.
type shardOrigin struct {
	source.Undivided
	job  *Job
	run  *reducedResult
	name string
	key  []table.KeyColumn
	// inTurn reads the frames in key order. lower and upper are ordering keys that limit them; nil means no limit.
	inTurn       bool
	lower, upper []byte
}

func (o shardOrigin) Open(ctx context.Context, _ []byte) ([]source.Source, error) {
	r := &shardRows{ctx: ctx, of: o}
	for _, f := range o.frames() {
		if (o.upper == nil || bytes.Compare(f.First, o.upper) < 0) &&
			(o.lower == nil || bytes.Compare(f.Last, o.lower) >= 0) {
			r.frames = append(r.frames, f)
		}
		r.bytes += f.At.Length
	}
	r.Seek(source.Place{}, source.Chain{})
	return []source.Source{r}, nil
}

// frames returns the frames of the run in reading order.
func (o *shardOrigin) frames() []shardFrame {
	all := make([]shardFrame, len(o.run.Frames))
	sections := make([]readorder.Section, len(all))
	var row int64
	for i := range o.run.Frames {
		f := &o.run.Frames[i]
		all[i] = shardFrame{frame: f, first: row, row: row}
		sections[i] = readorder.Section{Records: f.At.Rows, Keys: []readorder.Interval{{Lower: f.First, Upper: f.Last}}}
		row += f.At.Rows
	}
	if o.inTurn {
		return all
	}
	order := readorder.Spread(sections, 0)
	if o.job.Plan.Unique { // the keys of frames are unknown; if they are sorted, shuffling spreads them
		rand.New(rand.NewPCG(uint64(o.run.Shard), 0)).Shuffle(len(order),
			func(a, b int) { order[a], order[b] = order[b], order[a] })
	}
	read := make([]shardFrame, 0, len(all))
	var first int64
	for _, i := range order {
		all[i].first = first
		read = append(read, all[i])
		first += all[i].At.Rows
	}
	return read
}

// rowOf maps a row's number in reading order to its number in the run.
func rowOf(frames []shardFrame, record int64) int64 {
	f := &frames[sort.Search(len(frames), func(i int) bool { return frames[i].first > record })-1]
	return f.row + record - f.first
}

// shardRows is the source of a shardOrigin. Its pieces and splits refer to frames, which parsers read.
type shardRows struct {
	source.Pages
	source.TableRows // the row of each record has its added columns

	ctx    context.Context
	of     shardOrigin
	frames []shardFrame
	bytes  int64
	next   int
	begin  source.Place // place where reading begins; read concurrently
}

type shardFrame struct {
	*frame
	first int64 // number of rows read before it
	row   int64 // number of its first row in the run, from 0
}

func (r *shardRows) About() source.About {
	notKept := func(source.Split, table.Span) []byte { return []byte{} } // finish rereads rejects from the inputs
	return r.Keyed(r.of.key, source.About{Name: r.of.name, Bytes: r.bytes, Rejects: source.Rejects{Raw: notKept}})
}

func (r *shardRows) Identity() (source.Identity, error) {
	sum := crc32.New(castagnoli)
	for i := range r.of.run.Frames {
		f := &r.of.run.Frames[i]
		fmt.Fprintf(sum, "%d %d %d\n", f.At.Length, f.At.Rows, f.At.Sum)
	}
	return source.Identity{Bytes: r.bytes, Content: fmt.Sprintf("%d rows, %08x", r.of.run.Rows, sum.Sum32())}, nil
}

// Sample returns no records, because the table has the types of the key, and rows have everything else.
func (r *shardRows) Sample(int, []string, func(*record.Record)) (read int, err error) {
	return min(1, len(r.frames)), nil
}

// Seek moves to the frame that holds the record.
func (r *shardRows) Seek(to source.Place, _ source.Chain) {
	r.next = 0
	for r.next+1 < len(r.frames) && r.frames[r.next+1].first <= to.Record {
		r.next++
	}
	if r.next < len(r.frames) {
		r.begin.Record = r.frames[r.next].first
	}
}

func (r *shardRows) Begin() source.Place { return r.begin }

// shardPiece is one frame, which is also one split.
type shardPiece struct {
	source.Ready
	split source.Split
}

// Bytes returns the size limit of a frame, which only a frame of a single row exceeds.
func (p shardPiece) Bytes() int64 { return runfile.MaxFrameBytes }

func (r *shardRows) Next() (source.Piece, error) {
	if r.next >= len(r.frames) {
		return nil, io.EOF
	}
	f := &r.frames[r.next]
	r.next++
	return shardPiece{split: source.Split{Number: r.next - 1, Bytes: f.At.Length, Rows: f.At.Rows, First: f.first,
		Part: f}}, nil
}

func (r *shardRows) Add(p source.Piece) ([]source.Split, error) {
	return []source.Split{p.(shardPiece).split}, nil
}

func (r *shardRows) Suspend() error {
	r.Seek(source.Place{}, source.Chain{}) // whose first frame need not be the run's: rows keep their numbers
	return nil
}

func (r *shardRows) Close() error { return r.Suspend() }

func (r *shardRows) NewParser([]int) source.Parser { return &shardParser{of: r} }

// shardParser reads frames, a few at a time.
type shardParser struct {
	source.Plain // a frame is small
	of           *shardRows
	unpacker     runfile.Unpacker
}

func (p *shardParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	f := sp.Part.(*shardFrame)
	fields := make([]record.Datum, len(p.of.of.key)+len(p.of.Added))
	for i := range fields {
		fields[i] = record.Datum{Kind: record.Absent}
	}
	var made record.Row
	err = runfile.ReadFrames(p.of.ctx, p.of.of.job.store, p.of.of.run.Objects, &f.At, &p.unpacker,
		func(r *runfile.Row) error {
			made = record.Row{Key: r.Key, Body: r.Body, Size: r.Size}
			each(&record.Record{Fields: fields, Span: table.Span{Record: uint32(records)}, Row: &made})
			records++
			return nil
		})
	if err != nil {
		return records, 0, fmt.Errorf("read rows of %s: %w", p.of.of.name, err)
	}
	return records, 0, nil
}

// origins finds the input records of rows of the run. next returns the rows' numbers in the run, in ascending order.
func (o *shardOrigin) origins(ctx context.Context, next func() (number int64, more bool, err error),
	each func(number int64, r *runfile.Row) error) error {
	var unpacker runfile.Unpacker
	number, more, err := next()
	var first int64
	for i := range o.run.Frames {
		f := &o.run.Frames[i]
		if err != nil || !more {
			break
		}
		if number < first+f.At.Rows {
			at := first - 1
			if err := runfile.ReadFrames(ctx, o.job.store, o.run.Objects, &f.At, &unpacker, func(r *runfile.Row) (err error) {
				if at++; !more || number != at {
					return nil
				}
				if err := each(at, r); err != nil {
					return err
				}
				number, more, err = next()
				return err
			}); err != nil {
				return err
			}
		}
		first += f.At.Rows
	}
	if err == nil && more {
		err = fmt.Errorf("find the rejected rows of shard %d: its run has no row %d", o.run.Shard, number)
	}
	return err
}
