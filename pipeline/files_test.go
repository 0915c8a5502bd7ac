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
	must(t, err)
	keys := filepath.Join(dir, "keys.csv")
	open := func(counters map[string]int64) (f files, err error) {
		if f.repeatedRows, err = openRepeatedRows(folder.Path, counters[doubtBytes], nil); err == nil {
			f.returned, err = openReturnedKeys(keys, &plan.Plan{Schema: &table.Schema{Key: numberedKey, Numbered: 1}}, counters[returnedBytes])
		}
		f.folder = folder
		return f, err
	}
	f, err := open(nil)
	must(t, err)
	must(t, f.repeatedRows.journal.Append([]byte("doubt")))
	counters := map[string]int64{}
	must(t, f.keep(&checkpoint.Snapshot{About: checkpoint.About{Counters: counters}}))
	if want := int64(len("file,record,user,seq\n")); len(counters) != 2 || counters[doubtBytes] != 5 || counters[returnedBytes] != want {
		t.Fatalf("%+v", counters)
	}
	for _, j := range f.journals() {
		must(t, j.Append([]byte("not final")))
	}
	must(t, f.close(new(Report)))
	if f, err = open(counters); err != nil {
		t.Fatal(err)
	}
	must(t, f.close(new(Report)))
	for name, want := range map[string]string{filepath.Join(folder.Path, rundir.DoubtsFile): "doubt", keys: "file,record,user,seq\n"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	must(t, os.Truncate(keys, 3))
	f, err = open(counters)
	if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%v", err)
	}
	if err := f.close(new(Report)); err != nil {
		t.Error(err)
	}
}
