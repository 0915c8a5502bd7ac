package runfile

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"example.com/tsimport/internal/jobdir"
)

// Extent is a range of rows in an object. In JSON it is a list of numbers, because a reduced run has many extents.
type Extent struct {
	Object int   // index in the list of objects
	Offset int64 // byte offset in the object
	Length int64
	Rows   int64
	Sum    uint32 // CRC-32C of its bytes
}

func (e Extent) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d,%d,%d]", e.Object, e.Offset, e.Length, e.Rows, e.Sum), nil
}

func (e *Extent) UnmarshalJSON(text []byte) error {
	var n []int64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if len(n) != 5 {
		return fmt.Errorf("an extent has %d numbers, want 5", len(n))
	}
	*e = Extent{int(n[0]), n[1], n[2], n[3], uint32(n[4])}
	return nil
}

// Object is an object that a Writer or a Sorted has put.
type Object struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Limits of a Writer.
const (
	objectBytes  = 32 << 20 // compressed size at which an object is put
	pendingBytes = 64 << 20 // rows of all shards that wait for a frame
	leastFrame   = 16 << 10
)

// Made lists the objects that a Writer or a Sorted has put.
type Made struct {
	Objects []Object
	Rows    int64
	Raw     int64 // uncompressed size of the rows

	ctx    context.Context
	store  jobdir.Store
	name   string
	packed []byte // the last frame
}

// put writes the next object, called name, name.2, name.3, ….
func (m *Made) put(body []byte) error {
	name := m.name
	if n := len(m.Objects); n > 0 {
		name = fmt.Sprintf("%s.%d", m.name, n+1)
	}
	if err := m.store.PutAbsent(m.ctx, name, body); err != nil {
		return fmt.Errorf("store rows in %s: %w", m.store, err)
	}
	m.Objects = append(m.Objects, Object{name, int64(len(body))})
	return nil
}

// add appends a row to the open frame.
func (m *Made) add(raw []byte, r *Row) []byte {
	before := len(raw)
	raw = appendRow(raw, r)
	m.Rows++
	m.Raw += int64(len(raw) - before)
	return raw
}

// Writer makes objects of rows. It is not safe for concurrent use.
type Writer struct {
	Made
	Index Object // locates the rows of each shard; set when the Writer is closed (ReadIndex)

	frame   int
	shards  []pending
	pending int64 // compressed bytes in all shards
}

// pending is the unwritten data of one shard.
type pending struct {
	raw    []byte // rows without a frame
	rows   int    // number of rows in raw
	frames []byte
	framed int64    // number of rows in frames
	made   []Extent // extents in objects
}

// NewWriter returns a writer of objects called name, name.2, name.3, …. The name must be unique to the attempt.
func NewWriter(ctx context.Context, store jobdir.Store, name string, shards int) *Writer {
	return &Writer{
		Made: Made{ctx: ctx, store: store, name: name}, shards: make([]pending, shards),
		frame: min(MaxFrameBytes, max(leastFrame, pendingBytes/max(1, shards))),
	}
}

func (w *Writer) Add(shard int, r *Row) error {
	p := &w.shards[shard]
	if p.raw == nil {
		p.raw = buffer()
	}
	if len(p.raw) > 0 && len(p.raw)+len(r.Key)+len(r.Body) > w.frame {
		if w.pack(p); w.pending >= objectBytes {
			if err := w.put(); err != nil {
				return err
			}
		}
	}
	p.raw = w.add(p.raw, r)
	p.rows++
	return nil
}

func (w *Writer) pack(p *pending) {
	before := len(p.frames)
	p.frames = w.Made.pack(p.frames, p.raw, p.rows)
	p.framed += int64(p.rows)
	w.pending += int64(len(p.frames) - before)
	p.raw, p.rows = p.raw[:0], 0
}

// put writes the frames of all shards as one object.
func (w *Writer) put() error {
	body := make([]byte, 0, w.pending)
	for i := range w.shards {
		p := &w.shards[i]
		if len(p.frames) == 0 {
			continue
		}
		p.made = append(p.made, Extent{
			Object: len(w.Objects), Offset: int64(len(body)), Length: int64(len(p.frames)), Rows: p.framed,
			Sum: crc32.Checksum(p.frames, castagnoli),
		})
		body = append(body, p.frames...)
		p.frames, p.framed = p.frames[:0], 0
	}
	w.pending = 0
	return w.Made.put(body)
}

