package writer

import (
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/table"
)

// Service is what a Writer needs of the SDK's client. Calls must not be repeated by the client itself.
type Service interface {
	BatchWriteRow(*tablestore.BatchWriteRowRequest) (*tablestore.BatchWriteRowResponse, error)
	GetRow(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error)
}

// Stats counts what a call did.
type Stats struct {
	Requests int // BatchWriteRow requests sent
	Searched int // rows that were looked for before they were sent again
	Found    int // of those, rows that were there, and so were not sent
}

// Writer writes rows of one table in one mode. Each worker has its own: it is not safe for concurrent use.
type Writer struct {
	service   Service
	table     string
	mode      table.Mode
	existence table.Existence

	put     tablestore.PutRowChange
	update  tablestore.UpdateRowChange
	delete  tablestore.DeleteRowChange
	changes []tablestore.RowChange
	puts    []putRow
	updates []updateRow
	deletes []deleteRow

	extras Extras
	sent   dressed
}

// The SDK takes only its own kinds of row change, but asks them for their bytes: these answer with bytes that were
// encoded long before.
type (
	putRow struct {
		*tablestore.PutRowChange
		row []byte
	}
	updateRow struct {
		*tablestore.UpdateRowChange
		row []byte
	}
	deleteRow struct {
		*tablestore.DeleteRowChange
		row []byte
	}
)

func (r *putRow) Serialize() []byte    { return r.row }
func (r *updateRow) Serialize() []byte { return r.row }
func (r *deleteRow) Serialize() []byte { return r.row }

// New makes a writer. Existence is the condition every row is written under.
func New(service Service, name string, mode table.Mode, existence table.Existence) *Writer {
	condition := &tablestore.RowCondition{RowExistenceExpectation: expectations[existence]}
	w := &Writer{service: service, table: name, mode: mode, existence: existence}
	w.put = tablestore.PutRowChange{TableName: name, Condition: condition}
	w.update = tablestore.UpdateRowChange{TableName: name, Condition: condition}
	w.delete = tablestore.DeleteRowChange{TableName: name, Condition: condition}
	return w
}

var expectations = map[table.Existence]tablestore.RowExistenceExpectation{
	table.Ignore:         tablestore.RowExistenceExpectation_IGNORE,
	table.ExpectExist:    tablestore.RowExistenceExpectation_EXPECT_EXIST,
	table.ExpectNotExist: tablestore.RowExistenceExpectation_EXPECT_NOT_EXIST,
}

// Write sends the rows and sets outcomes[i] for rows[i]; all three slices are equally long. Repeated[i] says that an
// earlier attempt may have applied rows[i].
//
// An error means that the run cannot go on (keys, permissions, a missing table, or the run was stopped); the outcomes
// are set all the same.
func (w *Writer) Write(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	if n := w.extras.Numbers; n != nil && n.Mark != "" {
		return w.writeOnce(rows, repeated, outcomes)
	}
	return w.write(rows, repeated, outcomes)
}

// write sends all of the rows, whatever became of earlier attempts.
func (w *Writer) write(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	stats := Stats{Requests: 1}
	if err := w.dress(rows); err != nil {
		return stats, err
	}
	results, err := w.send(rows)
	if err != nil {
		return w.refusedWhole(stats, err, rows, repeated, outcomes)
	}
	var fatal error
	for i := range results {
		if outcomes[i], err = w.outcome(&results[i], rows[i], repeated[i]); err != nil && fatal == nil {
			fatal = err
		}
		w.completed(&results[i], rows[i], &outcomes[i])
	}
	return stats, fatal
}

// refusedWhole handles an error for the request as a whole.
func (w *Writer) refusedWhole(stats Stats, err error, rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	o, verdict := wholeOutcome(err)
	if verdict == halve && len(rows) > 1 {
		mid := len(rows) / 2
		first, err1 := w.write(rows[:mid], repeated[:mid], outcomes[:mid])
		stats.add(first)
		if err1 != nil {
			fill(outcomes[mid:], table.Outcome{Fate: table.Again})
			return stats, err1
		}
		second, err2 := w.write(rows[mid:], repeated[mid:], outcomes[mid:])
		stats.add(second)
		return stats, err2
	}
	fill(outcomes, o)
	for i := range outcomes {
		w.completed(nil, rows[i], &outcomes[i])
	}
	if verdict == stop {
		return stats, fmt.Errorf("write to table %s: %w", w.table, &client.Error{Cause: err})
	}
	return stats, nil
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

// send sends one request and returns one result a row.
func (w *Writer) send(rows []table.Ref) (results []tablestore.RowResult, err error) {
	// The SDK dereferences fields of the answer that a broken answer lacks. Such an answer says nothing about what
	// was applied.
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("unreadable answer: %v", p)
		}
	}()
	changes, err := w.rowChanges(rows)
	if err != nil {
		return nil, err
	}
	request := &tablestore.BatchWriteRowRequest{
		RowChangesGroupByTable: map[string][]tablestore.RowChange{w.table: changes},
	}
	res, err := w.service.BatchWriteRow(request)
	if err != nil {
		return nil, err
	}
	results = res.TableToRowsResult[w.table]
	if len(results) != len(rows) {
		return nil, fmt.Errorf("unreadable answer: %d results for %d rows", len(results), len(rows))
	}
	return results, nil
}

func (w *Writer) rowChanges(rows []table.Ref) ([]tablestore.RowChange, error) {
	w.changes = w.changes[:0]
	switch w.mode {
	case table.Put:
		w.puts = grow(w.puts, len(rows))
		for i, r := range rows {
			if w.extras.Numbers != nil {
				p, err := w.numberedPut(r, i)
				if err != nil {
					return nil, err
				}
				w.changes = append(w.changes, p)
				continue
			}
			w.puts[i] = putRow{&w.put, r.Body()}
			w.changes = append(w.changes, &w.puts[i])
		}
	case table.Update:
		w.updates = grow(w.updates, len(rows))
		for i, r := range rows {
			w.updates[i] = updateRow{&w.update, w.bodyOf(i, r)}
			w.changes = append(w.changes, &w.updates[i])
		}
	case table.Delete:
		w.deletes = grow(w.deletes, len(rows))
		for i, r := range rows {
			w.deletes[i] = deleteRow{&w.delete, r.Body()}
			w.changes = append(w.changes, &w.deletes[i])
		}
	}
	return w.changes, nil
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, table.MaxBatchRows))
	}
	return s[:n]
}
