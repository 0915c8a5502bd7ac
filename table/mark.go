package table

import (
	"hash/crc32"
	"strconv"
)

// MaxMarkBytes bounds a mark: a job's name of 12 characters, two numbers of 13 digits at most, a checksum of 7 and what
// stands between them.
const MaxMarkBytes = 48

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendMark appends the row's mark: text that says of which job, source and record it came. It has a checksum of the
// row's bytes, so that a row is never taken for the one that stood at its place before the input was changed.
func AppendMark(dst []byte, job string, r Ref) []byte {
	dst = append(append(dst, job...), '.')
	dst = append(strconv.AppendInt(dst, int64(r.Block.Split.Ordinal), 36), '.')
	dst = append(strconv.AppendInt(dst, r.Number(), 36), '.')
	return strconv.AppendUint(dst, uint64(crc32.Checksum(r.Body(), castagnoli)), 36)
}
