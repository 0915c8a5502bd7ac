package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/intake"
)

// aside keeps the inputs' rows for Changes. Only places of rows are sorted; the few rows that differ are read singly.
type aside struct {
	store  *spill.Store // the sorter's store
	memory int          // bytes left for blocks in memory, so that a sync of few rows needs no disk
	blocks []asideBlock
}

type asideBlock struct {
	data []byte // nil if on disk
	on   spill.Frame
}

// add stores a block. Calls of appendPlace refer to rows of the block that was added last.
func (a *aside) add(b *table.Block) (err error) {
	var kept asideBlock
	if a.memory -= len(b.Data); a.memory >= 0 {
		kept.data = bytes.Clone(b.Data)
	} else if kept.on, err = a.store.Keep(b.Data); err != nil {
		return err
	}
	a.blocks = append(a.blocks, kept)
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// placeBytes is the approximate size of a place.
const placeBytes = 13

// appendPlace appends a row's place (block, offset and length in it, cost in units, checksum) and the place's length.
func (a *aside) appendPlace(dst []byte, ref table.Ref) []byte {
	before := len(dst)
	from, to := ref.Within()
	for _, n := range [...]uint64{uint64(len(a.blocks) - 1), uint64(from), uint64(to - from), uint64(ref.Row().Units())} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(ref.Body(), castagnoli))
	return append(dst, byte(len(dst)-before))
}

// cutPlace separates a value from the place that was appended to it.
func cutPlace(value []byte) (reduced, place []byte) {
	end := len(value) - 1
	from := end - int(value[end])
	return value[:from], value[from:end]
}

type place struct {
	block, from, bytes, units uint64
	sum                       uint32
}

// placeOf decodes a place, and returns the bytes after it.
func placeOf(b []byte) (p place, rest []byte) {
	for _, to := range [...]*uint64{&p.block, &p.from, &p.bytes, &p.units} {
		n := 0
		*to, n = binary.Uvarint(b)
		b = b[n:]
	}
	p.sum = binary.LittleEndian.Uint32(b)
	return p, b[4:]
}

func (a *aside) read(p place) ([]byte, error) {
	block, body := a.blocks[p.block], make([]byte, p.bytes)
	if block.data != nil {
		copy(body, block.data[p.from:])
	} else if err := a.store.ReadAt(block.on, body, int64(p.from)); err != nil {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != p.sum {
		return nil, fmt.Errorf("reread a row of %d bytes: the checksum differs, so the temporary file was changed or the "+
			"disk is damaged; run again with another TMPDIR", p.bytes)
	}
	return body, nil
}

// bodies returns the kept rows of a key as PlainBuffer bytes.
func (t *tally) bodies(w *want) (all [][]byte, err error) {
	key, err := decodeKey(t.table.Key, w.key[len(t.table.prefix):])
	if err != nil {
		return nil, err
	}
	if t.whole == nil {
		t.whole = intake.Whole(t.v.plan)
	}
	for rest := w.aside; len(rest) > 0; {
		var at place
		at, rest = placeOf(rest)
		body, err := t.v.rows.read(at)
		if err == nil {
			body, err = t.whole(key, body)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, body)
	}
	return all, nil
}
