package pipeline

import (
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
)

// hooks let tests change and observe a load. Zero hooks change nothing.
type hooks struct {
	keeping     keep.Tuning
	surveyEvery time.Duration // time between readings of the partition map; 0 means the constant
	lanes.Tuning

	sectionRows int       // rows of a section; 0 means the constant
	order       orderWhen // when inputs are read by a schedule
	switchAfter int       // splits before reading switches from order to a schedule; 0 decides by their keys

	processors  func() float64                      // CPU seconds used and waited for; nil measures them
	serviceTime func() (earliest, latest time.Time) // nil uses the service's answers

	onSnapshot func(*dispatcher, *checkpoint.Snapshot) // a snapshot was taken
	onSend     func([]table.Ref)                       // rows are about to be sent
	onFree     func(*table.Block)                      // a block's memory is about to be reused
}

// orderWhen says when inputs are read by a schedule.
type orderWhen uint8

const (
	orderWhenItPays orderWhen = iota
	orderAlways
	orderNever
)

// used returns a function that returns the CPU seconds that the load has used or waited for.
func (h *hooks) used() func() float64 {
	if h.processors != nil {
		return h.processors
	}
	return processors
}
