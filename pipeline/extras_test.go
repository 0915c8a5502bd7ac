package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

// What was written to the files behind the last checkpoint is cut off and comes again.
func TestFilesOfALoadThatGoesOnAreCutToWhatItKeeps(t *testing.T) {
	dir := t.TempDir()
	folder, err := rundir.Create(filepath.Join(dir, "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Write: Write{Marks: Marks{ReturnedKeys: filepath.Join(dir, "keys.csv")}}, Watch: Watch{Progress: new(Progress)}}
	planned := &plan.Plan{Schema: &table.Schema{Table: "t", Key: numberedKey, Numbered: 1}, Mark: "m", Request: &plan.Request{}}
	x, err := newExtras(cfg, new(hooks), planned, folder, new(Report), nil, new(client.Clock), extrasKept{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.doubts.Append([]byte("doubt")); err != nil {
		t.Fatal(err)
	}
	counters := map[string]int64{}
	if err := x.keep(counters); err != nil {
		t.Fatal(err)
	}
	kept := extrasKept{doubts: counters[doubtBytes], returned: counters[returnedBytes]}
	if kept != (extrasKept{doubts: 5, returned: int64(len("file,record,user,seq\n"))}) {
		t.Fatalf("%+v", kept)
	}
	for _, j := range []*rundir.Journal{x.doubts, x.returned} {
		if err := j.Append([]byte("what is not final")); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.close(); err != nil {
		t.Fatal(err)
	}
	if x, err = newExtras(cfg, new(hooks), planned, folder, new(Report), nil, new(client.Clock), kept); err != nil {
		t.Fatal(err)
	}
	if err := x.close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{filepath.Join(folder.Path, rundir.DoubtsFile): "doubt", cfg.Write.Marks.ReturnedKeys: "file,record,user,seq\n"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if err := os.Truncate(cfg.Write.Marks.ReturnedKeys, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := newExtras(cfg, new(hooks), planned, folder, new(Report), nil, new(client.Clock), kept); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%v", err)
	}
}
