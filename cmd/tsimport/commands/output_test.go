package commands

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Others may have put a link where an output is written before it gets its name.
func TestAnOutputIsNotWrittenThroughAPlantedLink(t *testing.T) {
	dir := t.TempDir()
	victim, out := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv")
	put(t, victim, "precious")
	if err := os.Symlink(victim, out+".part"); err != nil {
		t.Skip(err)
	}
	err := writeOutput(t.Context(), out, io.Discard, func(w io.Writer) error {
		_, err := io.WriteString(w, "rows")
		return err
	})
	must(t, err)
	for name, want := range map[string]string{victim: "precious", out: "rows"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	if info, err := os.Lstat(out); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the output is %v, %v", info.Mode(), err)
	}
}
