package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

// What was written to the files after the last checkpoint is cut off and comes again.
func TestFilesOfAResumedLoadAreCutToWhatItsCheckpointCountsOn(t *testing.T) {
	dir := t.TempDir()
	folder, err := rundir.Create(filepath.Join(dir, "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys.csv")
	open := func(counters map[string]int64) (f files, err error) {
		if f.repeatedRows, err = openRepeatedRows(folder.Path, counters[doubtBytes], nil); err == nil {
			f.returned, err = openReturnedKeys(keys, &plan.Plan{Schema: &table.Schema{Key: numberedKey, Numbered: 1}}, counters[returnedBytes])
		}
		f.folder = folder
		return f, err
	}
	f, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.repeatedRows.journal.Append([]byte("doubt")); err != nil {
		t.Fatal(err)
	}
	counters := map[string]int64{}
	if err := f.keep(&checkpoint.Snapshot{About: checkpoint.About{Counters: counters}}); err != nil {
		t.Fatal(err)
	}
	if want := int64(len("file,record,user,seq\n")); len(counters) != 2 || counters[doubtBytes] != 5 || counters[returnedBytes] != want {
		t.Fatalf("%+v", counters)
	}
	for _, j := range f.journals() {
		if err := j.Append([]byte("not final")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.close(new(Report)); err != nil {
		t.Fatal(err)
	}
	if f, err = open(counters); err != nil {
		t.Fatal(err)
	}
	if err := f.close(new(Report)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{filepath.Join(folder.Path, rundir.DoubtsFile): "doubt", keys: "file,record,user,seq\n"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if err := os.Truncate(keys, 3); err != nil {
		t.Fatal(err)
	}
	f, err = open(counters)
	if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%v", err)
	}
	if err := f.close(new(Report)); err != nil {
		t.Error(err)
	}
}
