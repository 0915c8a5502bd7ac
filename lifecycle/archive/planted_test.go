package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// Others may have put links where a table's archive and its manifest are written.
func TestLinksInThePlaceOfPartsAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, filepath.Join(dir, manifestName("t", 1)+".part")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "t")); err != nil { // is not followed, and passed by
		t.Fatal(err)
	}
	m, err := open(t, dir).Export(t.Context(), of(3).subject())
	if err != nil || m.Rows != 3 || m.File != "t-2" {
		t.Fatalf("%+v, %v", m, err)
	}
	if text := read(t, victim); text != "precious" {
		t.Errorf("the file behind the links holds %q", text)
	}
}
