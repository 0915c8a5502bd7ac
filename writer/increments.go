package writer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// MarkReader reads back the marks of counted rows.
type MarkReader interface {
	BatchGetRow(*tablestore.BatchGetRowRequest) (*tablestore.BatchGetRowResponse, error)
}

// Increments is the workers' shared state for a load that adds to integer columns. A record must not be added twice. So
// every row has a mark that names the last added record, and the UpdateRow that adds a record also puts its mark, under
// the condition that the row's mark is lower:
//
//	mark = RUN.POSITION   RUN rises from load to load, POSITION from record to record in a load
//
// Records of one key are sent one after the other, in order. So a record whose mark is not above the row's has been
// added or never will be, no matter when an attempt arrives, and it is safe to send it again. A load never adds to a
// row to which a later load has added, because it could not know whether its own mark was there before.
//
// A rejected record leaves no mark of its own. Once the next record of its key is added, a resumed load could not tell
// that it was rejected. So a key's marks name its rejected records, each after a sign: one for records that the service
// refused, another for records that were given up and may have been added.
//
// It is safe for concurrent use.
type Increments struct {
	Mark string // column that holds the marks
	Run  string

	reader MarkReader
	column plainbuffer.Name
	filter []byte // the condition up to the mark
	after  []byte // the condition after the mark

	mu      sync.Mutex
	refused map[string][]string // signs and positions of refused records, by ordering key
	bytes   int                 // memory of refused
	many    bool                // refused is full: some refused records are not in it
}

// The signs that precede the positions of rejected records in a mark.
const (
	signRefused = "!" // the record was not added
	signGivenUp = "?" // the record may have been added
	manyRefused = signRefused + "*"
)

const (
	// maxRefusedNamed limits the refused records that a mark names. If there are more, it says only that.
	maxRefusedNamed = 2
	maxRefusedBytes = 16 << 20 // limits the memory of refused
	refusedBytesMin = 128      // memory of a key's entry, besides the key itself
	positionDigits  = 13       // number of digits of a uint64 in base 36
	recordBits      = 40       // bits of the record's number in a position
)

// NewIncrements returns the Increments of a run. mark is the column that holds the marks.
func NewIncrements(r MarkReader, mark, run string) *Increments {
	c := &Increments{Mark: mark, Run: run, reader: r, column: plainbuffer.NewName(mark), refused: map[string][]string{}}
	length := len(run) + 1 + positionDigits
	// A SingleColumnValueFilter: comparator (1): LESS_THAN, column_name (2), column_value (3): a variant,
	// filter_if_missing (4): false, so that a row without a mark passes, latest_version_only (5): true.
	value := binary.LittleEndian.AppendUint32([]byte{3}, uint32(length)) // a string
	single := []byte{1 << 3, 5, 2<<3 | 2}
	single = append(binary.AppendUvarint(single, uint64(len(mark))), mark...)
	single = binary.AppendUvarint(append(single, 3<<3|2), uint64(len(value)+length))
	single = append(single, value...)
	c.after = []byte{4 << 3, 0, 5 << 3, 1}
	// A Filter: type (1): FT_SINGLE_COLUMN_VALUE, filter (2).
	filter := binary.AppendUvarint([]byte{1 << 3, 1, 2<<3 | 2}, uint64(len(single)+length+len(c.after)))
	filter = append(filter, single...)
	// A Condition: row_existence (1): IGNORE, column_condition (2).
	c.filter = binary.AppendUvarint([]byte{tagRowExistence, expectations[table.Ignore], tagColumnCondition},
		uint64(len(filter)+length+len(c.after)))
	c.filter = append(c.filter, filter...)
	return c
}

// ConditionBytes returns the size of each row's condition.
func (c *Increments) ConditionBytes() int {
	return len(c.filter) + len(c.Run) + 1 + positionDigits + len(c.after)
}

// position returns the record's place in the input. Positions sort as text in the order of the records.
func position(r table.Ref) string {
	text := strconv.FormatUint(uint64(r.Block.Split.Ordinal)<<recordBits|uint64(r.Number()), 36)
	return strings.Repeat("0", positionDigits-len(text)) + text
}

// appendCondition appends the condition of the record at the position.
func (c *Increments) appendCondition(dst []byte, position string) []byte {
	dst = append(dst, c.filter...)
	dst = append(append(append(dst, c.Run...), '.'), position...)
	return append(dst, c.after...)
}

