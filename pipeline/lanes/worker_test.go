package lanes

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// refusingSender answers every request with an error and keeps the bodies.
type refusingSender struct {
	bodies [][]byte
	err    error
}

func (s *refusingSender) Post(_ string, appendBody func([]byte) []byte) ([]byte, error) {
	s.bodies = append(s.bodies, appendBody(nil))
	return nil, s.err
}

func flightOf(keys ...string) *flight {
	f := new(flight)
	b := blockOf(new(table.Split), keys...)
	for i := range b.Rows {
		f.Rows = append(f.Rows, table.Ref{Block: b, Index: int32(i)})
		f.Repeated = append(f.Repeated, false)
		f.Outcomes = append(f.Outcomes, table.Outcome{})
	}
	return f
}

func newWorker(err error) (*Worker, *refusingSender) {
	s := &refusingSender{err: err}
	return &Worker{Writer: writer.New(s, nil, "first", table.Put, table.Ignore), Table: "first", Ids: keep.NewTableIDs()},
		s
}

var noTable = &tablestore.OtsError{Code: "OTSObjectNotExist", Message: "Requested table does not exist.",
	HttpStatusCode: 404}

func fates(f *flight) (all []table.Fate) {
	for i := range f.Outcomes {
		all = append(all, f.Outcomes[i].Fate)
	}
	return all
}

func TestAWorkerSendsAFlightToItsTable(t *testing.T) {
	w, sent := newWorker(client.NotSent(errors.New("no connection")))
	var seen int
	w.OnSend = func(rows []table.Ref) { seen += len(rows) }
	for i, name := range []string{"", "second"} {
		f := flightOf("a", "b")
		f.table = name
		r := w.send(f)
		conformance.True(t, r.err == nil && r.flight == f && r.stats.Requests == 1 && !r.done.Before(r.sent) &&
			slices.Equal(fates(f), []table.Fate{table.Again, table.Again}), "flight %d: %+v, %v", i, r, fates(f))
	}
	conformance.True(t, len(sent.bodies) == 2 && bytes.Contains(sent.bodies[0], []byte("first")) &&
		bytes.Contains(sent.bodies[1], []byte("second")) && seen == 4, "bodies %q, %d rows seen", sent.bodies, seen)
}

func TestAWorkerSendsNoFlightThatIsTooLate(t *testing.T) {
	w, sent := newWorker(nil)
	f := flightOf("a", "b")
	f.until = time.Now().Add(-time.Minute)
	r := w.send(f)
	conformance.True(t, len(sent.bodies) == 0 && r.err == nil && r.stats.Requests == 0 && r.done.Equal(r.sent) &&
		slices.Equal(fates(f), []table.Fate{table.Again, table.Again}), "%d requests, %+v, %v", len(sent.bodies), r, fates(f))
}

// For a while a service may say that a new table does not exist.
func TestNewTableCountsAsUnavailableNotAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		made, to string
		opening  bool
	}{
		"the load's own":           {"first", "", true},
		"one of several":           {"second", "second", true},
		"another one was made":     {"first", "second", false},
		"the table was not made":   {"", "", false},
		"made before this attempt": {"second", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newWorker(noTable)
			if tt.made != "" {
				w.Ids.NoteMade(tt.made)
			}
			f := flightOf("a")
			f.table = tt.to
			r := w.send(f)
			conformance.True(t, (r.err == nil) == tt.opening && f.Outcomes[0].Unavailable == tt.opening &&
				f.Outcomes[0].Fate == table.Again, "%v, %+v", r.err, f.Outcomes[0])
		})
	}
}

func TestWorkerReturnsEachFlightAndEnds(t *testing.T) {
	w, sent := newWorker(client.NotSent(errors.New("no connection")))
	f := newFlights(2, 1<<20, time.Minute)
	want := []*flight{flightOf("a"), flightOf("b")}
	for _, n := range want {
		f.out <- n
	}
	close(f.out)
	err := w.Work(&Set{flights: f})
	conformance.True(t, err == nil && len(sent.bodies) == 2, "%v after %d requests", err, len(sent.bodies))
	for _, n := range want {
		conformance.Equal(t, (<-f.back).flight, n, "another flight came back")
	}
}

type restless struct{}

func (restless) Next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	return table.MaxBatchRows, now, true
}
func (r restless) NextOf(now time.Time, n int, perRow, _ float64) (float64, time.Time, bool) {
	return r.Next(now, n, perRow)
}
func (restless) Sent(time.Time, float64)               {}
func (restless) Answered(_, _ time.Time, _, _ float64) {}
func (restless) Unavailable(time.Time)                 {}
func (restless) SetMaxInFlight(int)                    {}
func (restless) Rate() float64                         { return 0 }
func (restless) State() string                         { return "restless" }

func blockOf(s *table.Split, keys ...string) *table.Block {
	b := &table.Block{Split: s}
	for i, k := range keys {
		start := len(b.Data)
		b.Data = table.AppendKey(b.Data, table.Value{Type: table.String, Bytes: []byte(k)})
		body := len(b.Data)
		b.Data = append(b.Data, "row"...)
		b.Append(start, body, 10, table.Span{Record: uint32(i)}, []byte(k+"\n"))
	}
	return b
}
