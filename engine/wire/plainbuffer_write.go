package wire

import "encoding/binary"

// AppendHeader appends the header of a stream of rows. Any number of rows may follow.
func AppendHeader(dst []byte) []byte { return append(dst, header, 0, 0, 0) }

// AppendRow appends one row of an answer. It omits empty sections and operation types, which two SDKs cannot decode.
func AppendRow(dst []byte, key, cells []Cell) []byte {
	crc := byte(0)
	if len(key) > 0 {
		dst = append(dst, tagKey)
	}
	for i := range key {
		dst, crc = appendCell(dst, &key[i], crc)
	}
	if len(cells) > 0 {
		dst = append(dst, tagData)
		for i := range cells {
			dst, crc = appendCell(dst, &cells[i], crc)
		}
	}
	return append(dst, tagRowChecksum, crc8Byte(crc, 0))
}

func appendCell(dst []byte, c *Cell, rowCRC byte) ([]byte, byte) {
	dst = append(dst, tagCell, tagName)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Name)))
	dst = append(dst, c.Name...)
	crc := crc8(0, c.Name)
	if c.Type != NoValue {
		dst = append(dst, tagValue, 0, 0, 0, 0)
		from := len(dst)
		dst = AppendVariant(dst, c)
		binary.LittleEndian.PutUint32(dst[from-4:], uint32(len(dst)-from))
		crc = crc8(crc, dst[from:])
	}
	if c.Stamped {
		dst = append(dst, tagTimestamp)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Timestamp))
		crc = crc8Int64(crc, c.Timestamp)
	}
	return append(dst, tagCellChecksum, crc), crc8Byte(rowCRC, crc)
}

// AppendVariant appends a value as ReadVariant expects it.
func AppendVariant(dst []byte, c *Cell) []byte {
	dst = append(dst, byte(c.Type))
	if c.Type == String || c.Type == Binary {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Value)))
	}
	return append(dst, c.Value...)
}

// crcTables holds the CRC-8 with polynomial 0x07 of a byte followed by 0…7 zero bytes. With a single table, each byte
// takes a dependent load (2 ns, a third of the decoder's time); with eight, eight bytes are looked up independently.
var crcTables = func() (t [8][256]byte) {
	for i := range 256 {
		c := byte(i)
		for range 8 {
			if c&0x80 != 0 {
				c = c<<1 ^ 0x07
			} else {
				c <<= 1
			}
		}
		t[0][i] = c
	}
	for k := 1; k < 8; k++ {
		for i := range 256 {
			t[k][i] = t[0][t[k-1][i]]
		}
	}
	return t
}()

// crc8 continues crc over b (CRC-8/SMBUS: polynomial 0x07, initial value 0, no reflection).
func crc8(crc byte, b []byte) byte {
	for len(b) >= 8 {
		crc = crcTables[7][crc^b[0]] ^ crcTables[6][b[1]] ^ crcTables[5][b[2]] ^ crcTables[4][b[3]] ^
			crcTables[3][b[4]] ^ crcTables[2][b[5]] ^ crcTables[1][b[6]] ^ crcTables[0][b[7]]
		b = b[8:]
	}
	for _, c := range b {
		crc = crcTables[0][crc^c]
	}
	return crc
}

func crc8Byte(crc, b byte) byte { return crcTables[0][crc^b] }

func crc8Int64(crc byte, v int64) byte {
	u := uint64(v)
	return crcTables[7][crc^byte(u)] ^ crcTables[6][byte(u>>8)] ^ crcTables[5][byte(u>>16)] ^ crcTables[4][byte(u>>24)] ^
		crcTables[3][byte(u>>32)] ^ crcTables[2][byte(u>>40)] ^ crcTables[1][byte(u>>48)] ^ crcTables[0][byte(u>>56)]
}