func (c *Increments) appendMark(dst []byte, r table.Ref, position string) []byte {
	dst = append(append(append(dst, c.Run...), '.'), position...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) == 0 && !c.many {
		return dst
	}
	refused := c.refused[string(r.Key())]
	if len(refused) > maxRefusedNamed || c.many {
		return append(dst, manyRefused...)
	}
	for _, p := range refused {
		dst = append(dst, p...)
	}
	return dst
}

// Rejected notes a record for the marks of later records of its key. maybeAdded means that it may have been added.
func (c *Increments) Rejected(r table.Ref, maybeAdded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := position(r)
	was := c.refused[string(r.Key())]
	if i := slices.IndexFunc(was, func(p string) bool { return p[1:] == at }); i >= 0 {
		if maybeAdded {
			was[i] = signGivenUp + at
		}
		return
	}
	sign := signRefused
	if maybeAdded {
		sign = signGivenUp
	}
	c.name(r, sign+at)
}

// manyOf notes that a key had too many rejected records for its mark to name them.
func (c *Increments) manyOf(r table.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.refused[string(r.Key())]) <= maxRefusedNamed && !c.many {
		c.name(r, manyRefused)
	}
}

func (c *Increments) name(r table.Ref, name string) {
	was, known := c.refused[string(r.Key())]
	if len(was) > maxRefusedNamed {
		return // a mark names at most maxRefusedNamed
	}
	more := 0
	if !known {
		more = refusedBytesMin + len(r.Key())
	}
	if c.bytes+more > maxRefusedBytes {
		c.many = true
		return
	}
	c.bytes += more
	c.refused[string(r.Key())] = append(was, name)
}

// writeCounted sends the rows. For rows that were not written, it finds out why their marks were not lower.
func (w *Writer) writeCounted(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	stats, err := w.write(rows, repeated, outcomes, false)
	c := w.options.Increments
	var look []int
	for i := range outcomes {
		switch o := &outcomes[i]; {
		case o.Fate != table.Refused:
		case o.Code == codeConditionFailed:
			*o = table.Outcome{Fate: table.Again, Code: o.Code, Message: o.Message}
			look = append(look, i)
		default:
			c.Rejected(rows[i], o.MaybeApplied)
		}
	}
	for len(look) > 0 && err == nil {
		some := look[:min(len(look), maxKeysRead)]
		look = look[len(some):]
		stats.Searched += len(some)
		err = c.settle(w.table, rows, some, repeated, outcomes)
		for _, i := range some {
			if outcomes[i].Found {
				stats.Found++
			}
		}
	}
	return stats, err
}

const (
	codeConditionFailed = "OTSConditionCheckFail"
	maxKeysRead         = 100 // keys of one BatchGetRow
)

// settle decides the outcomes of records that were not added, by their rows' marks. It returns only permanent errors.
func (c *Increments) settle(name string, rows []table.Ref, places []int, repeated []bool,
	outcomes []table.Outcome) error {
	marks, err := c.read(name, rows, places)
	if err != nil {
		code, message := errorText(err)
		for _, i := range places {
			outcomes[i] = table.Outcome{Fate: table.Again, Code: code, Message: message}
		}
		if client.Classify(err).Passes() {
			return nil
		}
		return fmt.Errorf("read marks of table %s: %w", name, &client.Error{Cause: err})
	}
	for k, i := range places {
		if m := marks[k]; m.failed != nil {
			outcomes[i] = *m.failed
		} else {
			c.decide(m, rows[i], repeated[i], &outcomes[i])
		}
	}
	return nil
}

// decide sets the outcome of a record, given its row's mark.
func (c *Increments) decide(m readMark, r table.Ref, repeated bool, o *table.Outcome) {
	at := position(r)
	own, found := strings.CutPrefix(m.text, c.Run+".")
	switch {
	case !m.any:
		return // the row, or its mark, has been deleted meanwhile
	case m.odd:
		*o = table.Outcome{Fate: table.Refused, Code: codeConditionFailed,
			Message: fmt.Sprintf("column %s of the row holds a value that is not a mark; give another --mark-column", c.Mark)}
	case !found && m.text < c.Run+"."+at:
		return // the mark is lower now
	case !found && repeated:
		*o = table.Outcome{Fate: table.Refused, Code: codeConditionFailed, MaybeApplied: true,
			Message: "a load that began later has added to the row, and the answer to an attempt of this record was lost: it " +
				"may have been added or not; compare the row before you load the record again"}
	case !found:
		*o = table.Outcome{Fate: table.Refused, Code: codeConditionFailed,
			Message: "a later load has added to the row, without this record; load it again with --retry-rejects"}
	default:
		c.decideOwn(own, r, at, o)
	}
}

