package export

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALinkInThePlaceOfAPartIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, part := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv"+partSuffix)
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, part); err != nil {
		t.Skip(err)
	}
	o, _, err := openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.file.WriteString("rows"); err != nil {
		t.Fatal(err)
	}
	if err := o.mark(o.at); err != nil {
		t.Fatal(err)
	}
	if err := o.file.Close(); err != nil {
		t.Fatal(err)
	}
	// What is continued is not a link either.
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, part); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false); err == nil {
		t.Error("a link was continued")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
}
