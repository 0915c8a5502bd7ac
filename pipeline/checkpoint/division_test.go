package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestADivisionSurvivesTheRoundTrip(t *testing.T) {
	dir, j := t.TempDir(), new(Job)
	if d, err := j.ReadDivision(dir); d != nil || err != nil {
		t.Errorf("without one: %q, %v", d, err)
	}
	kept := []byte("1-10,10-20")
	must(t, j.KeepDivision(dir, kept))
	if d, err := j.ReadDivision(dir); err != nil || !bytes.Equal(d, kept) {
		t.Errorf("%q, %v", d, err)
	}
	name := filepath.Join(dir, DivisionFile)
	for _, other := range []string{"1-10,10-21", "1-10", ""} {
		must(t, os.WriteFile(name, []byte(other), 0o600))
		if _, err := j.ReadDivision(dir); !errors.Is(err, errDamaged) {
			t.Errorf("%q is mistaken for it: %v", other, err)
		}
	}
	must(t, os.Remove(name))
	if _, err := j.ReadDivision(dir); err == nil {
		t.Error("a division that is missing is mistaken for none")
	}
}
