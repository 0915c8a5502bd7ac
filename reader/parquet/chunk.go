package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
)

// The number of bytes of a column to read at once: for pages and, in skipped rows, for page headers only.
const (
	readAhead   = 256 << 10
	headerBytes = 1 << 10
)

// window is a moving view of a range of the file.
type window struct {
	r    io.ReaderAt
	off  int64 // offset of the byte after buf
	end  int64
	buf  []byte // bytes read but not yet consumed
	mem  []byte
	want int // number of bytes to read at once

	owner *Parser // keeps account of the memory
}

// peek returns the next n bytes, or fewer at the end. They are valid until the next call of peek.
func (w *window) peek(n int64) ([]byte, error) {
	n = min(n, int64(len(w.buf))+w.end-w.off)
	if int64(len(w.buf)) < n {
		size := min(max(n, int64(w.want)), int64(len(w.buf))+w.end-w.off)
		if int64(cap(w.mem)) < size {
			if err := w.owner.Hold(size - int64(cap(w.mem))); err != nil {
				return nil, err
			}
			w.mem = allocate(size)
		}
		mem := w.mem[:size]
		have := copy(mem, w.buf)
		if err := readFull(w.r, mem[have:], w.off); err != nil {
			return nil, err
		}
		w.off += size - int64(have)
		w.buf = mem
	}
	return w.buf[:n], nil
}

// largeAlloc is the size above which allocations are preceded by a garbage collection, so that dropped pages are freed.
const largeAlloc = 32 << 20

func allocate(n int64) []byte {
	if n >= largeAlloc {
		runtime.GC()
	}
	return make([]byte, n)
}

func (w *window) skip(n int64) {
	if k := int64(len(w.buf)); n > k {
		w.off = min(w.end, w.off+n-k)
		n = k
	}
	w.buf = w.buf[n:]
}

func (w *window) left() int64 { return int64(len(w.buf)) + w.end - w.off }

const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

type pageHeader struct {
	kind       int32
	size       int32 // decompressed size in bytes
	stored     int32
	crc        uint32
	values     int32
	encoding   int32
	defLevels  int32 // encoding in v1, size in bytes in v2
	repLevels  int32
	compressed bool
	body       int16 // field number of the header for this kind of page
}

// readHeader parses the header at the start of the window and moves past it.
func readHeader(w *window) (*pageHeader, error) {
	for n := int64(headerBytes); ; n *= 8 {
		b, err := w.peek(n)
		if err != nil {
			return nil, err
		}
		c := &compact{b: b}
		h := parseHeader(c)
		switch {
		case c.err == nil:
			w.skip(int64(c.i))
			return h, h.check(w.left())
		case !errors.Is(c.err, io.ErrUnexpectedEOF) || int64(len(b)) < n || n > 1<<24:
			return h, fmt.Errorf("read page header: %w", c.err)
		}
	}
}

func parseHeader(c *compact) *pageHeader {
	h := &pageHeader{compressed: true, kind: -1, size: -1, stored: -1}
	body := func(id int16, wanted ...field) field {
		return field{id, func(t byte) {
			h.body = id
			c.fields(t, wanted...)
		}}
	}
	values := field{1, &h.values}
	crc := func(t byte) { h.crc = uint32(c.integer(t)) }
	c.fields(thriftStruct, field{1, &h.kind}, field{2, &h.size}, field{3, &h.stored}, field{4, crc},
		body(5, values, field{2, &h.encoding}, field{3, &h.defLevels}, field{4, &h.repLevels}),
		body(7, values, field{2, &h.encoding}),
		body(8, values, field{4, &h.encoding}, field{5, &h.defLevels}, field{6, &h.repLevels},
			field{7, &h.compressed}))
	return h
}

// check refuses impossible headers. left is the number of bytes of the column after the header.
func (h *pageHeader) check(left int64) error {
	bodies := map[int32]int16{pageData: 5, pageDictionary: 7, pageDataV2: 8}
	want, known := bodies[h.kind]
	switch {
	case h.size < 0 || h.stored < 0 || h.values < 0:
		return errors.New("page header with a negative size or count")
	case int64(h.stored) > left:
		return fmt.Errorf("page of %d bytes, but the column has %d left", h.stored, left)
	case known && want != h.body:
		return fmt.Errorf("page of type %d lacks its header", h.kind)
	case h.kind == pageDataV2 && (h.defLevels < 0 || h.repLevels < 0 ||
		int64(h.defLevels)+int64(h.repLevels) > int64(min(h.size, h.stored))):
		return errors.New("page whose levels are larger than the page")
	}
	return nil
}

// load reads, checks and decompresses a page. The result points into the window or mem.
func (h *pageHeader) load(w *window, codec int32, mem *[]byte) (body []byte, levels []byte, err error) {
	b, err := w.peek(int64(h.stored))
	if err != nil {
		return nil, nil, err
	}
	if len(b) != int(h.stored) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	w.skip(int64(h.stored))
	// Some writers store 0 if they do not compute a checksum.
	if h.crc != 0 && crc32.ChecksumIEEE(b) != h.crc {
		return nil, nil, fmt.Errorf("page checksum is %08x, but its bytes give %08x", h.crc, crc32.ChecksumIEEE(b))
	}
	size := int(h.size)
	if h.kind == pageDataV2 {
		n := int(h.defLevels) + int(h.repLevels)
		levels, b, size = b[:n], b[n:], size-n
		// A page of nulls has no values to compress. Some writers compress the empty body, others do not.
		if !h.compressed || len(b) == 0 {
			codec = codecNone
		}
	}
	if codec == codecNone {
		if len(b) != size {
			return nil, nil, errPageSize
		}
		return b, levels, nil
	}
	if b, err = decompress(codec, *mem, b, size); err == nil {
		*mem = b
	}
	return b, levels, err
}

// needs returns the memory for a page and its values, apart from the stored bytes.
func (h *pageHeader) needs(codec int32) (n int64) {
	if codec != codecNone || h.kind == pageDictionary {
		n = int64(h.size)
	}
	if h.encoding == encDeltaByteArray {
		n += 2*int64(h.size) + deltaScratch // the values and the previous value
	}
	return n
}

// splitLevels separates the levels of a v1 page from its body. Their length precedes them.
func splitLevels(b []byte, encoding int32, width uint, n int32, levels *hybrid) ([]byte, error) {
	if encoding == encBitPacked {
		size := (int64(n)*int64(width) + 7) / 8
		if size > int64(len(b)) {
			return nil, errShort
		}
		levels.resetPacked(b[:size], width)
		return b[size:], nil
	}
	if encoding != encRLE {
		return nil, fmt.Errorf("encoding %d of levels is not supported", encoding)
	}
	if len(b) < 4 {
		return nil, errShort
	}
	size := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(size) > uint64(len(b)) {
		return nil, errShort
	}
	return b[size:], levels.reset(b[:size], width)
}
