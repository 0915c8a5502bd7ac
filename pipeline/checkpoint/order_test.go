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
	if err := j.KeepOrder(dir, []byte("some order")); err != nil {
		t.Fatal(err)
	}
	kept, err := ReadJob(dir)
	if err != nil {
		t.Fatal(err)
	}
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	// More is read out of order: a kill before the job says so leaves the order that counts.
	next := *kept
	if err := next.KeepOrder(dir, []byte("another order")); err != nil {
		t.Fatal(err)
	}
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("after a kill: order %q, error %v", order, err)
	}
	if order, err := next.ReadOrder(dir); string(order) != "another order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	if err := next.KeepOrder(dir, []byte("a third order")); err != nil {
		t.Fatal(err)
	}
	if order, err := next.ReadOrder(dir); string(order) != "a third order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	if err := kept.KeepOrder(dir, []byte("some order")); err != nil {
		t.Fatal(err)
	}
	details := []Detail{{Name: "a", Value: "b"}}
	if changes, _ := kept.Changed(kept.WithOrder(details)); len(changes) > 0 {
		t.Errorf("changes %q", changes)
	}
	if changes, inputs := kept.Changed(details); len(changes) == 0 || inputs {
		t.Errorf("a version that knows no orders sees the changes %q", changes)
	}
	name := filepath.Join(dir, OrderFile)
	for _, bad := range []string{"", "some Order", "some order "} {
		if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.ReadOrder(dir); err == nil || !strings.Contains(err.Error(), OrderFile) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.ReadOrder(dir); err == nil {
		t.Error("a missing file is no error")
	}
}
