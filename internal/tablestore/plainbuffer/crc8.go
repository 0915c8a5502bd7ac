package plainbuffer

import "encoding/binary"

// crcTables[0] is the table of CRC-8 with polynomial 0x07 (start 0, not reflected, no final xor); crcTables[k] is the
// effect of a byte that k further bytes follow. Eight bytes at a time break the chain of dependent loads that makes
// the plain table walk slow.
var crcTables = makeCRCTables()

func makeCRCTables() *[8][256]byte {
	var t [8][256]byte
	for i := range 256 {
		x := byte(i)
		for range 8 {
			carry := x & 0x80
			x <<= 1
			if carry != 0 {
				x ^= 0x07
			}
		}
		t[0][i] = x
	}
	for k := 1; k < 8; k++ {
		for i := range 256 {
			t[k][i] = t[0][t[k-1][i]]
		}
	}
	return &t
}

func crcByte(crc, b byte) byte { return crcTables[0][crc^b] }

func crc32LE(crc byte, v uint32) byte {
	t := crcTables
	return t[3][crc^byte(v)] ^ t[2][byte(v>>8)] ^ t[1][byte(v>>16)] ^ t[0][byte(v>>24)]
}

func crc64LE(crc byte, v uint64) byte {
	t := crcTables
	return t[7][crc^byte(v)] ^ t[6][byte(v>>8)] ^ t[5][byte(v>>16)] ^ t[4][byte(v>>24)] ^
		t[3][byte(v>>32)] ^ t[2][byte(v>>40)] ^ t[1][byte(v>>48)] ^ t[0][byte(v>>56)]
}

func crcBytes(crc byte, b []byte) byte {
	for len(b) >= 8 {
		crc = crc64LE(crc, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) >= 4 {
		crc = crc32LE(crc, binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	for _, c := range b {
		crc = crcTables[0][crc^c]
	}
	return crc
}
