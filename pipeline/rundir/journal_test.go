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
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"kept;", "lost;"} {
		if err := j.Append([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if j.Length() != 10 || j.Path() != path {
		t.Errorf("%d bytes in %s", j.Length(), j.Path())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = OpenJournal(path, 5); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]byte("again;")); err != nil {
		t.Fatal(err)
	}
	err = j.Read(func(r *bufio.Reader) error {
		text, err := io.ReadAll(r)
		if string(text) != "kept;again;" {
			t.Errorf("it reads %q", text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "kept;again;end" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAJournalThatIsShorterThanItWasIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte("1234"), 0o644); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	j.file.Close()
	if err := j.Append(make([]byte, 1<<20)); err == nil {
		t.Error("a megabyte is appended to a closed file")
	}
	if err := j.Close(); err == nil {
		t.Error("it is closed without an error")
	}
}
