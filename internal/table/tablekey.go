package table

import "bytes"

// Where the rows of one load go to several tables, their ordering keys begin with the table's name and a zero byte. Names
// are of letters, digits and underscores, so no name with its zero byte is the beginning of another, keys of one table stay
// together, and all that orders, queues and remembers keys continues doing so without knowing of tables.

// AppendTable begins the ordering key of a row of the table.
func AppendTable(dst []byte, name string) []byte { return append(append(dst, name...), 0) }

// AppendTableEnd appends the first key after all of the table.
func AppendTableEnd(dst []byte, name string) []byte { return append(append(dst, name...), 1) }

// CutTable cuts an ordering key that begins with a table's name into that and the rest.
func CutTable(key []byte) (name, rest []byte) {
	i := bytes.IndexByte(key, 0)
	if i < 0 {
		return nil, key
	}
	return key[:i], key[i+1:]
}
