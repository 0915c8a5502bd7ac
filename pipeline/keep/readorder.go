package keep

import (
	"fmt"

	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// ReadOrder reads the schedules that the attempts before have followed.
func (o *Point) ReadOrder(planned *plan.Plan) error {
	if o.Snapshot == nil {
		return nil
	}
	file, err := o.Job.ReadOrder(o.Load.RunDir)
	if err == nil && file != nil {
		if o.Order, err = readorder.Decode(file); err != nil {
			err = fmt.Errorf("read the order of reading: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; "+source.StartOver, err)
	}
	for _, s := range o.Order {
		if s.Source+s.Sources > len(planned.Sources) {
			return fmt.Errorf("read the order of reading: it is that of %d inputs, and there are %d; "+source.StartOver, s.Source+s.Sources, len(planned.Sources))
		}
	}
	return nil
}
