package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tablesOf are files of tables of every kind, and beside them.
var tablesOf = []string{
	"w/delta/part-0.parquet", "w/delta/dt=2024-01-01/part-1.parquet", "w/delta/_delta_log/00000000000000000000.json",
	"w/hudi/2024/01/a.parquet", "w/hudi/.hoodie/hoodie.properties",
	"w/iceberg/data/d=1/a.parquet", "w/iceberg/metadata/00000-x.metadata.json",
	"w/paimon/bucket-0/data-1.parquet", "w/paimon/snapshot/snapshot-1",
	"w/plain/a.parquet", "w/plain/metadata/readme.txt", "w/plain/snapshot/snapshot-2024.csv", "w/notes.csv", "w/delta/notes.csv",
}

func TestFilesOfATableWithALogAreRefusedByItsName(t *testing.T) {
	dir := tree(t, tablesOf...)
	must(t, os.Symlink(filepath.Join(dir, "w/delta/dt=2024-01-01"), filepath.Join(dir, "w/link")))
	s := newOSS(t, tablesOf...)
	for _, c := range []struct{ arg, kind string }{
		{"w/delta", "Delta Lake"},
		{"w/delta/", "Delta Lake"},
		{"w", "Delta Lake"}, // one level up
		{".", "Delta Lake"},
		{"w/delta/part-0.parquet", "Delta Lake"}, // as a shell makes it of a glob
		{"w/delta/*.parquet", "Delta Lake"},
		{"w/delta/*", "Delta Lake"},
		{"w/*/*.parquet", "Delta Lake"},
		{"w/delta/dt=2024-01-01", "Delta Lake"},
		{"w/delta/dt=2024-01-01/part-1.parquet", "Delta Lake"},
		{"w/delta/**/part-1.parquet", "Delta Lake"},
		{"w/link", "Delta Lake"},
		{"w/h*", "Hudi"},
		{"w/hudi/2024/01/a.parquet", "Hudi"},
		{"w/hudi/2024", "Hudi"},
		{"w/iceberg", "Iceberg"},
		{"w/iceberg/data", "Iceberg"},
		{"w/iceberg/data/d=1", "Iceberg"},
		{"w/paimon", "Paimon"},
		{"w/paimon/bucket-0", "Paimon"},
		{"w/delta/part-", "Delta Lake"}, // a prefix of keys
		{"w/ice", "Iceberg"},
	} {
		if _, err := os.Stat(c.arg); err == nil || strings.ContainsAny(c.arg, "*") {
			_, err := Expand(t.Context(), []string{c.arg}, Options{})
			wantError(t, err, nil, c.kind, "no longer part of it", "load the result")
		}
		if c.arg == "w/link" || c.arg == "." {
			continue
		}
		_, err := Expand(t.Context(), []string{s.at + c.arg}, s.o)
		wantError(t, err, nil, c.kind, s.at+"w/", "no longer part of it")
	}
	_, err := Expand(t.Context(), []string{s.at}, s.o)
	wantError(t, err, nil, "Delta Lake")
}

func TestFilesNextToATableAreRead(t *testing.T) {
	tree(t, tablesOf...)
	s := newOSS(t, tablesOf...)
	for arg, want := range map[string]string{
		"w/plain":             "w/plain/a.parquet w/plain/metadata/readme.txt w/plain/snapshot/snapshot-2024.csv",
		"w/plain/a.parquet":   "w/plain/a.parquet",
		"w/*.csv":             "w/notes.csv",
		"w/notes.csv":         "w/notes.csv",
		"w/delta/_delta_log/": "w/delta/_delta_log/00000000000000000000.json", // its log may be of interest itself
	} {
		wantNames(t, expand(t, Options{}, arg), strings.Fields(want)...)
		wantNames(t, expand(t, s.o, s.at+arg), s.names(strings.Fields(want)...)...)
	}
}
