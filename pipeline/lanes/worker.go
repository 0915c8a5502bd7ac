package lanes

import (
	"cmp"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// Worker sends flights, one after the other.
type Worker struct {
	Writer *writer.Writer
	Table  string // that rows go to, unless their flight names another
	Ids    *keep.TableIDs
	OnSend func([]table.Ref) // of tests
}

// Work sends flights until there are no more, or there is a worker too many.
func (w *Worker) Work(s *Set) error {
	for n := range s.flights.out {
		if n == nil {
			return nil
		}
		s.flights.back <- w.send(n) // never blocks: it holds every flight
	}
	return nil
}

// send sends a flight and waits for the answer.
func (w *Worker) send(f *flight) Result {
	if w.OnSend != nil {
		w.OnSend(f.Rows)
	}
	if f.table != "" {
		w.Writer.SetTable(f.table)
	}
	r := Result{flight: f, sent: time.Now()}
	if f.tooLate(r.sent) {
		r.done = r.sent
		return r
	}
	r.stats, r.err = w.Writer.Write(f.Rows, f.Repeated, f.Outcomes)
	f.AllWritten, f.WriteCU = r.stats.AllWritten, r.stats.WriteCU
	if r.err != nil && client.IsNoTable(r.err) && w.Ids.Opening(cmp.Or(f.table, w.Table), r.sent) {
		r.err = nil
		for i := range f.Outcomes {
			f.Outcomes[i].Unavailable = f.Outcomes[i].Unavailable || f.Outcomes[i].Fate == table.Again
		}
	}
	r.done = time.Now()
	return r
}
