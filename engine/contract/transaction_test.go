package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

var (
	locked    = refusal{409, "OTSRowOperationConflict", "Data is being modified by the other request."}
	noSession = refusal{404, "OTSSessionNotExist", "Session not exist or may be timeout."}
)

func (s *service) lockable(t *testing.T) *table {
	t.Helper()
	return s.newTable(t, tableOptions{localTxn: ptr(true), versions: 2})
}

func (tb *table) tryStart(values ...any) (id string, err error) {
	r, err := tb.StartLocalTransaction(&tablestore.StartLocalTransactionRequest{TableName: tb.name,
		PrimaryKey: tb.key(values...)})
	if err != nil {
		return "", err
	}
	return *r.TransactionId, nil
}

// start begins a transaction. If it is still open at the end of the test, it is aborted.
func (tb *table) start(t *testing.T, partition string) (id string) {
	t.Helper()
	id = conformance.Try(tb.tryStart(partition)).Must(t)
	if tb.real {
		t.Cleanup(func() {
			if err := tb.abort(id); err != nil {
				check(t, err, noSession)
			}
		})
	}
	return id
}

func (s *service) commit(id string) error {
	_, err := s.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})
	return err
}

func (s *service) abort(id string) error {
	_, err := s.AbortTransaction(&tablestore.AbortTransactionRequest{TransactionId: &id})
	return err
}

func in(id string, changed tablestore.RowChange) tablestore.RowChange {
	switch x := changed.(type) {
	case *tablestore.PutRowChange:
		x.TransactionId = &id
	case *tablestore.UpdateRowChange:
		x.TransactionId = &id
	case *tablestore.DeleteRowChange:
		x.TransactionId = &id
	}
	return changed
}

func reading(id string) selection {
	return func(q *tablestore.SingleRowQueryCriteria) { q.TransactionId = &id }
}

// batchIn sends a BatchWriteRow of puts in a transaction, which the SDK cannot do.
func (tb *table) batchIn(t *testing.T, id string, puts ...*tablestore.PutRowChange) *answer {
	t.Helper()
	rows := message{}.text(1, tb.name)
	for _, p := range puts {
		rows = rows.bytes(2, message{}.int(1, 1).bytes(2, p.Serialize()).bytes(3, message{}.int(1, 0)))
	}
	return tb.ask(t, "BatchWriteRow", message{}.bytes(1, rows).text(2, id))
}

// rowCodes returns the error code of each row in a batch of one table; "" means success.
func rowCodes(t *testing.T, a *answer) (codes []string) {
	t.Helper()
	a.check(t, accepted)
	for _, row := range parseOf(t, parseOf(t, a.body).bytes(1))[2] {
		codes = append(codes, string(parseOf(t, parseOf(t, row).bytes(2)).bytes(1)))
	}
	return codes
}

// rangeIn reads a range of rows, in a transaction unless id is empty.
func (tb *table) rangeIn(id, from, to string) ([]*row, error) {
	r := ranged(tb.criteria(tb.key(from, minKey)), tablestore.FORWARD, tb.key(to, maxKey), 0)
	if id != "" {
		r.RangeRowQueryCriteria.TransactionId = &id
	}
	page, err := tb.GetRange(r)
	if err != nil {
		return nil, err
	}
	var rows []*row
	for _, x := range page.Rows {
		rows = append(rows, newRow(x.PrimaryKey, x.Columns).untimed())
	}
	return rows, nil
}

func TestLocalTransactionsNeedTableOption(t *testing.T) {
	s := proving(t, "3.12.1")
	_, err := s.newTable(t, tableOptions{localTxn: ptr(false)}).tryStart("a")
	check(t, err, invalid("Try to call method using explicit transaction on explicit-transaction-disabled table."))
	s.checkCreate(t, func(r *create) {
		r.meta = r.meta.bytes(2, message{}.text(1, "pk2").int(2, 1).int(3, 1))
		r.more = message{}.int(8, 1)
	}, invalid("A table with an AUTO_INCREMENT primary key cannot have local transactions."))
	tb := s.lockable(t)
	must(t, s.commit(tb.start(t, "a")))
}

func TestTransactionCoversOnePartitionKey(t *testing.T) {
	s := proving(t, "3.12.2")
	tb := s.lockable(t)
	_, err := tb.tryStart("a", 1)
	check(t, err, invalid("StartLocalTransaction support only one primary key."))
	_, err = tb.tryStart(1)
	check(t, err, invalidPK("Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING."))
	_, err = (&table{service: s, name: newTableName(), keys: tb.keys}).tryStart("a")
	check(t, err, noSuchTable)
	id := tb.start(t, "a")
	_, err = tb.tryStart("a")
	check(t, err, locked)
	must(t, s.abort(tb.start(t, "b")))
	must(t, s.commit(id))
	must(t, s.commit(tb.start(t, "a")))
}

