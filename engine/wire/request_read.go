package wire

import "google.golang.org/protobuf/encoding/protowire"

// Selection is which cells of a row a read wants.
type Selection struct {
	Columns     [][]byte // names of primary-key or attribute columns; empty is all
	MaxVersions Optional[int32]
	TimeStart   Optional[int64] // milliseconds, inclusive
	TimeEnd     Optional[int64] // exclusive
	TimeExact   Optional[int64]
	StartColumn []byte // inclusive; nil is none
	EndColumn   []byte // exclusive; nil is none
	Filter      []byte // a Filter message; empty is none
	hasTime     bool
}

// selectionFields are the numbers of a selection's fields, which differ from message to message.
type selectionFields struct {
	columns, time, versions, filter, start, end, token, transaction protowire.Number
}

var (
	getRowFields   = selectionFields{columns: 3, time: 4, versions: 5, filter: 7, start: 8, end: 9, token: 10, transaction: 11}
	batchGetFields = selectionFields{columns: 4, time: 5, versions: 6, filter: 8, start: 9, end: 10, token: 3}
	getRangeFields = selectionFields{columns: 3, time: 4, versions: 5, filter: 10, start: 11, end: 12, token: 13, transaction: 14}
)

// within adds the places of a selection's fields to those of its message.
func (s *Selection) within(to into, n *selectionFields) into {
	to[n.columns], to[n.versions], to[n.filter] = &s.Columns, &s.MaxVersions, &s.Filter
	to[n.start], to[n.end] = &s.StartColumn, &s.EndColumn
	to[n.time] = func(f field) *Error {
		s.hasTime = true
		return f.message(into{1: &s.TimeStart, 2: &s.TimeEnd, 3: &s.TimeExact}.take)
	}
	to[n.token] = func(f field) *Error {
		if len(f.raw) > 0 {
			return Unsupported("tokens of wide-column paging")
		}
		return nil
	}
	if n.transaction > 0 {
		to[n.transaction] = refuseTransaction
	}
	return to
}

// check judges the names of a selection. What it reads of each column is judged later: see CheckVersions.
func (s *Selection) check() *Error {
	if n := len(s.Columns); n > MaxColumnsToGet {
		return Invalid("The number of columns from the request exceeds the limit, limit count: %d, column count: %d.", MaxColumnsToGet, n)
	}
	if len(s.EndColumn) == 0 {
		s.EndColumn = nil // an empty name bounds nothing
	}
	for _, name := range s.Columns {
		if !ValidColumnName(name) {
			return Invalid("Invalid column name: '%s'.", name)
		}
	}
	return nil
}

// CheckVersions judges the versions and times that a selection asks for, which is done after its filter. When is the end of the message
// about a missing rule.
func (s *Selection) CheckVersions(when string) *Error {
	switch {
	case !s.hasTime && !s.MaxVersions.Set:
		return Invalid("No version condition is specified%s.", when)
	case s.MaxVersions.Set && s.MaxVersions.Value <= 0:
		return Invalid("The maximum versions cannot be less than or equal to 0")
	case s.TimeExact.Set && (s.TimeStart.Set || s.TimeEnd.Set) && s.MaxVersions.Set:
		return Invalid("Specific timestamp, time range and max versions cannot be given at the same time.")
	case s.TimeExact.Set && (s.TimeStart.Set || s.TimeEnd.Set):
		return Invalid("Specific tiemstamp and time range cannot be given at the same time.") // the service's spelling
	case s.TimeExact.Set && s.MaxVersions.Set:
		return Invalid("Specific tiemstamp and max versions cannot be given at the same time.")
	case s.TimeStart.Set != s.TimeEnd.Set:
		return Invalid("Start and end time must be given at the same time.")
	case s.hasTime && !s.TimeStart.Set && !s.TimeExact.Set:
		return Invalid("No version condition is specified%s.", when)
	case s.TimeStart.Set && (s.TimeStart.Value < 0 || s.TimeStart.Value >= s.TimeEnd.Value):
		return Invalid("Invalid time range: [%d, %d).", s.TimeStart.Value, s.TimeEnd.Value)
	case s.TimeExact.Set && s.TimeExact.Value < 0:
		return Invalid("Specific timestamp cannot be less than 0.")
	case s.TimeExact.Set && s.TimeExact.Value >= MaxTimestamp:
		return Invalid("Timestamp must be in range [0, INT64_MAX/1000).")
	}
	return nil
}

// GetRow is the request of that name.
type GetRow struct {
	Name      []byte
	Key       []Cell
	Selection Selection
}

// DecodeGetRow reads the request.
func DecodeGetRow(b []byte) (*GetRow, *Error) {
	r := &GetRow{}
	var key []byte
	err := r.Selection.within(into{1: &r.Name, 2: &key}, &getRowFields).read(b)
	switch {
	case err != nil:
		return nil, err
	case r.Name == nil:
		return nil, missing("table_name")
	case key == nil:
		return nil, missing("primary_key")
	case !ValidTableName(r.Name):
		return nil, invalidTableName(r.Name)
	}
	if err := r.Selection.check(); err != nil {
		return nil, err
	}
	r.Key, err = decodeKey(&Decoder{}, key, keyOfRead)
	return r, err
}

