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
	if err := j.KeepDivision(dir, kept); err != nil {
		t.Fatal(err)
	}
	if d, err := j.ReadDivision(dir); err != nil || !bytes.Equal(d, kept) {
		t.Errorf("%q, %v", d, err)
	}
	name := filepath.Join(dir, DivisionFile)
	for _, other := range []string{"1-10,10-21", "1-10", ""} {
		if err := os.WriteFile(name, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := j.ReadDivision(dir); !errors.Is(err, errDamaged) {
			t.Errorf("%q is mistaken for it: %v", other, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := j.ReadDivision(dir); err == nil {
		t.Error("a division that is missing is mistaken for none")
	}
}
