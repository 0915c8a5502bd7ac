package archive

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

type part struct {
	source.Pages
	source.TableRows
	ctx   context.Context
	of    *Origin
	entry *Part
	name  string

	bytes  int // size of a split; 0 means splitBytes
	in     *reading
	splits int
}

// splitBytes is the approximate amount of text in a split.
const splitBytes = 1 << 20

type reading struct {
	file   io.ReadCloser
	sum    hash.Hash
	packed int64 // bytes of the file read so far
	text   *zstd.Decoder
	lines  *bufio.Reader // lines of the decompressed text
	rows   int64         // rows read so far
	offset int64         // bytes of text read so far
	ended  bool
}

func (p *part) About() source.About {
	return p.Keyed(p.of.key, source.About{
		Name: p.name, Bytes: p.entry.Bytes, Pieces: 2 * int64(p.size()), Seeking: source.SeeksByReading,
	})
}

func (p *part) Identity() (source.Identity, error) {
	return source.Identity{Bytes: p.entry.Bytes, Content: p.entry.SHA256}, nil
}

func (p *part) size() int { return cmp.Or(p.bytes, splitBytes) }

func (p *part) SetSplitBytes(n int) { p.bytes = n }

// sampleBytes is the approximate amount of text that Sample reads at once.
const sampleBytes = 64 << 10

func (p *part) Sample(budget int, _ []string, each func(*record.Record)) (read int, err error) {
	look := &part{ctx: p.ctx, of: p.of, entry: p.entry, name: p.name, TableRows: p.TableRows,
		bytes: min(max(budget, 1), sampleBytes)}
	defer func() { err = errors.Join(err, look.Close()) }()
	parser := look.NewParser(nil)
	for read < budget {
		next, err := look.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return max(read, 1), nil // the load will report the error
		}
		pc := next.(*piece)
		if _, _, err := parser.Parse(source.Split{Data: pc.text}, each); err != nil {
			return max(read, 1), err
		}
		read += len(pc.text)
	}
	return read, nil
}

// Seek does nothing: parts are small, so reading always begins at the first row.
func (p *part) Seek(source.Place, source.Chain) {}

func (p *part) Begin() source.Place { return source.Place{} }

type piece struct {
	source.Ready
	text          []byte
	rows          int64
	first, offset int64
}

func (pc *piece) Bytes() int64 { return int64(cap(pc.text)) }

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.file.Read(b)
	r.sum.Write(b[:n])
	r.packed += int64(n)
	return n, err
}

func (p *part) open() error {
	file, err := p.of.m.Open(p.ctx, p.entry)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	r := &reading{file: file, sum: sha256.New()}
	if r.text, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err != nil {
		return errors.Join(fmt.Errorf("read %s: %w", p.name, err), file.Close())
	}
	r.lines = bufio.NewReaderSize(r.text, 64<<10)
	p.in, p.splits = r, 0
	return nil
}

func (p *part) Next() (source.Piece, error) {
	if p.in == nil {
		if err := p.open(); err != nil {
			return nil, err
		}
	}
	r := p.in
	if r.ended {
		return nil, io.EOF
	}
	pc := &piece{text: make([]byte, 0, p.size()), first: r.rows, offset: r.offset}
	for ended := true; !r.ended && (!ended || len(pc.text) < p.size()); {
		text, err := r.lines.ReadSlice('\n')
		pc.text = append(pc.text, text...)
		switch {
		case err == nil:
			pc.rows++
		case errors.Is(err, io.EOF) && ended && len(text) == 0:
			r.ended = true
		case errors.Is(err, io.EOF):
			return nil, p.damaged("it ends inside a row")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, p.damaged(err.Error())
		}
		ended = err == nil
	}
	r.rows, r.offset = r.rows+pc.rows, r.offset+int64(len(pc.text))
	if r.ended {
		if err := p.whole(r); err != nil {
			return nil, err
		}
		if len(pc.text) == 0 {
			return nil, io.EOF
		}
	}
	return pc, nil
}

// whole checks at the end of the part that it did not change while it was read.
func (p *part) whole(r *reading) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("read %s: %w", p.name, err)
	}
	switch e := p.entry; {
	case hex.EncodeToString(r.sum.Sum(nil)) != e.SHA256 || r.packed != e.Bytes:
		return p.damaged("it was changed while it was read")
	case r.rows != e.Rows || r.offset != e.Text:
		return p.damaged(fmt.Sprintf("it has %d rows in %d bytes, not %d in %d", r.rows, r.offset, e.Rows, e.Text))
	}
	return nil
}

func (p *part) damaged(why string) error {
	return &DamagedError{Path: p.of.m.Path(p.entry), Why: why}
}

func (p *part) Add(next source.Piece) ([]source.Split, error) {
	pc := next.(*piece)
	p.splits++
	bytes := p.entry.Bytes * int64(len(pc.text)) / max(p.entry.Text, 1)
	return []source.Split{{Number: p.splits - 1, Data: pc.text, Offset: pc.offset, Bytes: bytes, Rows: pc.rows,
		First: pc.first}}, nil
}

func (p *part) Suspend() error { return p.Close() }

func (p *part) Close() error {
	r := p.in
	if p.in = nil; r == nil {
		return nil
	}
	r.text.Close()
	return r.file.Close()
}

func (p *part) NewParser([]int) source.Parser {
	return &parser{Parser: jsonl.NewParser(jsonl.Options{Columns: p.About().Columns, Archive: len(p.of.key)})}
}

type parser struct {
	source.Plain // a parsed row takes little more memory than its text
	*jsonl.Parser
}

func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	p.Reset(sp.Data)
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		each(rec)
	}
	return p.Records(), 0, nil
}

// Origin provides an archive's parts as sources.
type Origin struct {
	source.Undivided
	m       *Manifest
	key     []table.KeyColumn
	checked bool
}

func New(m *Manifest) *Origin { return &Origin{m: m, key: m.Key} }

// ByParts makes Open not check the parts, because another process has. Each part is checked again as it is read.
func (o *Origin) ByParts() { o.checked = true }

// Position returns a time just before the export began, by the clock of the exporting machine.
func (o *Origin) Position() (p source.Position) {
	if !o.m.Began.IsZero() {
		p.ResumeFrom = source.ResumeAt(o.m.Began.Add(-source.Lead))
	}
	return p
}

// Open opens all parts. The first call checks them.
func (o *Origin) Open(ctx context.Context, _ []byte) (parts []source.Source, err error) {
	if !o.checked {
		if err := o.m.Check(ctx); err != nil {
			return nil, err
		}
		o.checked = true
	}
	for i := range o.m.Parts {
		p := &o.m.Parts[i]
		parts = append(parts, &part{ctx: ctx, of: o, entry: p,
			name: path.Join(path.Base(filepath.ToSlash(o.m.Dir())), p.Name)})
	}
	return parts, nil
}
