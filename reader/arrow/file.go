package arrow

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Magic is at the beginning and at the end of a file.
const Magic = "ARROW1"

// File is an Arrow file, or a stream with random access. Any number of Parsers may read it concurrently.
type File struct {
	layout
	r         io.ReaderAt
	size      int64
	o         Options
	batches   []block
	described []block // dictionaries listed in the footer
	splits    []Split
	rows      int64

	mu    sync.Mutex
	dicts map[int64]*dictionary // nil until first used
}

// block is the position of a message in a file.
type block struct {
	at, metadata, body int64 // offset; size of the prefix with the metadata; size of the body
}

// Open finds the record batches in r, which has size bytes. Errors include name.
func Open(r io.ReaderAt, size int64, name string, o Options) (f *File, err error) {
	f = &File{r: r, size: size, o: o}
	f.name = name
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	defer damaged(&err)
	head := make([]byte, len(Magic))
	if n, err := f.r.ReadAt(head, 0); n < len(head) {
		return unexpected(err)
	}
	if err := refuseFeather1(head); err != nil {
		return err
	}
	switch {
	case string(head) == Magic:
		err = f.readFooter()
	case mayBegin(head):
		err = f.scan()
	default:
		err = errNeither
	}
	if err != nil {
		return err
	}
	return f.replaced()
}

