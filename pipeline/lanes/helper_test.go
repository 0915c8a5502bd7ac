package lanes

import (
	"time"

	"example.com/tsimport/internal/table"
)

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

// blockOf is a block with a row for each key.
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
