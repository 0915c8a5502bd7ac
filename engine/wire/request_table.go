package wire

// KeyType is protobuf's PrimaryKeyType.
type KeyType int32

// The types a primary-key column can have.
const (
	KeyInteger KeyType = 1
	KeyString  KeyType = 2
	KeyBinary  KeyType = 3
)

// ValueType is the variant type of the column's values.
func (t KeyType) ValueType() ValueType {
	switch t {
	case KeyInteger:
		return Integer
	case KeyString:
		return String
	case KeyBinary:
		return Binary
	}
	return NoValue
}

// KeyColumn is a column of a table's primary key.
type KeyColumn struct {
	Name          string
	Type          KeyType
	AutoIncrement bool
}

// DefinedColumn is a predefined attribute column; Type is protobuf's DefinedColumnType.
type DefinedColumn struct {
	Name string
	Type int32
}

// ValueType is the variant type of the column's values.
func (c DefinedColumn) ValueType() ValueType {
	switch c.Type {
	case 1:
		return Integer
	case 2:
		return Double
	case 3:
		return Boolean
	case 4:
		return String
	case 7:
		return Binary
	}
	return NoValue
}

// TableOptions are the options of a request; absent ones keep their value or take the default.
type TableOptions struct {
	TTL         Optional[int32] // seconds, -1 means forever
	MaxVersions Optional[int32]
	Deviation   Optional[int64] // seconds
	AllowUpdate Optional[bool]
	FullRow     Optional[bool] // an update replaces the row
	Set         bool           // the message was there
}

// Throughput is reserved capacity units.
type Throughput struct {
	Read, Write Optional[int32]
	Set         bool
}

// CreateTable is the request of that name.
type CreateTable struct {
	Name       []byte
	Key        []KeyColumn
	Defined    []DefinedColumn
	Options    TableOptions
	Throughput Throughput
	Indexes    []IndexMeta
	Stream     StreamSpec
	Bounds     []Cell // between the partitions asked for; Check sets it
	ranges     []partitionRange
}

// DecodeCreateTable reads the request and refuses the features the engine lacks.
func DecodeCreateTable(b []byte) (*CreateTable, *Error) {
	r := &CreateTable{}
	hasMeta := false
	var transactions bool
	index := func(f field) *Error {
		r.Indexes = append(r.Indexes, IndexMeta{})
		return r.Indexes[len(r.Indexes)-1].read(f)
	}
	meta := func(f field) *Error {
		hasMeta = true
		// Field 4 is where an old SDK for Go names indexes.
		return f.message(into{1: &r.Name, 2: r.keyColumn, 3: &r.Defined, 4: index}.take)
	}
	err := into{
		1: meta, 2: r.Throughput.read, 3: r.Options.read, 4: r.partition, 5: r.Stream.read, 6: refuseEncryption, 7: index, 8: &transactions,
	}.read(b)
	switch {
	case err != nil:
	case transactions:
		err = Unsupported("CreateTable with local transactions; write rows of one partition key all or none with BatchWriteRow and is_atomic")
	case !hasMeta:
		err = missing("table_meta")
	case r.Name == nil:
		err = missing("table_name")
	case !r.Throughput.Set:
		err = missing("reserved_throughput")
	}
	return r, err
}

// StreamSpec is what a table's stream is to be.
type StreamSpec struct {
	Set, Enable bool
	Hours       Optional[int32]
	Columns     []string
}

func (s *StreamSpec) read(f field) *Error {
	s.Set = true
	return f.message(into{1: &s.Enable, 2: &s.Hours, 3: &s.Columns}.take)
}

// Refuse says what to do without a stream, if one is asked for.
func (s *StreamSpec) Refuse() *Error {
	if !s.Enable {
		return nil
	}
	return Unsupported("streams; read the table with GetRange or BulkExport")
}

func refuseEncryption(f field) *Error {
	var enabled bool
	err := f.message(into{1: &enabled}.take)
	if err == nil && enabled {
		err = Unsupported("server-side encryption")
	}
	return err
}

func (r *CreateTable) keyColumn(f field) *Error {
	var c KeyColumn
	var typ, option Optional[int32]
	err := f.message(into{1: &c.Name, 2: &typ, 3: &option}.take)
	if err == nil && !typ.Set {
		err = missing("primary_key.type")
	}
	c.Type, c.AutoIncrement = KeyType(typ.Value), option.Value == 1
	r.Key = append(r.Key, c)
	return err
}

func (o *TableOptions) read(f field) *Error {
	o.Set = true
	return f.message(into{1: &o.TTL, 2: &o.MaxVersions, 5: &o.Deviation, 6: &o.AllowUpdate, 7: &o.FullRow}.take)
}

func (t *Throughput) read(f field) *Error {
	t.Set = true
	return f.message(into{1: into{1: &t.Read, 2: &t.Write}}.take)
}

// DecodeMaybeTableName reads the requests that may carry a table name; nil is none.
func DecodeMaybeTableName(b []byte) (name []byte, err *Error) {
	err = into{1: &name}.read(b)
	return name, err
}

// DecodeTableName reads the requests that carry nothing but a table name.
func DecodeTableName(b []byte) ([]byte, *Error) {
	name, err := DecodeMaybeTableName(b)
	if err == nil && name == nil {
		err = missing("table_name")
	}
	return name, err
}

// UpdateTable is the request of that name.
type UpdateTable struct {
	Name       []byte
	Options    TableOptions
	Throughput Throughput
	Stream     StreamSpec
}

// DecodeUpdateTable reads the request.
func DecodeUpdateTable(b []byte) (*UpdateTable, *Error) {
	r := &UpdateTable{}
	err := into{1: &r.Name, 2: r.Throughput.read, 3: r.Options.read, 4: r.Stream.read}.read(b)
	if err == nil && r.Name == nil {
		err = missing("table_name")
	}
	return r, err
}

// SplitPoints is ComputeSplitPointsBySize.
type SplitPoints struct {
	Name      []byte
	Size      Optional[int64] // in units
	UnitBytes Optional[int64]
	Limit     Optional[int32]
}

// DecodeSplitPoints reads ComputeSplitPointsBySizeRequest and checks its sizes.
func DecodeSplitPoints(b []byte) (*SplitPoints, *Error) {
	r := &SplitPoints{}
	err := into{1: &r.Name, 2: &r.Size, 3: &r.UnitBytes, 4: &r.Limit}.read(b)
	switch {
	case err != nil:
	case r.Name == nil:
		err = missing("table_name")
	case !r.Size.Set:
		err = missing("split_size")
	case r.Size.Value <= 0:
		err = Invalid("The split_size should be greater than 0.")
	case r.UnitBytes.Set && r.UnitBytes.Value < MinSplitUnitBytes:
		err = Invalid("The split_size_unit_in_byte should be greater equal than: %d", MinSplitUnitBytes)
	}
	return r, err
}
