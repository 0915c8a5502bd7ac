package runfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/s2"
)

// Row is a row of a run: the record's encoding by package encode, and the record's position.
type Row struct {
	Key    []byte // the ordering key
	Body   []byte // PlainBuffer
	Size   int    // size as counted by the service
	Source int    // ordinal of the record's source
	Record int64  // number of the record, from 0
}

// headBytes is the size of a frame's header: length, uncompressed length, rows, and CRC-32C.
const headBytes = 16

// MaxFrameBytes limits the uncompressed rows of a frame. A frame of a single row may be larger.
const MaxFrameBytes = 1 << 20

// mostRaw is larger than any frame, even one with a row of the maximum size.
const mostRaw = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRow(dst []byte, r *Row) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(r.Key)))
	dst = binary.AppendUvarint(dst, uint64(len(r.Body)))
	dst = binary.AppendUvarint(dst, uint64(r.Size))
	dst = binary.AppendUvarint(dst, uint64(r.Source))
	dst = binary.AppendUvarint(dst, uint64(r.Record))
	return append(append(dst, r.Key...), r.Body...)
}

var errDamaged = errors.New("damaged")

// eachRow calls each with the rows of a frame, which share its memory.
func eachRow(raw []byte, each func(*Row) error) (rows int64, err error) {
	for len(raw) > 0 {
		var n [5]uint64
		for i := range n {
			v, size := binary.Uvarint(raw)
			if size <= 0 {
				return rows, errDamaged
			}
			n[i], raw = v, raw[size:]
		}
		if n[0] > uint64(len(raw)) || n[1] > uint64(len(raw))-n[0] {
			return rows, errDamaged
		}
		r := Row{Key: raw[:n[0]:n[0]], Body: raw[n[0] : n[0]+n[1] : n[0]+n[1]], Size: int(n[2]), Source: int(n[3]),
			Record: int64(n[4])}
		raw = raw[n[0]+n[1]:]
		rows++
		if err := each(&r); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// buffers holds the buffers of closed writers for reuse, because a process makes a writer for each split and shard.
var buffers sync.Pool

// mostKept limits the size of a reused buffer.
const mostKept = 4 << 20

func buffer() []byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return *b
	}
	return nil
}

func keepBuffer(b []byte) {
	if n := cap(b); n > 0 && n <= mostKept {
		b = b[:0]
		buffers.Put(&b)
	}
}

func (m *Made) pack(dst, raw []byte, rows int) []byte {
	at := len(dst)
	m.packed = s2.Encode(m.packed[:cap(m.packed)], raw)
	dst = append(append(dst, make([]byte, headBytes)...), m.packed...)
	head := dst[at:]
	binary.LittleEndian.PutUint32(head, uint32(len(dst)-at-headBytes))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(head[8:], uint32(rows))
	binary.LittleEndian.PutUint32(head[12:], frameSum(head, dst[at+headBytes:]))
	return dst
}

func frameSum(head, packed []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:12], castagnoli), castagnoli, packed)
}

// Unpacker reads frames. It is not safe for concurrent use.
type Unpacker struct{ raw []byte }

// Rows calls each with the rows of frames in order, and returns their number. A row is valid only during the call.
func (u *Unpacker) Rows(frames []byte, each func(*Row) error) (rows int64, err error) {
	for len(frames) > 0 {
		if len(frames) < headBytes {
			return rows, errDamaged
		}
		packed := uint64(binary.LittleEndian.Uint32(frames))
		size, count := binary.LittleEndian.Uint32(frames[4:]), int64(binary.LittleEndian.Uint32(frames[8:]))
		if packed > uint64(len(frames)-headBytes) || size > mostRaw {
			return rows, errDamaged
		}
		body := frames[headBytes : headBytes+packed]
		if frameSum(frames, body) != binary.LittleEndian.Uint32(frames[12:]) {
			return rows, fmt.Errorf("%w: wrong checksum", errDamaged)
		}
		if n, err := s2.DecodedLen(body); err != nil || n != int(size) {
			return rows, errDamaged
		}
		if u.raw, err = s2.Decode(u.raw[:cap(u.raw)], body); err != nil {
			return rows, fmt.Errorf("%w: %w", errDamaged, err)
		}
		n, err := eachRow(u.raw, each)
		if rows += n; err != nil {
			return rows, err
		}
		if n != count {
			return rows, errDamaged
		}
		frames = frames[headBytes+packed:]
	}
	return rows, nil
}