func TestTransactionIsInvisibleUntilCommit(t *testing.T) {
	s := proving(t, "3.12.3", "3.12.9", "3.12.8")
	tb := s.lockable(t)
	tb.load(t, tb.put(tb.key("a", 1), c("v", 1)), tb.put(tb.key("a", 2), c("v", 2)), tb.put(tb.key("a", 9), c("v", 9)))
	before := conformance.Try(tb.rangeIn("", "a", "a")).Must(t)
	after := []*row{
		{[]any{"a", int64(1)}, []cell{c("v", int64(11))}},
		{[]any{"a", int64(3)}, []cell{c("v", int64(3))}},
		{[]any{"a", int64(4)}, []cell{c("v", int64(4))}},
		{[]any{"a", int64(9)}, []cell{c("v", int64(9))}},
	}
	for _, end := range []func(string) error{s.abort, s.commit} {
		id := tb.start(t, "a")
		u := conformance.Try(s.units(in(id, tb.update(tb.key("a", 1), add("v", 10))))).Must(t)
		diff(t, unitsOf(u), units{0, 1})
		must(t, s.do(in(id, expecting(expectExist, tb.delete(tb.key("a", 2))))))
		must(t, s.do(in(id, expecting(expectNotExist, tb.put(tb.key("a", 3), c("v", 3))))))
		check(t, s.do(in(id, expecting(expectNotExist, tb.put(tb.key("a", 3))))), conditionFailed)
		diff(t, rowCodes(t, tb.batchIn(t, id, tb.put(tb.key("a", 4), c("v", 4)))), []string{""})
		inside := conformance.Try(tb.rangeIn(id, "a", "a")).Must(t)
		diff(t, inside, after)
		diff(t, tb.get(t, tb.key("a", 2), reading(id)), (*row)(nil))
		own := tb.get(t, tb.key("a", 3), reading(id))
		outside := conformance.Try(tb.rangeIn("", "a", "a")).Must(t)
		diff(t, outside, before)
		diff(t, tb.get(t, tb.key("a", 3)), (*row)(nil))
		must(t, end(id))
		if got := tb.get(t, tb.key("a", 3)); got != nil {
			diff(t, got, own) // with the timestamps of the writes
		}
		for _, use := range []error{s.commit(id), s.abort(id), s.do(in(id, tb.put(tb.key("a", 1))))} {
			check(t, use, noSession)
		}
	}
	outside := conformance.Try(tb.rangeIn("", "a", "a")).Must(t)
	diff(t, outside, after)
}

func TestTransactionLocksItsPartitionKey(t *testing.T) {
	s := proving(t, "3.12.4")
	tb := s.lockable(t)
	must(t, s.do(tb.put(tb.key("a", 1), c("v", 1))))
	id := tb.start(t, "a")
	check(t, s.do(tb.put(tb.key("a", 1))), locked)
	check(t, s.do(tb.update(tb.key("a", 2), set("v", 1))), locked)
	check(t, s.do(expecting(expectExist, tb.delete(tb.key("a", 3)))), locked)
	batch := []tablestore.RowChange{tb.put(tb.key("b", 1)), tb.put(tb.key("a", 5)), tb.put(tb.key("b", 2))}
	for i, row := range tb.rows(t, batch...) {
		checkRow(t, row, []refusal{accepted, locked, accepted}[i])
	}
	atomic := &tablestore.BatchWriteRowRequest{IsAtomic: true}
	atomic.AddRowChange(tb.put(tb.key("a", 6)))
	atomic.AddRowChange(tb.put(tb.key("a", 7)))
	r := conformance.Try(s.BatchWriteRow(atomic)).Must(t)
	checkRows(t, r.TableToRowsResult[tb.name], locked)
	bulk := s.ask(t, "BulkImport", bulkBody(tb.name, bulkRow(tb, tb.key("a", 8)), bulkRow(tb, tb.key("c", 8))))
	for i, row := range parseOf(t, bulk.body)[2] {
		diff(t, parseOf(t, row).number(1), int64(i)) // is_ok
	}
	other := s.lockable(t)
	must(t, s.do(other.put(other.key("a", 1))))
	diff(t, len(tb.all(t)), 4)
	must(t, s.abort(id))
	must(t, s.do(tb.put(tb.key("a", 2))))
}

