package model

// Type is what a primary-key column holds.
type Type int

// The types of primary-key columns, numbered as in the protocol.
const (
	Integer Type = 1
	String  Type = 2
	Binary  Type = 3
)

// Infinity is a bound of a range, in place of a value.
type Infinity int

// The two infinities.
const (
	Min Infinity = -1
	Max Infinity = 1
)

// Placeholder stands in a key for the number that the service is to give.
type Placeholder struct{}

// KeyColumn is one column of a table's primary key. In an Auto column the service gives the numbers.
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

// Key is a primary key.
type Key []KeyCell

// Cell is one version of a column. Its value is an int64, float64, bool, string or []byte.
type Cell struct {
	Name      string
	Value     any
	Timestamp int64 // milliseconds
}

// Row is a row as it is answered. A nil Key means that the answer has none.
type Row struct {
	Key   Key
	Cells []Cell
}

// Options of a table.
type Options struct {
	TTL         int // seconds, -1 means forever
	MaxVersions int
	Deviation   int64 // seconds
	NoUpdate    bool
}

// RowKind is which of the three writes a change is.
type RowKind int

// The kinds of change.
const (
	PutRow RowKind = iota + 1
	UpdateRow
	DeleteRow
)

// OpKind is what an update does to a column.
type OpKind int

// The operations on a column; PutRow knows Put only.
const (
	Put OpKind = iota
	DeleteColumn
	DeleteVersion
	Increment
)

// Op is one operation on a column. A timestamp of 0 is none.
type Op struct {
	Kind      OpKind
	Name      string
	Value     any
	Timestamp int64
}

// Existence is what a change expects of the row before it.
type Existence int

// The expectations.
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
}

// Refusal is an error of the service. A message of "" stands for any: the specification does not give it.
type Refusal struct {
	Status  int
	Code    string
	Message string
}

// Outcome is what happened to one row. Units are 0 when it was refused.
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
