package pipeline

import (
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/shuffle/readorder"
	"example.com/tsimport/writer"
)

// leastLookUps is the least maximum of concurrent look-ups by all workers: a batch may need 200 before it is sent.
const leastLookUps = 64

// lookUps returns a function that calls do n times; over all its calls, at most max(leastLookUps, workers) run at once.
func lookUps(workers int) func(n int, do func(i int)) {
	running := make(chan struct{}, max(leastLookUps, workers))
	return func(n int, do func(i int)) {
		var group sync.WaitGroup
		for i := range n {
			running <- struct{}{}
			group.Go(func() {
				do(i)
				<-running
			})
		}
		group.Wait()
	}
}

// earlier returns the rows that the previous attempt may have sent, judging by its checkpoint; nil if there is none.
func (a *attempt) earlier() *writer.Earlier {
	s := a.from.Snapshot
	if s == nil {
		return nil
	}
	p := &writer.Earlier{Bounds: a.survey.bounds}
	waiting := s.Out
	for _, out := range s.Out {
		p.Rows += int64(out.To - out.From)
	}
	for i := range s.Pieces {
		p.Rows += s.Pieces[i].Allowance
		waiting = checkpoint.Union(waiting, s.Pieces[i].Waiting)
	}
	places := readorder.NewPlaces(a.from.Order) // marks hold places in the input, checkpoints hold places in reading order
	p.Open = func(source int, record int64) bool {
		source, record, comes := places.Find(source, record)
		at := checkpoint.At(source, record)
		return comes && (waiting.Has(at) || !s.Read.Has(at))
	}
	return p
}

// bounds returns the first value of every partition but the first.
func (s *partitionPoller) bounds() (values []table.Value) {
	m := s.current.Load()
	for i := 1; i < m.Len(); i++ {
		if v, ok := m.LowerValue(i); ok {
			values = append(values, v)
		}
	}
	return values
}
