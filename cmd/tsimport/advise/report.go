package advise

// Verdict is the rating of a partition key.
type Verdict string

const (
	Recommended    Verdict = "recommended"
	Usable         Verdict = "usable"
	NotRecommended Verdict = "not recommended"
)

// Report is the result of Run. Shares are between 0 and 1.
type Report struct {
	Files       []string     `json:"files"`
	Rows        int64        `json:"rows"`
	Rejected    int64        `json:"rejected"` // records that a load would reject; not included in other counts
	FirstReject string       `json:"first_reject,omitempty"`
	RowsKept    int          `json:"rows_kept"` // number of rows sampled for capacity shares, orders and groups
	RowBytes    float64      `json:"row_bytes"` // average size of a row's names and values, as the service counts them
	Partitions  int          `json:"partitions"`
	Rate        int          `json:"rate"`   // rows per second
	Window      int          `json:"window"` // number of arriving rows that are considered together
	Growth      float64      `json:"growth"`
	Arrival     Arrival      `json:"arrival"`
	Candidates  []*Candidate `json:"candidates"`
	Present     *Present     `json:"present,omitempty"` // only for an existing table
	Design      *Design      `json:"design,omitempty"`  // nil when nothing can be recommended
	Notes       []string     `json:"notes"`
}

// Arrival is the assumed order of live rows.
type Arrival struct {
	Column string `json:"column"` // "" means input order
	How    string `json:"how"`    // sentence with the reason for this order
}

// Candidate is a possible partition key: a column, or several joined with +.
type Candidate struct {
	Column  string    `json:"column"`
	Type    string    `json:"type"`
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason"`
	Share   float64   `json:"capacity_share"`      // capacity usable by live traffic in arrival order
	Load    float64   `json:"load_capacity_share"` // capacity usable by a simple load in input order
	Cut     int       `json:"partitions"`          // number of partitions into which the values can be divided
	Fix     *Fix      `json:"fix,omitempty"`
	Key     *Key      `json:"key,omitempty"` // primary key for a splice of several columns
	Notes   []string  `json:"notes,omitempty"`
	Facts             // statistics of the values
	parts   []*column // columns; several for a splice
	cause   cause
}

// Facts describes a candidate's values.
type Facts struct {
	Distinct     int64   `json:"distinct"`
	Hottest      float64 `json:"hottest_share"`
	Top          []Hot   `json:"top"` // up to ten
	LargestBytes int64   `json:"largest_value_bytes"`
	GrownBytes   int64   `json:"largest_value_bytes_grown"` // LargestBytes at the requested growth
	Over10GB     bool    `json:"over_10gb"`                 // GrownBytes exceeds 10 GB
	Monotonic    string  `json:"monotonic"`                 // in arrival order: "increasing", "decreasing" or "no"
	KeyBytes     float64 `json:"key_bytes"`                 // average
	LongestKey   int     `json:"longest_key_bytes"`
	Nulls        int64   `json:"nulls"`
	DigitsAsText bool    `json:"digits_as_text"`
	Prefix       string  `json:"common_prefix,omitempty"` // common to all values
	Enumeration  bool    `json:"enumeration"`             // few values, all with many rows
}

// Hot is a value and its share of the rows.
type Hot struct {
	Value string  `json:"value"`
	Share float64 `json:"share"`
}

// Fix is a better partition key based on the candidate, simulated like any other.
type Fix struct {
	Name       string  `json:"name"`                 // hash prefix, splice, pad, …
	Expression string  `json:"expression,omitempty"` // for --pk, with its name; "" if Table is the fix
	Table      string  `json:"table,omitempty"`      // for --table: a table per period
	Share      float64 `json:"capacity_share"`
	Load       float64 `json:"load_capacity_share"`
	Why        string  `json:"why"`
	Key

	columns []string
}

// Key is a proposed primary key, with the command of a load that uses it.
type Key struct {
	Keys        []string `json:"primary_key"` // for --pk
	Command     []string `json:"-"`           // arguments of tsimport, to be quoted for a shell
	CommandText string   `json:"command"`
}

type Design struct {
	PartitionKey string `json:"partition_key"` // name of the candidate
	Unique       string `json:"unique"`        // sentence on whether the key is unique
	Key

	columns []*column
}

// EachKey calls f with every key of the report that has a command.
func (r *Report) EachKey(f func(*Key)) {
	for _, c := range r.Candidates {
		if c.Fix != nil && c.Fix.Command != nil {
			f(&c.Fix.Key)
		}
		if c.Key != nil {
			f(c.Key)
		}
	}
	if r.Design != nil {
		f(&r.Design.Key)
	}
}