func (f *File) readFooter() error {
	var end [4 + len(Magic)]byte
	if f.size < int64(len(end)+8) {
		return errors.New("it is truncated")
	}
	if _, err := f.r.ReadAt(end[:], f.size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	n := int64(int32(binary.LittleEndian.Uint32(end[:])))
	switch {
	case string(end[4:]) != Magic:
		return errors.New("its end marker is missing: it is truncated, or its writer did not close it")
	case n <= 0 || n > f.size-int64(len(end)+8):
		return fmt.Errorf("a footer of %d bytes does not fit in the file", n)
	case n > f.o.metadata():
		return fmt.Errorf("the footer takes %d bytes, but the limit is %d; give more memory with --memory", n, f.o.metadata())
	}
	b := make([]byte, n)
	if k, err := f.r.ReadAt(b, f.size-int64(len(end))-n); k < len(b) {
		return noEOF(err)
	}
	t := newFlat(b).root()
	head, _ := t.child(1)
	version := t.number(0, 2, 0)
	if version == 0 { // Arrow 0.14 does not set it
		version = f.versionBefore()
	}
	f.layout = newLayout(f.name, readSchema(head, version), f.o.Flatten)
	f.described = blocks(t, 2)
	found := blocks(t, 3)
	if err := checkBlocks(append(slices.Clone(f.described), found...), f.size); err != nil {
		return err
	}
	for _, at := range found {
		m, err := f.message(at)
		if err == nil {
			err = f.addBatch(at, m)
		}
		if err != nil {
			return f.inBatch(len(f.batches), err)
		}
	}
	return nil
}

// versionBefore returns the version in the schema before the first batch, or 0 if that cannot be read.
func (f *File) versionBefore() int64 {
	b, _, err := nextMetadata(bufio.NewReaderSize(io.NewSectionReader(f.r, 8, f.size-8), scanned), f.o.metadata())
	if err != nil || b == nil {
		return 0
	}
	if m, err := readMessage(b); err == nil && m.kind == messageSchema {
		return m.schema.version
	}
	return 0
}

func blocks(t flatTable, i int) []block {
	words := t.words(i, 3)
	all := make([]block, len(words)/3)
	for k := range all {
		all[k] = block{at: words[3*k], metadata: int64(int32(words[3*k+1])), body: words[3*k+2]}
	}
	return all
}

// checkBlocks checks that blocks are inside the file and do not overlap, so that no batch is read twice.
func checkBlocks(all []block, size int64) error {
	slices.SortFunc(all, func(a, b block) int { return cmp.Compare(a.at, b.at) })
	end := int64(len(Magic))
	for _, b := range all {
		if b.at < end || b.metadata < 8 || b.body < 0 || b.at > size-b.metadata || b.body > size-b.at-b.metadata {
			return fmt.Errorf("the footer lists a message with an impossible offset or size: byte %d", b.at)
		}
		end = b.at + b.metadata + b.body
	}
	return nil
}

func (f *File) message(at block) (message, error) {
	if at.metadata > f.o.metadata() {
		return message{}, tooLarge(at.metadata, f.o.metadata())
	}
	raw := make([]byte, at.metadata) // in one read, because the file may be remote
	if n, err := f.r.ReadAt(raw, at.at); n < len(raw) {
		return message{}, unexpected(err)
	}
	b, _, err := nextMetadata(bytes.NewReader(raw), f.o.metadata())
	if err != nil {
		return message{}, unexpected(err)
	}
	m, err := readMessage(b)
	if err == nil && m.body != at.body {
		err = fmt.Errorf("the message has a body of %d bytes, but the footer says %d", m.body, at.body)
	}
	return m, err
}

func (f *File) addBatch(at block, m message) error {
	if m.kind != messageBatch {
		return errors.New("the message is not a record batch")
	}
	b, err := readBatch(m.head, m.body, f.schema.version)
	if err != nil {
		return err
	}
	whole := Split{Group: len(f.batches), Rows: b.rows, FirstRow: f.rows, Bytes: m.body}
	for _, s := range whole.Cut(f.o.SplitRows, m.body) {
		s.Number = len(f.splits)
		f.splits = append(f.splits, s)
	}
	f.batches = append(f.batches, at)
	if f.rows += b.rows; f.rows > maxRows {
		return fmt.Errorf("impossible number of rows: %d", f.rows)
	}
	return nil
}

func (f *File) inBatch(i int, err error) error { return fmt.Errorf("record batch %d: %w", i, err) }

// scanned is the size of the first read of a message's metadata. It is enough for most messages.
const scanned = 16 << 10

// scan finds the messages of a stream, which has no footer.
func (f *File) scan() error {
	at := int64(0)
	for {
		b, taken, err := nextMetadata(bufio.NewReaderSize(io.NewSectionReader(f.r, at, f.size-at), scanned), f.o.metadata())
		switch {
		case err == io.EOF:
			return errNoEnd
		case err != nil:
			return unexpected(err)
		case b == nil && at+taken < f.size:
			return errMore
		case b == nil && f.schema == nil:
			return errors.New("it has no schema")
		case b == nil:
			return nil
		}
		m, err := readMessage(b)
		if err != nil {
			return err
		}
		where := block{at, taken, m.body}
		if m.body > f.size-at-taken {
			return unexpected(io.EOF)
		}
		at += taken + m.body
		switch {
		case (m.kind == messageSchema) != (f.schema == nil):
			return errOrder
		case m.kind == messageSchema:
			f.layout = newLayout(f.name, m.schema, f.o.Flatten)
		case m.kind == messageDictionary:
			f.described = append(f.described, where)
		default:
			if err := f.addBatch(where, m); err != nil {
				return f.inBatch(len(f.batches), err)
			}
		}
	}
}

// mayBegin reports whether a stream can begin with head: a continuation mark or, before Arrow 0.15, a length.
func mayBegin(head []byte) bool {
	return len(head) >= 4 && (binary.LittleEndian.Uint32(head) == continuation || binary.LittleEndian.Uint32(head) < 1<<24)
}

var (
	errNeither = errors.New("it is neither an Arrow file nor an Arrow stream")
	errNoEnd   = errors.New("the stream ends without its end mark, as if its writer had been stopped; if it is whole, " +
		"add the mark: printf '\\377\\377\\377\\377\\0\\0\\0\\0' >>FILE")
	errMore  = errors.New("data follows the end mark of the stream; put each stream into its own file")
	errOrder = errors.New("the schema is not the first message, or there are two schemas")
)

// dictionaries returns all dictionaries. They stay in memory until Forget.
func (f *File) dictionaries() (map[int64]*dictionary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dicts != nil {
		return f.dicts, nil
	}
	all := map[int64]*dictionary{}
	for _, at := range f.described {
		m, err := f.message(at)
		if err == nil && m.kind != messageDictionary {
			err = fmt.Errorf("the message at byte %d, which the footer lists as a dictionary, is not one", at.at)
		}
		if err == nil {
			all, err = f.takeDictionary(m, body{r: f.r, at: at.at + at.metadata}, all, f.o.MaxDictionary)
		}
		if err != nil {
			return nil, err
		}
	}
	f.dicts = all
	return all, nil
}

// replaced returns ErrReplaced if the file replaces a dictionary; such a file must be read in order.
func (f *File) replaced() error {
	seen := map[int64]bool{}
	for _, at := range f.described {
		m, err := f.message(at)
		if err != nil {
			return err
		}
		id := m.head.number(0, 8, 0)
		if seen[id] && !m.head.flag(2) {
			return fmt.Errorf("dictionary %d: %w", id, ErrReplaced)
		}
		seen[id] = true
	}
	return nil
}

// Forget frees the dictionaries. They are read again when needed.
func (f *File) Forget() {
	f.mu.Lock()
	f.dicts = nil
	f.mu.Unlock()
}

// Rows returns the total number of rows in all record batches.
func (f *File) Rows() int64 { return f.rows }

// Splits returns the splits in row order.
func (f *File) Splits() []Split { return f.splits }
