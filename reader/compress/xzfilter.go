package compress

import (
	"encoding/binary"
	"io"
)

// delta undoes the xz filter that stores the difference of each byte from the byte distance positions before it.
type delta struct {
	r        io.Reader
	distance int // 1 to 256
	history  [256]byte
	pos      byte
}

func (d *delta) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	for i := range p[:n] {
		p[i] += d.history[d.pos-byte(d.distance)]
		d.history[d.pos] = p[i]
		d.pos++
	}
	return n, err
}

// arm64 undoes the xz filter that makes branch targets in ARM64 code absolute. It works on four-byte words.
type arm64 struct {
	r    io.Reader
	pos  uint32
	buf  [4096]byte
	done int // number of bytes of buf already returned
	have int // number of bytes of buf already converted
	fill int // number of bytes in buf
	err  error
}

func (a *arm64) Read(p []byte) (int, error) {
	for a.done == a.have {
		if a.err != nil {
			if a.have < a.fill { // less than a word is left at the end
				a.have = a.fill
				break
			}
			return 0, a.err
		}
		a.fill = copy(a.buf[:], a.buf[a.have:a.fill])
		a.done, a.have = 0, 0
		var n int
		n, a.err = a.r.Read(a.buf[a.fill:])
		a.fill += n
		for ; a.have+4 <= a.fill; a.have += 4 {
			word := a.buf[a.have : a.have+4]
			binary.LittleEndian.PutUint32(word, arm64Word(binary.LittleEndian.Uint32(word), a.pos))
			a.pos += 4
		}
	}
	n := copy(p, a.buf[a.done:a.have])
	a.done += n
	return n, nil
}

// arm64Word converts a BL or ADRP instruction at pos (ADRP within 512 MiB) as the .xz format defines.
func arm64Word(word, pos uint32) uint32 {
	switch {
	case word>>26 == 0x25:
		return 0x94000000 | (word-pos>>2)&0x03FFFFFF
	case word&0x9F000000 == 0x90000000:
		page := word>>29&3 | word>>3&0x001FFFFC
		if (page+0x00020000)&0x001C0000 != 0 {
			return word
		}
		page -= pos >> 12
		return word&0x9000001F | page&3<<29 | page&0x0003FFFC<<3 | -(page&0x00020000)&0x00E00000
	}
	return word
}