func TestTransactionRefusesOtherKeysAndTables(t *testing.T) {
	s := proving(t, "3.12.5")
	tb, other := s.lockable(t), s.lockable(t)
	id := tb.start(t, "a")
	outside := refusal{400, "OTSDataOutOfRange", "Data out of scope of transaction. Transaction PartKey:a. Data PartKey:b"}
	elsewhere := refusal{400, "OTSDataOutOfRange",
		fmt.Sprintf("Data out of scope of transaction. Transaction Table:%s. Data Table:%s", tb.name, other.name)}
	check(t, s.do(in(id, tb.put(tb.key("b", 1)))), outside)
	check(t, s.do(in(id, other.put(other.key("a", 1)))), elsewhere)
	_, _, err := tb.tryGet(tb.key("b", 1), reading(id))
	check(t, err, outside)
	_, _, err = other.tryGet(other.key("a", 1), reading(id))
	check(t, err, elsewhere)
	for _, ends := range [][2]string{{"a", "b"}, {"b", "b"}} {
		_, err = tb.rangeIn(id, ends[0], ends[1])
		check(t, err, outside)
	}
	all := ranged(tb.criteria(tb.key(minKey, minKey), reading(id)), tablestore.FORWARD, tb.key("a", 1), 0)
	all.RangeRowQueryCriteria.TransactionId = &id
	_, err = s.GetRange(all)
	check(t, err, refusal{400, "OTSDataOutOfRange", "Data out of scope of transaction. Transaction PartKey:a. Data " +
		"PartKey:VT_INF_MIN"})
	codes := rowCodes(t, tb.batchIn(t, id, tb.put(tb.key("b", 1)), tb.put(tb.key("a", 2))))
	diff(t, codes, []string{"OTSDataOutOfRange", ""})
	diff(t, rowCodes(t, other.batchIn(t, id, other.put(other.key("a", 1)))), []string{"OTSDataOutOfRange"})
	must(t, s.commit(id))
	diff(t, tb.all(t), []*row{{[]any{"a", int64(2)}, nil}})
	diff(t, len(other.all(t)), 0)
}

func TestTransactionEndsAfterAMinuteOrWithProcess(t *testing.T) {
	s := proving(t, "3.12.6", "3.12.1", "1.2.2")
	tb := s.lockable(t)
	for _, id := range []string{"fake", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef00"} {
		for _, err := range []error{s.commit(id), s.abort(id), s.do(in(id, tb.put(tb.key("a", 1))))} {
			check(t, err, invalid("TransactionID is invalid."))
		}
	}
	check(t, s.commit(""), invalid("TransactionID is invalid."))
	check(t, s.commit("0123456789abcdef0123456789abcdef"), noSession)
	if s.real {
		t.Skip("the rest needs an engine")
	}
	e := enginetest.Start(t)
	tb = (&service{TableStoreClient: newClient(e.URL, e.Instance, e.AccessKeyID, e.AccessKeySecret)}).lockable(t)
	id := tb.start(t, "a")
	must(t, tb.do(in(id, tb.put(tb.key("a", 1)))))
	e.Advance(t, 59*time.Second)
	must(t, tb.do(in(id, tb.put(tb.key("a", 1)))))
	check(t, tb.do(tb.put(tb.key("a", 2))), locked)
	e.Advance(t, time.Second)
	must(t, tb.do(tb.put(tb.key("a", 2))))
	check(t, tb.commit(id), noSession)
	diff(t, len(tb.all(t)), 1)

	for name, end := range map[string]func(*restartable){"a stop": func(r *restartable) { r.stop() },
		"a loss of power": (*restartable).losePower} {
		r := openStore(t)
		tb := r.lockable(t)
		committed, open := tb.start(t, "a"), tb.start(t, "b")
		must(t, r.do(in(committed, tb.put(tb.key("a", 1)))))
		must(t, r.commit(committed))
		must(t, r.do(in(open, tb.put(tb.key("b", 1)))))
		end(r)
		r.start(t)
		check(t, r.commit(open), noSession)
		diff(t, tb.all(t), []*row{{[]any{"a", int64(1)}, nil}})
		must(t, r.do(tb.put(tb.key("b", 2))))
		_, err := tb.tryStart("a") // the table still supports transactions
		conformance.Equal(t, err, nil, "a start after %s", name)
	}
}

func TestTransactionSizeLimit(t *testing.T) {
	s := proving(t, "3.12.7")
	tb := s.lockable(t)
	id := tb.start(t, "a")
	tooMuch := refusal{400, "OTSOutOfTransactionDataSizeLimit", ""}
	const key = 3 + 1 + 3 + 8 // bytes
	million := func(n, less int) *tablestore.PutRowChange {
		return tb.put(tb.key("a", n), c("v", text(1<<20-1-key-less)))
	}
	for n := range 3 {
		must(t, s.do(in(id, million(n, 0))))
	}
	check(t, s.do(in(id, expecting(expectExist, million(8, 0)))), conditionFailed) // a failed write does not count
	check(t, s.do(in(id, million(3, -1))), tooMuch)
	tb.batchIn(t, id, million(3, 0), tb.put(tb.key("a", 4))).check(t, tooMuch)
	must(t, s.do(in(id, million(3, 0))))
	check(t, s.do(in(id, tb.delete(tb.key("a", 1)))), tooMuch)
	must(t, s.commit(id))
	diff(t, len(tb.all(t)), 4)
}
