package tablescan

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/source"
)

// A place holds the values of a key: each has its type, and its integer or its length and bytes. An ordering key would
// be too long for some keys, because it escapes bytes.

// appendPlace appends the place of a key, or of its first columns.
func appendPlace(dst []byte, key []table.Value) []byte {
	for _, v := range key {
		dst = append(dst, byte(v.Type))
		if v.Type == table.Integer {
			dst = binary.AppendVarint(dst, v.Int)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(v.Bytes)))
		dst = append(dst, v.Bytes...)
	}
	return dst
}

var errPlace = errors.New("a saved key cannot be decoded")

func placeValues(place []byte) (key []table.Value, err error) {
	for len(place) > 0 {
		v := table.Value{Type: table.Type(place[0])}
		if !v.Type.KeyType() {
			return nil, errPlace
		}
		place = place[1:]
		if v.Type == table.Integer {
			n := 0
			if v.Int, n = binary.Varint(place); n <= 0 {
				return nil, errPlace
			}
			key, place = append(key, v), place[n:]
			continue
		}
		length, n := binary.Uvarint(place)
		if n <= 0 || length > uint64(len(place)-n) {
			return nil, errPlace
		}
		v.Bytes, place = place[n:n+int(length)], place[n+int(length):]
		key = append(key, v)
	}
	return key, nil
}

// ShowKey formats the key of a row for users.
func ShowKey(r *scan.Row) string {
	var columns []table.KeyColumn
	for _, c := range r.PrimaryKey.PrimaryKeys {
		columns = append(columns, table.KeyColumn{Name: c.ColumnName})
	}
	return showPlace(columns, appendPlace(nil, KeyOf(r)))
}

func showPlace(columns []table.KeyColumn, place []byte) string {
	key, err := placeValues(place)
	if err != nil || len(key) > len(columns) {
		return "an unreadable key"
	}
	parts := make([]string, len(key))
	for i, v := range key {
		text := table.Show(v.Bytes)
		switch v.Type {
		case table.Integer:
			text = strconv.FormatInt(v.Int, 10)
		case table.String:
			text = strconv.Quote(text)
		}
		parts[i] = columns[i].Name + " " + text
	}
	return strings.Join(parts, ", ")
}

// Reread returns the rows with these keys, each as it is when read.
func (o *Origin) Reread(ctx context.Context, keys [][]table.Value) (source.Source, error) {
	return &some{&part{of: o, ctx: ctx, name: o.cfg.Name, one: true}, keys}, nil
}

// some reads the rows with given keys, one single-key range after another.
type some struct {
	*part
	keys [][]table.Value // keys still to be read
}

func (s *some) Next() (pg source.Piece, err error) {
	for len(s.keys) > 0 || s.pager != nil {
		if s.pager == nil {
			s.from, s.keys = s.keys[0], s.keys[1:]
			if s.to, err = scan.After(s.from); err != nil {
				return nil, err
			}
		}
		if pg, err = s.part.Next(); !errors.Is(err, io.EOF) {
			return pg, err
		}
		s.pager = nil
	}
	if err := s.of.same(s.ctx, true); err != nil {
		return nil, err
	}
	return nil, io.EOF
}
