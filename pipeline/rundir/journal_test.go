package rundir

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAJournalContinuesAtTheLengthThatWasKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, 0)
	must(t, err)
	for _, text := range []string{"kept;", "lost;"} {
		must(t, j.Append([]byte(text)))
	}
	if j.Length() != 10 || j.Path() != path {
		t.Errorf("%d bytes in %s", j.Length(), j.Path())
	}
	must(t, j.Close())
	if j, err = OpenJournal(path, 5); err != nil {
		t.Fatal(err)
	}
	must(t, j.Append([]byte("again;")))
	err = j.Read(func(r *bufio.Reader) error {
		text, err := io.ReadAll(r)
		if string(text) != "kept;again;" {
			t.Errorf("it reads %q", text)
		}
		return err
	})
	must(t, err)
	must(t, j.Append([]byte("end")))
	must(t, j.Close())
	if text, err := os.ReadFile(path); err != nil || string(text) != "kept;again;end" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAJournalThatIsShorterThanItWasIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	must(t, os.WriteFile(path, []byte("1234"), 0o644))
	if _, err := OpenJournal(path, 5); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "1234" {
		t.Errorf("it is touched: %q", text)
	}
	if _, err := OpenJournal(filepath.Join(path, "below"), 0); err == nil {
		t.Error("a journal below a file is opened")
	}
}

func TestAJournalThatCannotBeWrittenSaysSo(t *testing.T) {
	j, err := OpenJournal(filepath.Join(t.TempDir(), "journal"), 0)
	must(t, err)
	j.file.Close()
	if err := j.Append(make([]byte, 1<<20)); err == nil {
		t.Error("a megabyte is appended to a closed file")
	}
	if err := j.Close(); err == nil {
		t.Error("it is closed without an error")
	}
}
