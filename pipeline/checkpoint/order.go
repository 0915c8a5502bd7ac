package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
)

// OrderFile is the file of a run folder that says in which order sections of the inputs are read. When more is to be read out of order than it says,
// a file of the other name takes its place: the job names the one that counts by its sum, and each kill leaves that one whole.
const (
	OrderFile      = "order.bin"
	otherOrderFile = "order.other.bin"
)

// orderDetail makes versions that do not know of the file refuse to resume the run: they would read in another order.
var orderDetail = progress.Fact{Name: "the order of reading", Value: "by a schedule"}

// KeepOrder keeps the order of reading in the run folder, and then the job with its sum.
func (j *Job) KeepOrder(dir string, order []byte) error {
	name := OrderFile
	if j.isOrder(dir, name) {
		name = otherOrderFile
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, name), atomicfile.Options{Perm: 0o600}, order); err != nil {
		return fmt.Errorf("keep the order of reading: %w", err)
	}
	j.Order = sumOf(order)
	j.Details = j.WithOrder(j.Details)
	return j.Write(dir)
}

// WithOrder returns the details with that of the order of reading, if the job has one.
func (j *Job) WithOrder(details []progress.Fact) []progress.Fact {
	if j.Order == "" {
		return details
	}
	return append(details[:len(details):len(details)], orderDetail)
}

// ReadOrder reads the order of reading of a run, nil if it has none. It fails if the file is not the one that was kept.
func (j *Job) ReadOrder(dir string) ([]byte, error) {
	if j.Order == "" {
		return nil, nil
	}
	if order, err := os.ReadFile(filepath.Join(dir, otherOrderFile)); err == nil && sumOf(order) == j.Order {
		return order, nil
	}
	return readKept("the order of reading", filepath.Join(dir, OrderFile), j.Order)
}

// isOrder reports whether a file is the order of reading that counts.
func (j *Job) isOrder(dir, name string) bool {
	order, err := os.ReadFile(filepath.Join(dir, name))
	return err == nil && j.Order != "" && sumOf(order) == j.Order
}
