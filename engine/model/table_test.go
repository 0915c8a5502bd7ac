package model

import (
	"fmt"
	"slices"
)

// Model holds all tables of an instance. Times are Unix milliseconds.
type Model struct {
	Tables   map[string]*Table
	sessions map[string]*session // by their ids

	// Of a history:
	ahead int64  // that the clock was moved on, in milliseconds
	kept  *Model // what a loss of power leaves; nil: it has not struck
}

func New() *Model { return &Model{Tables: map[string]*Table{}, sessions: map[string]*session{}} }

// Table is a table and its rows in primary-key order.
type Table struct {
	Key     []KeyColumn
	Options Options
	Defined []DefinedColumn
	Indexes []Index
	rows    []*row

	Transactions bool
}

// row is what is kept of a row. Invisible cells stay until the row is next written; what a write then drops goes to
// gone, because it may show again when an option is raised.
type row struct {
	key   Key
	cells []Cell // by name, then newest first; no two with the same name and timestamp
	gone  []Cell

	without map[string]bool // the indexes that were made without this row, which was not written since
	ofIndex bool            // a row that an index shows
	hidden  bool            // and one of which something has expired
}

func (m *Model) CreateTable(name string, key []KeyColumn, o Options) *Refusal {
	if m.Tables[name] != nil {
		return &Refusal{409, "OTSObjectAlreadyExist", "Requested table already exists."}
	}
	m.Tables[name] = &Table{Key: key, Options: o}
	return nil
}

func (m *Model) DeleteTable(name string) *Refusal {
	if m.Tables[name] == nil {
		if _, x := m.index(name); x != nil {
			return invalid("Can't delete index table directly.")
		}
		return noTable()
	}
	delete(m.Tables, name)
	m.endSessions(name)
	return nil
}

// UpdateTable changes a table's options. If it raises one, Resync has to follow.
func (m *Model) UpdateTable(name string, o Options) *Refusal {
	t := m.Tables[name]
	if t == nil {
		if _, x := m.index(name); x != nil {
			return invalid("Can't update index table directly.")
		}
		return noTable()
	}
	if len(t.Indexes) > 0 {
		if r := indexable(o); r != nil {
			return r
		}
	}
	t.Options = o
	return nil
}

