package reader

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"slices"

	"example.com/tsimport/reader/arrow"
	"example.com/tsimport/reader/parquet"
	"example.com/tsimport/reader/record"
)

// Parquet is the format of Parquet files, which are read with random access.
var Parquet Format = &RowFormat{
	Name:   "parquet",
	Begins: func(head []byte) bool { return bytes.HasPrefix(head, []byte("PAR1")) },
	Open: func(in RowInput) (*RowFile, error) {
		f, err := parquet.Open(in.At, in.Size, in.Name, parquet.Options{Flatten: in.Flatten, MaxFooter: in.Memory / 8})
		if err != nil {
			return nil, err
		}
		return &RowFile{
			Columns: f.Columns(), Rows: f.Rows(), Splits: f.Splits(), Large: f.LargePages(largePage), CheckMemory: f.CheckMemory,
			NewParser: func(columns []int) RowParser { return f.NewParser(columns) },
			Measures: func() []record.Measures {
				all := f.Measures()
				addDurations(all, f, in)
				return all
			},
		}, nil
	},
}

// Arrow is the format of Arrow files, which are read with random access, and Arrow streams.
var Arrow Format = &RowFormat{
	Name:   "arrow",
	Begins: isArrow,
	Open: func(in RowInput) (*RowFile, error) {
		f, err := arrow.Open(in.At, in.Size, in.Name, arrowOptions(in))
		if err != nil {
			return nil, err
		}
		return &RowFile{
			Columns: f.Columns(), Rows: f.Rows(), Splits: f.Splits(), Measures: f.Measures, Forget: f.Forget,
			NewParser: func(columns []int) RowParser { return f.NewParser(columns) },
		}, nil
	},
	inOrder: func(in RowInput, r io.Reader) (*arrow.Stream, error) {
		return arrow.NewStream(r, in.Name, arrowOptions(in))
	},
}

// largePage is the size of a Parquet page that is too large to read again for a few hundred rows.
const largePage = 8 << 20

func arrowOptions(in RowInput) arrow.Options {
	return arrow.Options{Flatten: in.Flatten, MaxMetadata: in.Memory / 8, MaxDictionary: in.Memory / 4, MaxBody: in.Memory}
}

// addDurations adds the units of durations from the Arrow schema in the file: Parquet has no type for durations.
func addDurations(all []record.Measures, f *parquet.File, in RowInput) {
	schema, err := base64.StdEncoding.DecodeString(f.ArrowSchema())
	if err != nil || len(schema) == 0 {
		return
	}
	from, err := arrow.NewStream(bytes.NewReader(schema), in.Name, arrowOptions(in))
	if err != nil {
		return // an unknown version; the file's own types apply
	}
	for i, of := range from.Measures() {
		k := slices.Index(f.Columns(), from.Columns()[i])
		for path, d := range of {
			if k >= 0 && d.Kind == record.Integer && all[k][path].Kind == record.Integer {
				all[k][path] = record.Datum{Kind: record.Integer, Unit: d.Unit}
			}
		}
	}
}

func isArrow(head []byte) bool {
	return bytes.HasPrefix(head, []byte(arrow.Magic+"\x00\x00")) || isArrowStream(head)
}

func isArrowStream(head []byte) bool {
	if len(head) < 16 || binary.LittleEndian.Uint32(head) != 0xffffffff {
		return false
	}
	n := binary.LittleEndian.Uint32(head[4:])
	return n > 8 && n%8 == 0 && n < 16<<20
}
