package reader

import (
	"bytes"
	"fmt"
)

// foreign lists what the first bytes of a file that is no CSV text look like.
var foreign = []struct{ magic, format string }{
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"BZh", "bzip2"},
	{"\xfd7zXZ\x00", "xz"},
	{"\x04\x22\x4d\x18", "lz4"},
	{"\xff\x06\x00\x00sNaPpY", "snappy"},
	{"PK\x03\x04", "zip"},
	{"PAR1", "Parquet"},
	{"\xff\xfe", "UTF-16 (little endian)"},
	{"\xfe\xff", "UTF-16 (big endian)"},
}

// refuseFormat refuses a file that would be read as CSV text into rows that nobody meant.
func refuseFormat(path string, data []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return fmt.Errorf("read %s: the file is %s, not CSV text in UTF-8; convert it first", path, f.format)
		}
	}
	if bytes.IndexByte(data, '\r') >= 0 && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '"') < 0 && len(bytes.TrimRight(data, "\r")) > bytes.IndexByte(data, '\r') {
		return fmt.Errorf("read %s: lines end with CR alone; convert them to LF first", path)
	}
	return nil
}
