package wire

// RowOp is the protocol's OperationType.
type RowOp int32

const (
	PutRow    RowOp = 1
	UpdateRow RowOp = 2
	DeleteRow RowOp = 3
)

// String returns the operation's name in messages.
func (o RowOp) String() string { return [...]string{"unknown", "PutRow", "UpdateRow", "DeleteRow"}[o] }

// Existence is the protocol's RowExistenceExpectation.
type Existence int32

// The row existence expectations, with the protocol's numbers.
const (
	Ignore         Existence = 0
	ExpectExist    Existence = 1
	ExpectNotExist Existence = 2
)

// String returns the expectation's name in messages.
func (e Existence) String() string {
	return [...]string{"IGNORE", "EXPECT_EXIST", "EXPECT_NOT_EXIST"}[e]
}

// ReturnType selects the row that a write returns.
type ReturnType int32

const (
	ReturnNone        ReturnType = 0
	ReturnKey         ReturnType = 1
	ReturnAfterModify ReturnType = 2
)

// Change is one row operation of a write request.
type Change struct {
	Op            RowOp
	Row           Row
	Expect        Existence
	Condition     []byte // column condition, a Filter message; empty means none
	Return        ReturnType
	ReturnColumns [][]byte
	// DataBytes is the row's size for MaxRequestDataBytes: names, values, and 8 for each explicit timestamp.
	DataBytes int
}

// Conditional reports whether the change has a condition on the existing row.
func (c *Change) Conditional() bool { return c.Expect != Ignore || len(c.Condition) > 0 }

// TableChanges is one table's part of a write request.
type TableChanges struct {
	Name    []byte
	Changes []Change
}

// WriteRequest is a decoded PutRow, UpdateRow, DeleteRow, BatchWriteRow or BulkImport. It refers to the body, and is
// reusable after Reset.
type WriteRequest struct {
	Tables      []TableChanges
	Atomic      bool          // write all or none of a table's rows
	Transaction TransactionID // empty means none
	rows        []Change
	dec         Decoder
}

func (r *WriteRequest) Rows() int { return len(r.rows) }

// Reset releases the bytes of the last request.
func (r *WriteRequest) Reset() {
	r.dec.Reset()
	clear(r.rows)
	clear(r.Tables)
	r.rows, r.Tables, r.Atomic, r.Transaction = r.rows[:0], r.Tables[:0], false, nil
}

// DecodeRow decodes PutRow, UpdateRow or DeleteRow, and checks everything that does not depend on the schema.
func (r *WriteRequest) DecodeRow(op RowOp, b []byte) *Error {
	var name TableName
	var row []byte
	c := Change{Op: op}
	err := message{
		{1, "table_name", &name}, {2, "row", &row}, {3, "condition", c.condition}, {4, "", c.returnContent},
		{5, "", &r.Transaction},
	}.read(b)
	if err != nil {
		return err
	}
	if c.Row, err = r.dec.Row(row); err != nil {
		return err
	}
	if err := c.check(false); err != nil {
		return err
	}
	if c.DataBytes > MaxRequestDataBytes {
		return tooMuchData(op.String(), c.DataBytes)
	}
	r.rows = append(r.rows, c)
	r.Tables = append(r.Tables, TableChanges{name, r.rows})
	return nil
}

func invalidTableName(name []byte) *Error { return Invalid("Invalid table name: '%s'.", name) }

func noOperation(table []byte) *Error {
	return Invalid("No operation is specified for table: '%s'.", table)
}

func tooMuchData(op string, size int) *Error {
	return Invalid("The total data size of %s request exceeds the limit, limit size: %d, data size: %d.", op,
		MaxRequestDataBytes, size)
}

// DecodeBatch decodes BatchWriteRow. An error refuses the whole request.
func (r *WriteRequest) DecodeBatch(b []byte) *Error {
	var tables [][]byte
	if err := (message{{1, "", &tables}, {2, "", &r.Transaction}, {3, "", &r.Atomic}}).read(b); err != nil {
		return err
	}
	if len(tables) == 0 {
		return Invalid("No row is specified in BatchWriteRow.")
	}
	counts := make([]int, 0, 4)
	rows := 0
	for _, t := range tables {
		n, err := countRows(t)
		if err != nil {
			return err
		}
		counts = append(counts, n)
		rows += n
	}
	if rows > MaxBatchWriteRows {
		return Invalid("Rows count exceeds the upper limit: %d.", MaxBatchWriteRows)
	}
	// r.rows must not grow below, because the tables are slices of it.
	if cap(r.rows) < rows {
		r.rows = make([]Change, 0, MaxBatchWriteRows)
	}
	for i, t := range tables {
		if err := r.table(t, counts[i]); err != nil {
			return err
		}
	}
	return r.checkTotal("BatchWriteRow")
}

// countRows counts the rows of a table's part of BatchWriteRow, or of BulkImport.
func countRows(b []byte) (n int, err *Error) {
	err = eachField(b, func(f field) *Error {
		if f.id == 2 {
			n++
		}
		return nil
	})
	return n, err
}

func (r *WriteRequest) table(b []byte, rows int) *Error {
	var name TableName
	from := len(r.rows)
	if err := (message{{1, "table_name", &name}, {2, "", r.row}}).read(b); err != nil {
		return err
	}
	if rows == 0 {
		return noOperation(name)
	}
	for i := range r.Tables {
		if string(r.Tables[i].Name) == string(name) {
			return Invalid("Duplicated table name: %s.", name)
		}
	}
	r.Tables = append(r.Tables, TableChanges{name, r.rows[from:len(r.rows):len(r.rows)]})
	return nil
}

func (r *WriteRequest) row(b []byte) *Error {
	var op Optional[int32]
	var row []byte
	r.rows = append(r.rows, Change{})
	c := &r.rows[len(r.rows)-1]
	err := message{{1, "type", &op}, {2, "row_change", &row}, {3, "condition", c.condition},
		{4, "", c.returnContent}}.read(b)
	if err != nil {
		return err
	}
	return r.decodeRow(c, op.Value, row)
}

func (r *WriteRequest) decodeRow(c *Change, op int32, row []byte) (err *Error) {
	if c.Op = RowOp(op); c.Op < PutRow || c.Op > DeleteRow {
		return Invalid("The modify type is invalid.")
	}
	if c.Row, err = r.dec.Row(row); err != nil {
		return err
	}
	return c.check(true)
}

func (r *WriteRequest) checkTotal(operation string) *Error {
	total := 0
	for i := range r.rows {
		total += r.rows[i].DataBytes
	}
	if total > MaxRequestDataBytes {
		return tooMuchData(operation, total)
	}
	return nil
}

func (c *Change) condition(b []byte) *Error {
	var expect Optional[int32]
	err := message{{1, "row_existence", &expect}, {2, "", &c.Condition}}.read(b)
	if err == nil && (expect.Value < 0 || expect.Value > 2) {
		err = Invalid("Invalid condition: %d.", expect.Value)
	}
	c.Expect = Existence(expect.Value)
	return err
}

func (c *Change) returnContent(b []byte) *Error {
	var typ Optional[int32]
	err := message{{1, "", &typ}, {2, "", &c.ReturnColumns}}.read(b)
	if err == nil && (typ.Value < 0 || typ.Value > 2) {
		err = Invalid("Invalid return type: %d.", typ.Value)
	}
	c.Return = ReturnType(typ.Value)
	return err
}
