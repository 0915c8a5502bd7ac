package export

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALinkInThePlaceOfAPartIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, part := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv"+partSuffix)
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, part); err != nil {
		t.Skip(err)
	}
	o, _, err := openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false)
	must(t, err)
	_, err = o.file.WriteString("rows")
	must(t, err)
	must(t, o.mark(o.at))
	must(t, o.file.Close())
	// What is continued is not a link either.
	must(t, os.Remove(part))
	must(t, os.Symlink(victim, part))
	if _, _, err := openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false); err == nil {
		t.Error("a link was continued")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
}
