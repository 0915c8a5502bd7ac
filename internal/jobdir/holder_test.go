package jobdir

import (
	"maps"
	"testing"
	"testing/synctest"
)

func TestTheHolderOfALeaseIsFoundWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		ask := func() string {
			t.Helper()
			before := maps.Clone(s.objects)
			owner, err := Holder(t.Context(), s)
			must(t, err)
			if !maps.Equal(before, s.objects) {
				t.Error("something was put")
			}
			return owner
		}
		if owner := ask(); owner != "" {
			t.Errorf("nobody: %q", owner)
		}
		l, err := Acquire(t.Context(), s, LeaseOptions{Owner: "pod-1"})
		must(t, err)
		if owner := ask(); owner != "pod-1" {
			t.Errorf("held: %q", owner)
		}
		must(t, l.Release())
		if owner := ask(); owner != "" {
			t.Errorf("given back: %q", owner)
		}
		s.objects[leaseName(9)] = "damaged"
		if _, err := Holder(t.Context(), s); err == nil {
			t.Error("a lease that is damaged is not noticed")
		}
	})
}
