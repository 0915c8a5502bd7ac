package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"

	"tsimport/internal/atomicfile"
)

// OrderFile is the file of a run folder that says in which order sections of the inputs are read.
const OrderFile = "order.bin"

// orderDetail makes versions that do not know of the file refuse to resume the run: they would read in another order.
var orderDetail = Detail{Name: "the order of reading", Value: "by a schedule"}

// KeepOrder keeps the order of reading in the run folder, and then the job with its sum.
func (j *Job) KeepOrder(dir string, order []byte) error {
	if err := atomicfile.WriteBytes(filepath.Join(dir, OrderFile), atomicfile.Options{Perm: 0o600}, order); err != nil {
		return fmt.Errorf("keep the order of reading: %w", err)
	}
	j.Order = sumOf(order)
	j.Details = j.WithOrder(j.Details)
	return j.Write(dir)
}

// WithOrder returns the details with that of the order of reading, if the job has one.
func (j *Job) WithOrder(details []Detail) []Detail {
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
	name := filepath.Join(dir, OrderFile)
	order, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the order of reading: %w", err)
	}
	if sumOf(order) != j.Order {
		return nil, fmt.Errorf("read the order of reading: %s: %w", name, errDamaged)
	}
	return order, nil
}