// decideOwn does the work of decide if the mark is of this load.
func (c *Increments) decideOwn(own string, r table.Ref, at string, o *table.Outcome) {
	last, names := cutMark(own)
	switch {
	case last < at:
		return // the mark is lower now
	case last == at:
		*o = table.Outcome{Fate: table.Written, Found: true}
	case strings.Contains(names, signRefused+at):
		c.Rejected(r, false)
		*o = table.Outcome{Fate: table.Refused, Code: "OTSParameterInvalid",
			Message: "the service refused this record to an earlier attempt of the load"}
	case strings.Contains(names, signGivenUp+at):
		c.Rejected(r, true)
		*o = table.Outcome{Fate: table.Refused, Code: codeConditionFailed, MaybeApplied: true,
			Message: "an earlier attempt of the load gave this record up, and it may have been added; compare the row before " +
				"you load the record again"}
	case strings.Contains(names, manyRefused):
		c.manyOf(r)
		*o = table.Outcome{Fate: table.Refused, Code: codeConditionFailed, MaybeApplied: true,
			Message: "many records of the row were refused before the load was interrupted, perhaps this one, too; otherwise " +
				"it has been added; compare the row before you load the record again"}
	default:
		*o = table.Outcome{Fate: table.Written, Found: true}
	}
}

// readMark is a row's value in the column of marks.
type readMark struct {
	text   string
	any    bool           // the row has the column
	odd    bool           // its value is not a mark
	failed *table.Outcome // outcome if the row could not be read, or nil
}

func (c *Increments) read(name string, rows []table.Ref, places []int) (marks []readMark, err error) {
	defer unreadable(&err)
	q := &tablestore.MultiRowQueryCriteria{TableName: name, ColumnsToGet: []string{c.Mark}, MaxVersion: 1}
	for _, i := range places {
		row, err := plainbuffer.Decode(rows[i].Body())
		if err != nil {
			return nil, err
		}
		key := new(tablestore.PrimaryKey)
		for _, k := range row.Key {
			key.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
		}
		q.AddRow(key)
	}
	res, err := c.reader.BatchGetRow(&tablestore.BatchGetRowRequest{
		MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{q}})
	if err != nil {
		return nil, err
	}
	results := res.TableToRowsResult[name]
	if len(results) != len(places) {
		return nil, errors.New("malformed response: it does not have one result for each key")
	}
	marks = make([]readMark, len(places))
	for k, r := range results {
		m := &marks[k]
		if !r.IsSucceed {
			m.failed = &table.Outcome{Fate: table.Again, Code: r.Error.Code, Message: client.OneLine(r.Error.Message)}
			continue
		}
		if len(r.PrimaryKey.PrimaryKeys) > 0 && !sameKey(r.PrimaryKey.PrimaryKeys, q.PrimaryKey[k].PrimaryKeys) {
			return nil, errors.New("malformed response: a row with another key")
		}
		for _, cell := range r.Columns {
			if cell.ColumnName == c.Mark {
				var text bool
				m.text, text = cell.Value.(string)
				m.any, m.odd = true, !text || !isCountMark(m.text)
			}
		}
	}
	return marks, nil
}

// cutMark divides a mark into its run and position, and the names of rejected records.
func cutMark(mark string) (at, names string) {
	if i := strings.IndexAny(mark, signRefused+signGivenUp); i >= 0 {
		return mark[:i], mark[i:]
	}
	return mark, ""
}

// isCountMark reports whether the text is a mark of any load.
func isCountMark(text string) bool {
	const run = 15 // length of table.NewRun
	mark, _ := cutMark(text)
	return len(mark) == run+1+positionDigits && mark[run] == '.'
}

func sameKey(a, b []*tablestore.PrimaryKeyColumn) bool {
	return slices.EqualFunc(a, b, func(x, y *tablestore.PrimaryKeyColumn) bool {
		return x.ColumnName == y.ColumnName && slices.Equal(table.AppendKey(nil, client.ValueOf(x.Value)),
			table.AppendKey(nil, client.ValueOf(y.Value)))
	})
}
