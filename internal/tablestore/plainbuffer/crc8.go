package plainbuffer

import "encoding/binary"

// crcTables[0] is the table of CRC-8 with polynomial 0x07 (start 0, not reflected, no final xor). crcTables[k] has the
// effect of a byte followed by k others. Processing many bytes at once avoids a slow chain of dependent loads.
var crcTables = makeCRCTables()

func makeCRCTables() (t [16][256]byte) {
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
	for k := 1; k < len(t); k++ {
		for i := range 256 {
			t[k][i] = t[0][t[k-1][i]]
		}
	}
	return t
}

func crcByte(crc, b byte) byte { return crcTables[0][crc^b] }

func crc32LE(crc byte, v uint32) byte {
	t := &crcTables
	return t[3][crc^byte(v)] ^ t[2][byte(v>>8)] ^ t[1][byte(v>>16)] ^ t[0][byte(v>>24)]
}

func crc64LE(crc byte, v uint64) byte {
	t := &crcTables
	return t[7][crc^byte(v)] ^ t[6][byte(v>>8)] ^ t[5][byte(v>>16)] ^ t[4][byte(v>>24)] ^
		t[3][byte(v>>32)] ^ t[2][byte(v>>40)] ^ t[1][byte(v>>48)] ^ t[0][byte(v>>56)]
}

func crcBytes(crc byte, b []byte) byte {
	if n := len(b) & 7; n > 0 { // padded in front with zeros, which have no effect
		var v uint64
		switch {
		case len(b) >= 8:
			v = binary.LittleEndian.Uint64(b)
		case n >= 4:
			v = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(8*(n-4))
		default:
			v = uint64(b[0]) | uint64(b[n/2])<<(8*(n/2)) | uint64(b[n-1])<<(8*(n-1))
		}
		crc = crc64LE(0, (v^uint64(crc))<<(64-8*n))
		b = b[n:]
	}
	t := &crcTables
	for len(b) >= 16 {
		v, w := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		crc = t[15][crc^byte(v)] ^ t[14][byte(v>>8)] ^ t[13][byte(v>>16)] ^ t[12][byte(v>>24)] ^
			t[11][byte(v>>32)] ^ t[10][byte(v>>40)] ^ t[9][byte(v>>48)] ^ t[8][byte(v>>56)] ^
			t[7][byte(w)] ^ t[6][byte(w>>8)] ^ t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
		b = b[16:]
	}
	if len(b) >= 8 {
		crc = crc64LE(crc, binary.LittleEndian.Uint64(b))
	}
	return crc
}
