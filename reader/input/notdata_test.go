package input

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesThatAreNotDataAreReadOnlyByName asks for every form of an argument which files it means.
func TestFilesThatAreNotDataAreReadOnlyByName(t *testing.T) {
	tree(t, "a.csv", "runs/r1/rejects.csv", "runs/r1/attempt-1/rejects.csv", "runs/r2/rejects.csv", "store/data/x", "out.csv", "d/b.csv")
	o := Options{NotData: func(name string, folder bool) string {
		switch base := filepath.Base(name); {
		case folder && (base == "r1" || base == "r2" || base == "attempt-1"):
			return "run folder"
		case folder && base == "store":
			return "embedded store"
		case !folder && base == "out.csv":
			return "output"
		}
		return ""
	}}
	const all = "skipped output out.csv, run folder runs/r1, run folder runs/r2, embedded store store; name one to read it"
	for _, tt := range []struct {
		arg, want, warning string
	}{
		{".", "a.csv d/b.csv", all},
		{"*", "a.csv d/b.csv", all},
		{"**", "a.csv d/b.csv", all},
		{"**/*.csv", "a.csv d/b.csv", "skipped output out.csv, run folder runs/r1, run folder runs/r2; name one to read it"},
		{"{a,out}.csv", "a.csv", "skipped output out.csv; name one to read it"},
		{"out.csv", "out.csv", ""},
		{"runs/r1/rejects.csv", "runs/r1/rejects.csv", ""},
		{"runs/r1/*.csv", "runs/r1/rejects.csv", ""},
		{"runs/r1/attempt-1", "runs/r1/attempt-1/rejects.csv", ""},
		{"runs/r1", "runs/r1/rejects.csv", "skipped run folder runs/r1/attempt-1; name one to read it"},
		{"store", "store/data/x", ""},
	} {
		set := expand(t, o, tt.arg)
		if got := strings.Join(names(set), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.arg, got, tt.want)
		}
		if got := strings.Join(set.Warnings, "\n"); got != tt.warning {
			t.Errorf("%s: warns %q, want %q", tt.arg, got, tt.warning)
		}
	}
	for _, arg := range []string{"runs", "runs/*/rejects.csv", "runs/r?"} {
		if _, err := Expand(t.Context(), []string{arg}, o); err == nil || !strings.Contains(err.Error(), "run folder runs/r1, run folder runs/r2") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}
