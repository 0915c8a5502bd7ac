package wire

// KeyType is the protocol's PrimaryKeyType.
type KeyType int32

const (
	KeyInteger KeyType = 1
	KeyString  KeyType = 2
	KeyBinary  KeyType = 3
)

// ValueType returns the variant type of the column's values.
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

type KeyColumn struct {
	Name          string
	Type          KeyType
	AutoIncrement bool
}

// DefinedColumn is a predefined attribute column. Type is the protocol's DefinedColumnType.
type DefinedColumn struct {
	Name string
	Type int32
}

// definedTypes maps the values of DefinedColumnType.
var definedTypes = map[int32]ValueType{1: Integer, 2: Double, 3: Boolean, 4: String, 7: Binary}

func (c DefinedColumn) ValueType() ValueType {
	if t, ok := definedTypes[c.Type]; ok {
		return t
	}
	return NoValue
}

// TableOptions holds the options in a request. UpdateTable keeps an absent option; CreateTable gives it the default.
type TableOptions struct {
	TTL         Optional[int32] // seconds; -1 means forever
	MaxVersions Optional[int32]
	Deviation   Optional[int64] // seconds
	AllowUpdate Optional[bool]
	FullRow     Optional[bool] // updates replace the whole row
	Set         bool           // the request has options
}

// Throughput holds the reserved capacity units.
type Throughput struct {
	Read, Write Optional[int32]
	Set         bool
}

type CreateTable struct {
	Name       []byte
	Key        []KeyColumn
	Defined    []DefinedColumn
	Options    TableOptions
	Throughput Throughput
	Indexes    []IndexMeta
	Stream     StreamSpec
	Bounds     []Cell         // bounds between the requested partitions; set by Check
	LocalTxn   Optional[bool] // local transactions
	ranges     []partitionRange
}

// DecodeCreateTable decodes CreateTable and refuses features that the engine lacks.
func DecodeCreateTable(b []byte) (*CreateTable, *Error) {
	r := &CreateTable{}
	index := func(b []byte) *Error {
		r.Indexes = append(r.Indexes, IndexMeta{})
		return r.Indexes[len(r.Indexes)-1].read(b)
	}
	// An old SDK for Go sends indexes in field 4.
	meta := message{{1, "", &r.Name}, {2, "", r.keyColumn}, {3, "", readDefined(&r.Defined)}, {4, "", index}}
	err := message{
		{1, "table_meta", meta}, {2, "", r.Throughput.read}, {3, "", r.Options.read}, {4, "", r.partition},
		{5, "", r.Stream.read}, {6, "", refuseEncryption}, {7, "", index}, {8, "", &r.LocalTxn},
	}.read(b)
	switch {
	case err != nil:
	case r.Name == nil:
		err = missing("table_name")
	case !r.Throughput.Set:
		err = missing("reserved_throughput")
	}
	return r, err
}

// StreamSpec holds the requested options of a table's stream.
type StreamSpec struct {
	Set, Enable bool
	Hours       Optional[int32]
	Columns     []string
}

func (s *StreamSpec) read(b []byte) *Error {
	s.Set = true
	return message{{1, "", &s.Enable}, {2, "", &s.Hours}, {3, "", &s.Columns}}.read(b)
}

func (s *StreamSpec) check(allowed bool) *Error {
	if allowed || !s.Enable {
		return nil
	}
	return Unsupported("streams; read the table with GetRange or BulkExport")
}

func refuseEncryption(b []byte) *Error {
	var enabled bool
	err := message{{1, "", &enabled}}.read(b)
	if err == nil && enabled {
		err = Unsupported("server-side encryption")
	}
	return err
}

func (r *CreateTable) keyColumn(b []byte) *Error {
	var c KeyColumn
	var typ, option Optional[int32]
	err := message{{1, "", &c.Name}, {2, "primary_key.type", &typ}, {3, "", &option}}.read(b)
	c.Type, c.AutoIncrement = KeyType(typ.Value), option.Value == 1
	r.Key = append(r.Key, c)
	return err
}

func (o *TableOptions) read(b []byte) *Error {
	o.Set = true
	return message{
		{1, "", &o.TTL}, {2, "", &o.MaxVersions}, {5, "", &o.Deviation}, {6, "", &o.AllowUpdate}, {7, "", &o.FullRow},
	}.read(b)
}

func (t *Throughput) read(b []byte) *Error {
	t.Set = true
	return message{{1, "", message{{1, "", &t.Read}, {2, "", &t.Write}}}}.read(b)
}

// DecodeMaybeTableName decodes requests with an optional table name, which is nil if missing.
func DecodeMaybeTableName(b []byte) (name []byte, err *Error) {
	err = message{{1, "", &name}}.read(b)
	return name, err
}

// DecodeTableName decodes requests with only a table name.
func DecodeTableName(b []byte) (name []byte, err *Error) {
	err = message{{1, "table_name", &name}}.read(b)
	return name, err
}

type UpdateTable struct {
	Name       []byte
	Options    TableOptions
	Throughput Throughput
	Stream     StreamSpec
}

func DecodeUpdateTable(b []byte) (*UpdateTable, *Error) {
	r := &UpdateTable{}
	return r, message{
		{1, "table_name", &r.Name}, {2, "", r.Throughput.read}, {3, "", r.Options.read}, {4, "", r.Stream.read},
	}.read(b)
}

// SplitPoints is a ComputeSplitPointsBySize request.
type SplitPoints struct {
	Name      []byte
	Size      Optional[int64] // in units
	UnitBytes Optional[int64]
	Limit     Optional[int32]
}

// DecodeSplitPoints decodes ComputeSplitPointsBySize and checks its sizes.
func DecodeSplitPoints(b []byte) (*SplitPoints, *Error) {
	r := &SplitPoints{}
	err := message{{1, "table_name", &r.Name}, {2, "split_size", &r.Size}, {3, "", &r.UnitBytes},
		{4, "", &r.Limit}}.read(b)
	switch {
	case err != nil:
	case r.Size.Value <= 0:
		err = Invalid("The split_size should be greater than 0.")
	case r.UnitBytes.Set && r.UnitBytes.Value < MinSplitUnitBytes:
		err = Invalid("The split_size_unit_in_byte should be greater equal than: %d", MinSplitUnitBytes)
	}
	return r, err
}
