package keep

import (
	"fmt"

	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// ReadAgain makes the checkpoint that the attempt resumes from its base, if the sources are live. Nothing is sent while what the attempt
// before has sent may be applied: it could replace a newer row.
func (o *Point) ReadAgain(planned *plan.Plan) error {
	s := o.Snapshot
	if s == nil || !planned.Live {
		return nil
	}
	records, err := s.ReadAgain(len(planned.Sources))
	c := s.Counters
	open := openRecords(c)
	if err == nil && (open < 0 || records < open) {
		err = fmt.Errorf("%d records are not final, but %d would be read again", open, records)
	}
	if err != nil {
		return fmt.Errorf("the run cannot be resumed: %w; "+source.StartOver, err)
	}
	c["read"] -= open
	c["read_again"] += records - open
	o.Hold = Later(o.Hold, o.SuspectUntil)
	return nil
}

// rowsAgain answers for the records of live sources in an attempt that resumes: each may have been sent, as it was then.
type rowsAgain struct{}

func (rowsAgain) Row(int, int64, []byte) (final, suspect bool) { return false, true }

func (rowsAgain) Counted(int, int64) bool { return false }

func (rowsAgain) Known(int, int64, int64) bool { return true }

func (rowsAgain) Unknown(int, int64) bool { return false }
