package writer

import (
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// Sender sends each request once. appendBody appends to the sender's buffer; the answer is valid until the next call.
type Sender interface {
	Post(operation string, appendBody func(dst []byte) []byte) (answer []byte, err error)
}

// Reader is the part of the SDK's client that a Writer needs.
type Reader interface {
	GetRow(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error)
}

// Stats counts the work of a call.
type Stats struct {
	Requests int // requests that wrote rows
	Searched int // rows that were looked up before they were sent again
	Found    int // of those, the rows that existed and so were not sent again

	// AllWritten, with Options.Brief, means that every row was written, for WriteCU units in all. Outcomes are not set.
	AllWritten bool
	WriteCU    int
}

// Writer writes rows to one table per call, in one mode unless they have their own. Each worker has its own Writer,
// which is not safe for concurrent use.
type Writer struct {
	sender    Sender
	reader    Reader
	table     string
	mode      table.Mode
	existence table.Existence

	rows       []table.Ref // rows of the request being sent
	appendBody func([]byte) []byte
	bytes      int // size of the request's body
	answers    []answered
	noReading  bool // rows cannot be read back, so the run is ending
	last       refusal

	options Options
	sent    annotated
}

// New returns a Writer for the named table. existence is the condition of every row.
func New(sender Sender, reader Reader, name string, mode table.Mode, existence table.Existence) *Writer {
	w := &Writer{sender: sender, reader: reader, table: name, mode: mode, existence: existence}
	w.appendBody = func(dst []byte) []byte {
		before := len(dst)
		dst = appendRequest(dst, w.table, w.mode, w.existence, w.rows, &w.sent)
		w.bytes = len(dst) - before
		return dst
	}
	return w
}

// SetTable sets the table of the next calls' rows.
func (w *Writer) SetTable(name string) { w.table = name }

// Write sends the rows and sets outcomes[i] for rows[i]; the slices have equal lengths. repeated[i] says that an
// earlier attempt may have applied rows[i]. With Options.Stamps, rows[i] is sent with the timestamp outcomes[i].Stamp.
//
// An error means that the run cannot continue (access key, permissions, missing table, stop). Outcomes are still set.
func (w *Writer) Write(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	if n := w.options.AutoIncrement; n != nil && n.Mark != "" {
		return w.writeOnce(rows, repeated, outcomes)
	}
	if w.options.Increments != nil {
		return w.writeCounted(rows, repeated, outcomes)
	}
	return w.write(rows, repeated, outcomes, w.options.Brief && w.options.Stamps == nil && w.options.AutoIncrement == nil)
}

// allWritten reports whether every row was written, and if so sets the cost in stats.
func allWritten(answers []answered, stats *Stats) bool {
	for i := range answers {
		if !answers[i].ok {
			stats.WriteCU = 0
			return false
		}
		stats.WriteCU += answers[i].writeCU * answers[i].rows
	}
	stats.AllWritten = true
	return true
}

// write sends all of the rows, regardless of earlier attempts. brief is Options.Brief.
func (w *Writer) write(rows []table.Ref, repeated []bool, outcomes []table.Outcome, brief bool) (Stats, error) {
	stats := Stats{Requests: 1}
	if err := w.annotate(rows, outcomes); err != nil {
		return stats, err
	}
	answers, err := w.send(rows)
	if err != nil {
		return w.refusedWhole(stats, err, rows, repeated, outcomes)
	}
	if brief && allWritten(answers, &stats) {
		return stats, nil
	}
	var fatal error
	i := 0
	for n := range answers {
		for range answers[n].rows {
			if outcomes[i], err = w.outcome(&answers[n], rows[i], repeated[i]); err != nil && fatal == nil {
				fatal = err
			}
			w.completed(&answers[n], i, rows[i], &outcomes[i])
			i++
		}
	}
	if fatal == nil {
		fatal = w.allUnrecognized(outcomes)
	}
	if fatal == nil {
		fatal = w.withoutExpired(&stats, rows, repeated, outcomes)
	}
	return stats, fatal
}

// allUnrecognized returns an error if all of several rows have an undocumented code: then no single row is the cause.
func (w *Writer) allUnrecognized(outcomes []table.Outcome) error {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Code == "" || client.ClassifyCode(o.Code, o.Message) != client.Unrecognized {
			return nil
		}
	}
	if len(outcomes) < 2 {
		return nil
	}
	for i := range outcomes {
		outcomes[i].Fate = table.Unknown
	}
	return fmt.Errorf("write to table %s: every row of a request was answered with a code that Tablestore does not "+
		"document, %s: %s; the rows may have been written",
		w.table, outcomes[0].Code, outcomes[0].Message)
}

// refusedWhole handles a request that failed as a whole. It halves the request if a row may be the cause.
func (w *Writer) refusedWhole(stats Stats, err error, rows []table.Ref, repeated []bool,
	outcomes []table.Outcome) (Stats, error) {
	o, verdict := w.wholeOutcome(err)
	if verdict == halve && len(rows) > 1 {
		mid := len(rows) / 2
		first, err1 := w.write(rows[:mid], repeated[:mid], outcomes[:mid], false)
		stats.add(first)
		if err1 != nil {
			fill(outcomes[mid:], table.Outcome{Fate: table.Again})
			return stats, err1
		}
		second, err2 := w.write(rows[mid:], repeated[mid:], outcomes[mid:], false)
		stats.add(second)
		return stats, err2
	}
	if client.TooLarge(err) && len(rows) == 1 && w.options.Size != nil && w.options.Size.refusedAlone(w.bytes) {
		// The request cannot be made smaller.
		o.Fate, o.Code, o.MaybeApplied = table.Refused, "OTSRequestBodyTooLarge", true // the refusal is not authenticated
		o.Message = fmt.Sprintf("a gateway between here and the service refuses a request with this row alone (HTTP 413 "+
			"for %d bytes); raise its limit on bodies, the service takes %d", w.bytes, table.MaxBodyBytes)
	}
	fill(outcomes, o)
	for i := range outcomes {
		if o.Fate == table.Refused && repeated[i] {
			w.doubt(&outcomes[i])
		}
		w.completed(nil, i, rows[i], &outcomes[i])
	}
	if verdict == stop {
		return stats, fmt.Errorf("write to table %s: %w", w.table, &client.Error{Cause: err})
	}
	return stats, w.withoutExpired(&stats, rows, repeated, outcomes)
}

func (s *Stats) add(o Stats) {
	s.Requests += o.Requests
	s.Searched += o.Searched
	s.Found += o.Found
}

func fill(outcomes []table.Outcome, o table.Outcome) {
	for i := range outcomes {
		outcomes[i] = o
	}
}

// send sends one request. The answers for its rows are valid until the next request.
func (w *Writer) send(rows []table.Ref) ([]answered, error) {
	w.rows = rows
	body, err := w.sender.Post("BatchWriteRow", w.appendBody)
	w.rows = nil
	if err != nil {
		w.options.Size.failed(w.bytes, err)
		return nil, err
	}
	w.options.Size.took(w.bytes)
	w.answers, err = decodeAnswer(w.answers, body, w.table, len(rows))
	return w.answers, err
}