// Close writes the remaining rows and the index. Without Close, no added row can be read.
func (w *Writer) Close() error {
	for i := range w.shards {
		if p := &w.shards[i]; p.rows > 0 {
			w.pack(p)
			keepBuffer(p.raw)
			p.raw = nil
		}
	}
	if w.pending > 0 {
		if err := w.put(); err != nil {
			return err
		}
	}
	if len(w.Objects) == 0 {
		return nil
	}
	body := make([]byte, 0, len(w.shards)*indexBytes(len(w.Objects)))
	for i := range w.shards {
		row := make([]byte, indexBytes(len(w.Objects)))
		for _, e := range w.shards[i].made {
			at := row[e.Object*extentBytes:]
			binary.LittleEndian.PutUint64(at, uint64(e.Offset))
			binary.LittleEndian.PutUint64(at[8:], uint64(e.Length))
			binary.LittleEndian.PutUint64(at[16:], uint64(e.Rows))
			binary.LittleEndian.PutUint32(at[24:], e.Sum)
		}
		at := len(row) - sumBytes
		binary.LittleEndian.PutUint32(row[at:], crc32.Checksum(row[:at], castagnoli))
		body = append(body, row...)
	}
	w.Index = Object{w.name + ".index", int64(len(body))}
	if err := w.store.PutAbsent(w.ctx, w.Index.Name, body); err != nil {
		return fmt.Errorf("store the index of rows in %s: %w", w.store, err)
	}
	return nil
}

// An index has the same number of bytes for each shard: an extent of each object, and a CRC-32C.
const (
	extentBytes = 28
	sumBytes    = 4
)

func indexBytes(objects int) int { return objects*extentBytes + sumBytes }

// ReadIndex returns a shard's extents in the objects of a Writer.
func ReadIndex(ctx context.Context, store jobdir.Store, index Object, objects, shard, shards int) (extents []Extent,
	err error) {
	n := indexBytes(objects)
	if index.Bytes != int64(n*shards) {
		return nil, fmt.Errorf("read %s in %s: %w: it has %d bytes", index.Name, store, errDamaged, index.Bytes)
	}
	row, err := store.GetRange(ctx, index.Name, int64(n*shard), int64(n))
	if err == nil && crc32.Checksum(row[:n-sumBytes], castagnoli) != binary.LittleEndian.Uint32(row[n-sumBytes:]) {
		err = fmt.Errorf("%w: wrong checksum", errDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", index.Name, store, err)
	}
	for i := range objects {
		at := row[i*extentBytes:]
		e := Extent{i, int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint64(at[8:])),
			int64(binary.LittleEndian.Uint64(at[16:])), binary.LittleEndian.Uint32(at[24:])}
		if e.Rows > 0 {
			extents = append(extents, e)
		}
	}
	return extents, nil
}

// windowBytes is the part of an extent that ReadFrames holds in memory, unless one frame is larger.
const windowBytes = 2 << 20

// ReadFrames calls each with the rows of an extent, which may be larger than the memory.
func ReadFrames(ctx context.Context, store jobdir.Store, objects []Object, e *Extent, by *Unpacker,
	each func(*Row) error) error {
	rows, at, end, window := int64(0), e.Offset, e.Offset+e.Length, int64(windowBytes)
	for at < end {
		part := Extent{Object: e.Object, Offset: at, Length: min(window, end-at), Sum: e.Sum}
		frames, err := read(ctx, store, objects, &part, part.Length == e.Length) // a part is checked by its frames' sums
		if err != nil {
			return err
		}
		whole, next := wholeFrames(frames)
		if whole == 0 {
			if window = int64(next); window > end-at || part.Length == end-at {
				return fmt.Errorf("read %s in %s: %w: a frame ends after its extent", objects[e.Object].Name, store, errDamaged)
			}
			continue
		}
		n, err := by.Rows(frames[:whole], each)
		if rows += n; err != nil {
			return err
		}
		at, window = at+int64(whole), windowBytes
	}
	if rows != e.Rows {
		return fmt.Errorf("found %d rows, want %d", rows, e.Rows)
	}
	return nil
}

// wholeFrames returns the number of bytes of text that are complete frames, and the size of the frame after them.
func wholeFrames(text []byte) (whole, next int) {
	for {
		next = headBytes
		if len(text)-whole >= headBytes {
			next += int(binary.LittleEndian.Uint32(text[whole:]))
		}
		if len(text)-whole < next {
			return whole, next
		}
		whole += next
	}
}

// Read returns the frames of an extent.
func Read(ctx context.Context, store jobdir.Store, objects []Object, e *Extent) ([]byte, error) {
	return read(ctx, store, objects, e, true)
}

func read(ctx context.Context, store jobdir.Store, objects []Object, e *Extent, summed bool) ([]byte, error) {
	if e.Object < 0 || e.Object >= len(objects) || e.Offset < 0 || e.Length < 0 ||
		e.Offset+e.Length > objects[e.Object].Bytes {
		return nil, fmt.Errorf("read rows in %s: an extent lies outside its object", store)
	}
	name := objects[e.Object].Name
	frames, err := store.GetRange(ctx, name, e.Offset, e.Length)
	if err == nil && summed && crc32.Checksum(frames, castagnoli) != e.Sum {
		err = fmt.Errorf("%w: a checksum is wrong", errDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read rows of %s in %s: %w", name, store, err)
	}
	return frames, nil
}
