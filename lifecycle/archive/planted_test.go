package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// Others may have put links where a table's rows and their manifest are written before they get their names.
func TestLinksInThePlaceOfPartsAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileName("t", 1), manifestName("t", 1)} {
		if err := os.Symlink(victim, filepath.Join(dir, name+".part")); err != nil {
			t.Skip(err)
		}
	}
	m, err := open(t, dir).Export(of(3).subject())
	if err != nil || m.Rows != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	if text := read(t, victim); text != "precious" {
		t.Errorf("the file behind the links holds %q", text)
	}
}
