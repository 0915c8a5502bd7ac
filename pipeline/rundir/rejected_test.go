package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tsimport/internal/table"
)

func TestARunIsReadBack(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, []Header{{Text: []byte("id\n")}})
	must(t, err)
	for _, r := range []struct {
		file   string
		record int64
	}{{"b.csv", 7}, {"a.csv", 900}, {"a.csv", 3}, {"a.csv", 40}} {
		must(t, f.Reject(0, table.Reject{Location: table.Location{Source: r.file, Record: r.record}, Reason: table.Reason{Code: "X", Message: "new\nline"}, Raw: []byte("x\n")}))
	}
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, f.WriteSummary(map[string]any{"arguments": []string{"load", "a b.csv"}, "directory": "/d", "started": started.Add(time.Hour), "first_started": started}))
	must(t, f.Close())
	got, err := ReadRun(dir)
	want := &Run{Arguments: []string{"load", "a b.csv"}, Directory: "/d", Started: started, Rejected: Rejected{"a.csv": {3, 40, 900}, "b.csv": {7}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for record, rejected := range map[int64]bool{2: false, 3: true, 41: false, 900: true, 901: false} {
		if got.Rejected.Has("a.csv", record) != rejected || got.Rejected.Has("c.csv", record) {
			t.Errorf("record %d of a.csv, rejected: %v", record, !rejected)
		}
	}
}

func TestARunThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadRun(dir); err == nil {
		t.Error("a folder without a run is one")
	}
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write(SummaryFile, "{")
	if _, err := ReadRun(dir); err == nil || !strings.Contains(err.Error(), SummaryFile) {
		t.Errorf("half a summary: %v", err)
	}
	write(SummaryFile, "{}")
	if r, err := ReadRun(dir); err != nil || r.Rejected.Has("a.csv", 1) {
		t.Errorf("a run without rejects: %v", err)
	}
	write(ReasonsFile, "{\"file\":\"a.csv\",\"record\":1}\n{\"file\":")
	if _, err := ReadRun(dir); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("half a reject: %v", err)
	}
}
