package wire

import "google.golang.org/protobuf/encoding/protowire"

// Selection selects the cells of a row that a read returns.
type Selection struct {
	Columns     [][]byte // names of primary-key or attribute columns; empty means all
	MaxVersions Optional[int32]
	TimeStart   Optional[int64] // milliseconds, inclusive
	TimeEnd     Optional[int64] // exclusive
	TimeExact   Optional[int64]
	StartColumn []byte // inclusive; nil means none
	EndColumn   []byte // exclusive; nil means none
	Filter      []byte // a Filter message; empty means none
	hasTime     bool
}

// selectionFields holds the numbers of a selection's fields, which differ between messages.
type selectionFields struct {
	columns, time, versions, filter, start, end, token protowire.Number
}

var (
	getRowFields   = selectionFields{columns: 3, time: 4, versions: 5, filter: 7, start: 8, end: 9, token: 10}
	batchGetFields = selectionFields{columns: 4, time: 5, versions: 6, filter: 8, start: 9, end: 10, token: 3}
	getRangeFields = selectionFields{columns: 3, time: 4, versions: 5, filter: 10, start: 11, end: 12, token: 13}
)

// within adds a selection's fields to those of its message.
func (s *Selection) within(m message, n *selectionFields) message {
	return append(m, message{
		{n.columns, "", &s.Columns}, {n.versions, "", &s.MaxVersions}, {n.filter, "", &s.Filter},
		{n.start, "", &s.StartColumn}, {n.end, "", &s.EndColumn}, {n.time, "", s.times},
		{n.token, "", refused("tokens of wide-column paging")},
	}...)
}

func (s *Selection) times(b []byte) *Error {
	s.hasTime = true
	return message{{1, "", &s.TimeStart}, {2, "", &s.TimeEnd}, {3, "", &s.TimeExact}}.read(b)
}

// check checks the column names of a selection. CheckVersions checks versions and times later.
func (s *Selection) check() *Error {
	if n := len(s.Columns); n > MaxColumnsToGet {
		return Invalid("The number of columns from the request exceeds the limit, limit count: %d, column count: %d.",
			MaxColumnsToGet, n)
	}
	if len(s.EndColumn) == 0 {
		s.EndColumn = nil // an empty name is no bound
	}
	for _, name := range s.Columns {
		if !ValidColumnName(name) {
			return Invalid("Invalid column name: '%s'.", name)
		}
	}
	return nil
}

// CheckVersions checks a selection's versions and times; call it after decoding the filter. when completes the error
// message for a selection with neither.
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

type GetRow struct {
	Name        TableName
	Key         []Cell
	Selection   Selection
	Transaction TransactionID // empty means none
}

func DecodeGetRow(b []byte) (*GetRow, *Error) {
	r := &GetRow{}
	var key []byte
	places := message{{1, "table_name", &r.Name}, {2, "primary_key", &key}, {11, "", &r.Transaction}}
	err := r.Selection.within(places, &getRowFields).read(b)
	if err == nil {
		err = r.Selection.check()
	}
	if err == nil {
		r.Key, err = decodeKey(&Decoder{}, key, keyOfRead)
	}
	return r, err
}

// decodeKey decodes a row that must have only a primary key.
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
	Name      TableName
	Keys      [][]Cell
	Selection Selection
}

func DecodeBatchGet(b []byte) ([]BatchGetTable, *Error) {
	var tables []BatchGetTable
	var dec Decoder
	rows := 0
	err := message{{1, "", func(b []byte) *Error {
		t, err := decodeBatchGetTable(b, &dec, &rows)
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
	}}}.read(b)
	if err == nil && len(tables) == 0 {
		err = Invalid("No row specified in the request of BatchGetRow.")
	}
	return tables, err
}

func decodeBatchGetTable(b []byte, dec *Decoder, rows *int) (t BatchGetTable, err *Error) {
	var keys [][]byte
	row := func(key []byte) *Error {
		if *rows++; *rows > MaxBatchGetRows {
			return Invalid("Rows count exceeds the upper limit: %d.", MaxBatchGetRows)
		}
		keys = append(keys, key)
		return nil
	}
	err = t.Selection.within(message{{1, "table_name", &t.Name}, {2, "", row}}, &batchGetFields).read(b)
	if err == nil {
		err = t.Selection.check()
	}
	if err != nil {
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

type GetRange struct {
	Name        TableName
	Backward    bool
	Start, End  []Cell // inclusive, exclusive
	Limit       int    // 0 means no limit
	KeyPart     bool   // only the selected key columns are returned
	Selection   Selection
	Transaction TransactionID // empty means none
	Block       BlockType     // encoding of the answer
	bulk        bool          // the request is a BulkExport
}

func DecodeGetRange(b []byte) (*GetRange, *Error) {
	r := &GetRange{}
	var start, end []byte
	var direction, limit, block Optional[int32]
	var entire Optional[bool]
	places := message{
		{1, "table_name", &r.Name}, {2, "direction", &direction}, {6, "", &limit},
		{7, "inclusive_start_primary_key", &start}, {8, "exclusive_end_primary_key", &end},
		{14, "", &r.Transaction}, {15, "", &block}, {16, "", &entire},
	}
	err := r.Selection.within(places, &getRangeFields).read(b)
	switch {
	case err != nil:
		return nil, err
	case direction.Value != 0 && direction.Value != 1:
		return nil, Invalid("Invalid direction: %d.", direction.Value)
	case limit.Set && limit.Value <= 0:
		return nil, Invalid("The limit must be greater than 0.")
	}
	r.Backward, r.Limit = direction.Value == 1, int(limit.Value)
	r.KeyPart = !entire.Or(true) && len(r.Selection.Columns) > 0
	one := r.Selection.TimeExact.Set || r.Selection.MaxVersions.Set && r.Selection.MaxVersions.Value == 1
	if block.Value == int32(SimpleRowMatrix) && !r.KeyPart && one { // a matrix cannot hold two versions of a column
		r.Block = SimpleRowMatrix
	}
	return r, r.check(start, end)
}

// check decodes the keys of a range, and checks them and the selection.
func (r *GetRange) check(start, end []byte) *Error {
	err := r.Selection.check()
	var dec Decoder
	if err == nil {
		r.Start, err = decodeKey(&dec, start, keyOfRange)
	}
	if err == nil {
		r.End, err = decodeKey(&dec, end, keyOfRange)
	}
	return err
}
