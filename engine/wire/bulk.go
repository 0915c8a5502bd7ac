package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// DecodeBulkImport decodes BulkImport, which writes rows of one table without conditions.
func (r *WriteRequest) DecodeBulkImport(b []byte) *Error {
	n, err := countRows(b)
	switch {
	case err != nil:
		return err
	case n > MaxBatchWriteRows:
		return Invalid("Rows count exceeds the upper limit: %d.", MaxBatchWriteRows)
	}
	var name TableName
	if err := (message{{1, "table_name", &name}, {2, "", r.bulkRow}}).read(b); err != nil {
		return err
	}
	if n == 0 {
		return noOperation(name)
	}
	r.Tables = append(r.Tables, TableChanges{name, r.rows})
	return r.checkTotal("BulkImport")
}

func (r *WriteRequest) bulkRow(b []byte) *Error {
	var op Optional[int32]
	var row []byte
	if err := (message{{1, "type", &op}, {2, "row_change", &row}}).read(b); err != nil {
		return err
	}
	r.rows = append(r.rows, Change{})
	return r.decodeRow(&r.rows[len(r.rows)-1], op.Value, row)
}

// AppendBulkImport appends the body of an answer to BulkImport, with the sizes of written rows and zero capacity units.
func AppendBulkImport(dst []byte, t *TableOutcomes, sizes []int) []byte {
	dst = appendBytes(dst, 1, t.Name)
	var row []byte
	for i := range t.Outcomes {
		o := &t.Outcomes[i]
		if row = row[:0]; o.Err != nil {
			row = appendOutcome(row, o, false)
		} else {
			row = appendBulkUnits(appendInt(row, 1, 1), 3, 0, sizes[i])
		}
		dst = appendBytes(dst, 2, row)
	}
	return dst
}

// appendBulkUnits appends the bytes read and written, and zero capacity units.
func appendBulkUnits(dst []byte, id protowire.Number, read, written int) []byte {
	consumed := appendBytes(nil, 1, Capacity{}.appendUnit(nil))
	consumed = appendBytes(consumed, 2, appendInt(appendInt(nil, 1, int64(read)), 2, int64(written)))
	return appendBytes(dst, id, consumed)
}

// BlockType is the protocol's DataBlockType, the encoding of rows.
type BlockType int32

const (
	PlainBuffer     BlockType = 0
	SimpleRowMatrix BlockType = 1
)

// DecodeBulkExport decodes BulkExport, a forward range of newest versions.
func DecodeBulkExport(b []byte) (*GetRange, *Error) {
	r := &GetRange{Block: SimpleRowMatrix, bulk: true}
	r.Selection.MaxVersions = Optional[int32]{Value: 1, Set: true}
	var start, end []byte
	var block Optional[int32]
	err := message{
		{1, "table_name", &r.Name}, {2, "", &r.Selection.Columns}, {3, "inclusive_start_primary_key", &start},
		{4, "exclusive_end_primary_key", &end}, {5, "", &r.Selection.Filter}, {6, "", &block},
	}.read(b)
	switch {
	case err != nil:
		return nil, err
	case block.Set && block.Value == int32(PlainBuffer):
		r.Block = PlainBuffer
	case len(r.Selection.Columns) == 0:
		return nil, Invalid("DBT_SIMPLE_ROW_MATRIX need at least one column to get.")
	}
	return r, r.check(start, end)
}

// The magic number at the start of a matrix, and the tags in it.
const (
	matrixMagic = 0x304d5253

	matrixChecksum  = 1
	matrixRow       = 2
	matrixRowCount  = 3
	matrixEntireKey = 10
)

// maxMatrixCells limits a matrix. A cell takes a byte or more, so rows without common columns could take gigabytes.
const maxMatrixCells = 4 * MaxRangeBytes

// matrixFields returns the fields of a matrix; the first keys of them are key columns. For GetRange the fields are the
// key and the requested columns, or if none are requested all columns in byte order; for BulkExport the requested ones.
func (r *GetRange) matrixFields(key []KeyColumn, rows []Row) (fields []string, keys int) {
	isKey := func(name string) bool {
		return slices.ContainsFunc(key, func(k KeyColumn) bool { return k.Name == name })
	}
	asked := r.Selection.Columns
	if !r.bulk || len(asked) == 0 {
		for _, k := range key {
			fields = append(fields, k.Name)
		}
	}
	for _, name := range asked {
		if r.bulk || !isKey(string(name)) {
			fields = append(fields, string(name))
		}
	}
	for keys < len(fields) && isKey(fields[keys]) {
		keys++
	}
	if len(asked) > 0 {
		return fields, keys
	}
	known := map[string]bool{}
	for i := range rows {
		for j := range rows[i].Cells {
			if name := rows[i].Cells[j].Name; !known[string(name)] {
				known[string(name)] = true
				fields = append(fields, string(name))
			}
		}
	}
	slices.Sort(fields[keys:])
	return fields, keys
}

// Matrix returns the rows of a PlainBuffer stream as a matrix. If that would be too large, it returns nil and sets
// Block to PlainBuffer.
func (r *GetRange) Matrix(key []KeyColumn, stream []byte) (dst []byte, err *Error) {
	rows, err := decodeRows(stream)
	if err != nil {
		return nil, err
	}
	fields, keys := r.matrixFields(key, rows)
	if len(fields)-keys > maxMatrixCells/max(1, len(rows)) {
		r.Block = PlainBuffer
		return nil, nil
	}
	places := map[string][]int{}
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, matrixMagic)
	dst = append(dst, make([]byte, 8)...) // room for the offsets of data and options
	dst = le.AppendUint32(le.AppendUint32(dst, uint32(keys)), uint32(len(fields)-keys))
	for i, name := range fields {
		places[name] = append(places[name], i)
		dst = append(le.AppendUint16(dst, uint16(len(name))), name...)
	}
	le.PutUint32(dst[8:], uint32(len(dst)))
	entire := byte(0)
	if keys >= len(key) {
		entire = 1
	}
	dst = append(dst, matrixEntireKey, entire, matrixRowCount)
	dst = le.AppendUint32(dst, uint32(len(rows)))
	le.PutUint32(dst[4:], uint32(len(dst)))
	line := make([]*Cell, len(fields))
	for n := range rows {
		clear(line)
		for _, cells := range [][]Cell{rows[n].Key, rows[n].Cells} {
			for i := range cells {
				for _, place := range places[string(cells[i].Name)] {
					line[place] = &cells[i]
				}
			}
		}
		dst = append(dst, matrixRow)
		for _, c := range line {
			if c == nil {
				c = &Cell{Type: Null}
			}
			dst = AppendVariant(dst, c)
		}
	}
	dst = append(dst, matrixChecksum)
	return append(dst, crc8(0, dst)), nil
}

// decodeRows decodes the rows of a stream that this engine made. They are views into it, with any number of cells.
func decodeRows(stream []byte) (rows []Row, err *Error) {
	var d Decoder
	for p := (parser{b: stream[min(4, len(stream)):]}); len(p.b) > 0; {
		var r Row
		if !p.at(tagKey) {
			p.fail("row has no primary key tag")
		}
		r.Key = p.section(&d, MaxIndexKeyColumns)
		if p.at(tagData) {
			r.Cells = p.section(&d, math.MaxInt)
		}
		if !p.at(tagRowChecksum) {
			p.failRow()
		}
		if p.take(1); p.err != nil {
			return nil, p.err
		}
		rows = append(rows, r)
	}
	return rows, nil
}
