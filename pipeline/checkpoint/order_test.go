package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheOrderOfReadingComesBackOrIsRefused(t *testing.T) {
	dir := t.TempDir()
	j := &Job{Identity: "x", Details: []Detail{{Name: "a", Value: "b"}}}
	if order, err := j.ReadOrder(dir); order != nil || err != nil {
		t.Errorf("a job without an order has %q, error %v", order, err)
	}
	must(t, j.KeepOrder(dir, []byte("some order")))
	kept, err := ReadJob(dir)
	must(t, err)
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	// More is read out of order: a kill before the job says so leaves the order that counts.
	next := *kept
	must(t, next.KeepOrder(dir, []byte("another order")))
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("after a kill: order %q, error %v", order, err)
	}
	if order, err := next.ReadOrder(dir); string(order) != "another order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	must(t, next.KeepOrder(dir, []byte("a third order")))
	if order, err := next.ReadOrder(dir); string(order) != "a third order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	must(t, kept.KeepOrder(dir, []byte("some order")))
	details := []Detail{{Name: "a", Value: "b"}}
	if changes, _ := kept.Changed(kept.WithOrder(details)); len(changes) > 0 {
		t.Errorf("changes %q", changes)
	}
	if changes, inputs := kept.Changed(details); len(changes) == 0 || inputs {
		t.Errorf("a version that knows no orders sees the changes %q", changes)
	}
	name := filepath.Join(dir, OrderFile)
	for _, bad := range []string{"", "some Order", "some order "} {
		must(t, os.WriteFile(name, []byte(bad), 0o600))
		if _, err := kept.ReadOrder(dir); err == nil || !strings.Contains(err.Error(), OrderFile) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
	must(t, os.Remove(name))
	if _, err := kept.ReadOrder(dir); err == nil {
		t.Error("a missing file is no error")
	}
}
