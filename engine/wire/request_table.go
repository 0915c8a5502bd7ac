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
	err := eachField(b, func(f field) *Error {
		switch f.id {
		case 1:
			hasMeta = true
			return f.message(r.meta)
		case 2:
			r.Throughput.Set = true
			return f.message(r.Throughput.field)
		case 3:
			r.Options.Set = true
			return f.message(r.Options.field)
		case 4:
			return r.partition(f)
		case 5:
			r.Stream.Set = true
			return f.message(r.Stream.field)
		case 6:
			return refuseEncryption(f)
		case 7:
			r.Indexes = append(r.Indexes, IndexMeta{})
			return f.message(r.Indexes[len(r.Indexes)-1].field)
		case 8:
			if f.num != 0 {
				return Unsupported("CreateTable with local transactions; write rows of one partition key all or none with BatchWriteRow and is_atomic")
			}
		}
		return nil
	})
	switch {
	case err != nil:
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

func (s *StreamSpec) field(f field) *Error {
	switch f.id {
	case 1:
		s.Enable = f.num != 0
	case 2:
		return f.int32(&s.Hours)
	case 3:
		var name string
		err := f.text(&name)
		s.Columns = append(s.Columns, name)
		return err
	}
	return nil
}

// Refuse says what to do without a stream, if one is asked for.
func (s *StreamSpec) Refuse() *Error {
	if !s.Enable {
		return nil
	}
	return Unsupported("streams; read the table with GetRange or BulkExport")
}

func refuseEncryption(f field) *Error {
	return f.message(func(g field) *Error {
		if g.id == 1 && g.num != 0 {
			return Unsupported("server-side encryption")
		}
		return nil
	})
}

func (r *CreateTable) meta(f field) *Error {
	switch f.id {
	case 1:
		return f.bytes(&r.Name)
	case 2:
		return r.keyColumn(f)
	case 3:
		return f.definedColumn(&r.Defined)
	case 4: // where an old SDK for Go names them
		r.Indexes = append(r.Indexes, IndexMeta{})
		return f.message(r.Indexes[len(r.Indexes)-1].field)
	}
	return nil
}

func (r *CreateTable) keyColumn(f field) *Error {
	var c KeyColumn
	var typ, option Optional[int32]
	err := f.message(func(g field) *Error {
		switch g.id {
		case 1:
			return g.text(&c.Name)
		case 2:
			return g.int32(&typ)
		case 3:
			return g.int32(&option)
		}
		return nil
	})
	if err == nil && !typ.Set {
		err = missing("primary_key.type")
	}
	c.Type, c.AutoIncrement = KeyType(typ.Value), option.Value == 1
	r.Key = append(r.Key, c)
	return err
}

func (o *TableOptions) field(f field) *Error {
	switch f.id {
	case 1:
		return f.int32(&o.TTL)
	case 2:
		return f.int32(&o.MaxVersions)
	case 5:
		return f.int64(&o.Deviation)
	case 6:
		return f.bool(&o.AllowUpdate)
	case 7:
		return f.bool(&o.FullRow)
	}
	return nil
}

func (t *Throughput) field(f field) *Error {
	if f.id != 1 {
		return nil
	}
	return f.message(func(g field) *Error {
		switch g.id {
		case 1:
			return g.int32(&t.Read)
		case 2:
			return g.int32(&t.Write)
		}
		return nil
	})
}

// DecodeMaybeTableName reads the requests that may carry a table name; nil is none.
func DecodeMaybeTableName(b []byte) (name []byte, err *Error) {
	err = eachField(b, func(f field) *Error {
		if f.id != 1 {
			return nil
		}
		return f.bytes(&name)
	})
	return name, err
}

// DecodeTableName reads the requests that carry nothing but a table name.
func DecodeTableName(b []byte) ([]byte, *Error) {
	var name []byte
	err := eachField(b, func(f field) *Error {
		if f.id == 1 {
			return f.bytes(&name)
		}
		return nil
	})
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
	err := eachField(b, func(f field) *Error {
		switch f.id {
		case 1:
			return f.bytes(&r.Name)
		case 2:
			r.Throughput.Set = true
			return f.message(r.Throughput.field)
		case 3:
			r.Options.Set = true
			return f.message(r.Options.field)
		case 4:
			r.Stream.Set = true
			return f.message(r.Stream.field)
		}
		return nil
	})
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
	err := eachField(b, func(f field) *Error {
		switch f.id {
		case 1:
			return f.bytes(&r.Name)
		case 2:
			return f.int64(&r.Size)
		case 3:
			return f.int64(&r.UnitBytes)
		case 4:
			return f.int32(&r.Limit)
		}
		return nil
	})
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
