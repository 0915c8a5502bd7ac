package wire

import "encoding/binary"

// AppendHeader starts a stream of rows: one header, then any number of AppendRow.
func AppendHeader(dst []byte) []byte { return append(dst, header, 0, 0, 0) }

// AppendRow writes one row for a response: key cells as they are, attribute cells with their timestamps, never an
// operation type (two SDKs cannot read it there). A section without cells is left out.
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

// AppendVariant writes a value as ReadVariant reads it.
func AppendVariant(dst []byte, c *Cell) []byte {
	dst = append(dst, byte(c.Type))
	if c.Type == String || c.Type == Binary {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Value)))
	}
	return append(dst, c.Value...)
}