func (m *Model) TableNames() []string {
	names := []string{}
	for name := range m.Tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// find returns where a key is or belongs.
func (t *Table) find(key Key) (at int, r *row) {
	at, found := slices.BinarySearchFunc(t.rows, key, func(r *row, k Key) int { return compareKeys(r.key, k) })
	if found {
		return at, t.rows[at]
	}
	return at, nil
}

func (t *Table) expired(c Cell, now int64) bool {
	return t.Options.TTL >= 0 && now/1000-c.Timestamp/1000 > int64(t.Options.TTL)
}

// visible returns the cells of a row that count: unexpired, and of each column the newest MaxVersions.
func (t *Table) visible(r *row, now int64) []Cell {
	kept := []Cell{}
	versions := map[string]int{}
	if r == nil || r.hidden {
		return kept
	}
	for _, c := range r.cells {
		if t.expired(c, now) {
			continue
		}
		if versions[c.Name]++; versions[c.Name] <= t.Options.MaxVersions {
			kept = append(kept, c)
		}
	}
	return kept
}

// exists reports whether a row exists: a row disappears when all its cells have expired, not when they were deleted.
func (t *Table) exists(r *row, now int64) bool {
	if r != nil && r.ofIndex {
		return !r.hidden
	}
	return r != nil && (len(r.cells) == 0 || len(t.visible(r, now)) > 0)
}

// checkKey checks a key against the table's schema.
func (t *Table) checkKey(key Key) *Refusal {
	if len(key) != len(t.Key) {
		return invalidPK(fmt.Sprintf("Validate PK size fail. Input: %d, Meta: %d.", len(key), len(t.Key)))
	}
	for i, c := range key {
		if want := t.Key[i].Name; c.Name != want {
			return invalidPK(fmt.Sprintf("Validate PK name fail. Input: %s, Meta: %s.", c.Name, want))
		}
		if isPlaceholder(c.Value) {
			if !t.Key[i].Auto {
				return invalid(fmt.Sprintf("Primary key column '%s' is not auto increment.", c.Name))
			}
			continue
		}
		typ, finite := typeOf(c.Value)
		if want := t.Key[i].Type; finite && typ != want {
			return invalidPK(fmt.Sprintf("Validate PK type fail. Input: %s, Meta: %s.", typeName(typ), typeName(want)))
		}
	}
	return nil
}

func typeOf(v any) (t Type, finite bool) {
	switch v.(type) {
	case int64:
		return Integer, true
	case string:
		return String, true
	case []byte:
		return Binary, true
	}
	return 0, false
}

func typeName(t Type) string {
	return map[Type]string{Integer: "VT_INTEGER", String: "VT_STRING", Binary: "VT_BLOB"}[t]
}

// compareKeys orders keys that fit the same schema.
func compareKeys(a, b Key) int {
	for i := range a {
		if c := compareValues(a[i].Value, b[i].Value); c != 0 {
			return c
		}
	}
	return 0
}

func isPlaceholder(v any) bool {
	_, ok := v.(Placeholder)
	return ok
}

func compareValues(a, b any) int {
	if isPlaceholder(a) || isPlaceholder(b) {
		return -1 // each stands for a number of its own
	}
	x, aInfinite := a.(Infinity)
	y, bInfinite := b.(Infinity)
	if aInfinite || bInfinite {
		return int(x) - int(y) // a value is 0: between the two
	}
	order, _ := compareAttributes(a, b)
	return order
}

// dataBytes is the size from which capacity units are computed.
func dataBytes(v any) int {
	switch v := v.(type) {
	case int64, float64:
		return 8
	case bool:
		return 1
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return 0 // no value: a deleted column counts its name only
}

func (k Key) dataBytes() (n int) {
	for _, c := range k {
		n += len(c.Name) + dataBytes(c.Value)
	}
	return n
}

func cellBytes(cells []Cell) (n int) {
	for _, c := range cells {
		n += len(c.Name) + dataBytes(c.Value)
	}
	return n
}

func units(n int) int { return (n + 4095) / 4096 }

// Type is the type of a primary-key column.
type Type int

// The types of primary-key columns, numbered as in the protocol.
const (
	Integer Type = 1
	String  Type = 2
	Binary  Type = 3
)

// Infinity is a bound of a range, instead of a value.
type Infinity int

const (
	Min Infinity = -1
	Max Infinity = 1
)

// Placeholder stands in a key for a number from the service.
type Placeholder struct{}

// KeyColumn is one column of a table's primary key. The service numbers an Auto column.
type KeyColumn struct {
	Name string
	Type Type
	Auto bool
}

// KeyCell is a primary-key column with its value: an int64, string, []byte, Infinity or Placeholder.
type KeyCell struct {
	Name  string
	Value any
}

type Key []KeyCell

// Cell is one version of a column. Its value is an int64, float64, bool, string or []byte.
type Cell struct {
	Name      string
	Value     any
	Timestamp int64 // milliseconds
}

// Row is a row of an answer. A nil Key means that the answer has none.
type Row struct {
	Key   Key
	Cells []Cell
}

type Options struct {
	TTL         int // seconds, -1 means forever
	MaxVersions int
	Deviation   int64 // seconds
	NoUpdate    bool
}

// RowKind is which of the three writes a change is.
type RowKind int

const (
	PutRow RowKind = iota + 1
	UpdateRow
	DeleteRow
)

// OpKind is what an update does to a column.
type OpKind int

// The operations on a column; PutRow knows only Put.
const (
	Put OpKind = iota
	DeleteColumn
	DeleteVersion
	Increment
)

// Op is one operation on a column. A timestamp of 0 means none.
type Op struct {
	Kind      OpKind
	Name      string
	Value     any
	Timestamp int64
}

// Existence is what a change expects of the old row.
type Existence int

const (
	Ignore Existence = iota
	Exist
	NotExist
)

// Change is one row of a write.
type Change struct {
	Table         string
	Kind          RowKind
	Key           Key
	Ops           []Op
	Expect        Existence
	Condition     Filter // nil is none
	Numbered      bool   // the key's number was given for a placeholder, in this very change
	ReturnKey     bool
	ReturnColumns []string // of an update: incremented columns to answer with; nil is none
	Txn           string   // the id of a transaction, "" is none; of a batch that of its first change
}

func (c *Change) increments() bool {
	for _, op := range c.Ops {
		if op.Kind == Increment {
			return true
		}
	}
	return false
}

// Selection is which cells of a row a read wants.
type Selection struct {
	Columns     []string
	MaxVersions int   // 0 is none
	From, To    int64 // milliseconds, To exclusive; 0, 0 is none
	At          int64 // 0 is none
	Start, End  string
	Filter      Filter // nil is none
	Txn         string // the id of a transaction, "" is none
}

// Refusal is an error of the service. An empty message stands for any: the specification does not give it.
type Refusal struct {
	Status        int
	Code, Message string
}

// Outcome is the result of one row. Units are 0 if it was refused.
type Outcome struct {
	Refusal     *Refusal
	Read, Write int // capacity units
	Row         *Row
}

// Page is the answer of a range.
type Page struct {
	Read int // capacity units
	Rows []Row
	Next Key // nil when the range is done
}

func invalid(message string) *Refusal   { return &Refusal{400, "OTSParameterInvalid", message} }
func invalidPK(message string) *Refusal { return &Refusal{400, "OTSInvalidPK", message} }

func noTable() *Refusal {
	return &Refusal{404, "OTSObjectNotExist", "Requested table does not exist."}
}

func conditionFailed() *Refusal {
	return &Refusal{403, "OTSConditionCheckFail", "Condition check failed."}
}
