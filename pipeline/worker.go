package pipeline

import (
	"cmp"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// worker sends flights, one after the other.
type worker struct {
	writer *writer.Writer
	table  string // that rows go to, unless their flight names another
	ids    *keep.TableIDs
	onSend func([]table.Ref) // of tests
}

// work sends flights until there are no more, or there is a worker too many.
func (w *worker) work(s *lanes) error {
	for n := range s.flights.out {
		if n == nil {
			return nil
		}
		s.flights.back <- w.send(n) // never blocks: it holds every flight
	}
	return nil
}

// send sends a flight and waits for the answer.
func (w *worker) send(f *flight) result {
	if w.onSend != nil {
		w.onSend(f.Rows)
	}
	if f.table != "" {
		w.writer.SetTable(f.table)
	}
	r := result{flight: f, sent: time.Now()}
	if f.tooLate(r.sent) {
		r.done = r.sent
		return r
	}
	r.stats, r.err = w.writer.Write(f.Rows, f.Repeated, f.Outcomes)
	f.AllWritten, f.WriteCU = r.stats.AllWritten, r.stats.WriteCU
	if r.err != nil && client.IsNoTable(r.err) && w.ids.Opening(cmp.Or(f.table, w.table), r.sent) {
		r.err = nil
		for i := range f.Outcomes {
			f.Outcomes[i].Unavailable = f.Outcomes[i].Unavailable || f.Outcomes[i].Fate == table.Again
		}
	}
	r.done = time.Now()
	return r
}