// decodeKey reads a row that may hold nothing but a primary key.
func decodeKey(d *Decoder, b []byte, use keyUse) ([]Cell, *Error) {
	row, err := d.Row(b)
	switch {
	case err != nil:
		return nil, err
	case len(row.Cells) > 0:
		return nil, Invalid("Attribute column cannot be given while reading data.")
	case row.Delete:
		return nil, Invalid("Delete marker cannot be given.")
	}
	return row.Key, checkKey(row.Key, use)
}

// BatchGetTable is one table's part of BatchGetRow.
type BatchGetTable struct {
	Name      []byte
	Keys      [][]Cell
	Selection Selection
}

// DecodeBatchGet reads BatchGetRow.
func DecodeBatchGet(b []byte) ([]BatchGetTable, *Error) {
	var tables []BatchGetTable
	var dec Decoder
	rows := 0
	err := into{1: func(f field) *Error {
		t, err := decodeBatchGetTable(f, &dec, &rows)
		if err != nil {
			return err
		}
		for i := range tables {
			if string(tables[i].Name) == string(t.Name) {
				return Invalid("Duplicated table name: %s.", t.Name)
			}
		}
		tables = append(tables, t)
		return nil
	}}.read(b)
	if err == nil && len(tables) == 0 {
		err = Invalid("No row specified in the request of BatchGetRow.")
	}
	return tables, err
}

func decodeBatchGetTable(f field, dec *Decoder, rows *int) (t BatchGetTable, err *Error) {
	var keys [][]byte
	row := func(f field) *Error {
		if *rows++; *rows > MaxBatchGetRows {
			return Invalid("Rows count exceeds the upper limit: %d.", MaxBatchGetRows)
		}
		return f.list(&keys)
	}
	err = f.message(t.Selection.within(into{1: &t.Name, 2: row}, &batchGetFields).take)
	switch {
	case err != nil:
		return t, err
	case t.Name == nil:
		return t, missing("table_name")
	case !ValidTableName(t.Name):
		return t, invalidTableName(t.Name)
	}
	if err := t.Selection.check(); err != nil {
		return t, err
	}
	for _, b := range keys {
		key, err := decodeKey(dec, b, keyOfRead)
		if err != nil {
			return t, err
		}
		t.Keys = append(t.Keys, key)
	}
	return t, nil
}

// oneVersion reports whether no column can have two versions in the answer: a matrix has no place for them.
func (s *Selection) oneVersion() bool {
	return s.TimeExact.Set || s.MaxVersions.Set && s.MaxVersions.Value == 1
}

// GetRange is the request of that name.
type GetRange struct {
	Name       []byte
	Backward   bool
	Start, End []Cell // inclusive, exclusive
	Limit      int    // 0 is none
	KeyPart    bool   // of the key only the columns that the selection names are answered
	Selection  Selection
	Block      BlockType // of the answer
	bulk       bool      // a BulkExport
}

// DecodeGetRange reads the request.
func DecodeGetRange(b []byte) (*GetRange, *Error) {
	r := &GetRange{}
	var start, end []byte
	var direction, limit, block Optional[int32]
	var entire Optional[bool]
	places := into{1: &r.Name, 2: &direction, 6: &limit, 7: &start, 8: &end, 15: &block, 16: &entire}
	err := r.Selection.within(places, &getRangeFields).read(b)
	switch {
	case err != nil:
		return nil, err
	case r.Name == nil:
		return nil, missing("table_name")
	case !direction.Set:
		return nil, missing("direction")
	case start == nil:
		return nil, missing("inclusive_start_primary_key")
	case end == nil:
		return nil, missing("exclusive_end_primary_key")
	case !ValidTableName(r.Name):
		return nil, invalidTableName(r.Name)
	case direction.Value != 0 && direction.Value != 1:
		return nil, Invalid("Invalid direction: %d.", direction.Value)
	case limit.Set && limit.Value <= 0:
		return nil, Invalid("The limit must be greater than 0.")
	}
	r.Backward, r.Limit = direction.Value == 1, int(limit.Value)
	r.KeyPart = !entire.Or(true) && len(r.Selection.Columns) > 0
	if err := r.Selection.check(); err != nil {
		return nil, err
	}
	if block.Value == int32(SimpleRowMatrix) && !r.KeyPart && r.Selection.oneVersion() {
		r.Block = SimpleRowMatrix
	}
	var dec Decoder
	if r.Start, err = decodeKey(&dec, start, keyOfRange); err != nil {
		return nil, err
	}
	r.End, err = decodeKey(&dec, end, keyOfRange)
	return r, err
}
