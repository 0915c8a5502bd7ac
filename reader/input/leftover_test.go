package input

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// TestLeftoversAreReadOnlyIfTheyAreAskedFor asks for every form of an argument which files of programs that were interrupted or keep
// earlier versions it means.
func TestLeftoversAreReadOnlyIfTheyAreAskedFor(t *testing.T) {
	files := []string{
		"d/a.csv", "d/a.csv~", "d/b.CSV.BAK", "d/c.csv.orig", "d/d.swp", "d/e.csv.tmp", "d/f.part", "d/g.partial", "d/h.crdownload", "d/i.filepart",
		"d/j.csv._COPYING_", "d/k.inprogress", "d/~$l.csv", "d/m.csv.tmp.gz", "d/n.tmpx", "d/o.bak/p.csv", "d/bakery", "d/part-0",
		"only/x.csv.tmp", "only-new/y.csv", "back/z.csv", "back/z.csv~",
	}
	tree(t, files...)
	lake := newS3(t, files...).at
	const kept = "d/a.csv d/bakery d/n.tmpx d/o.bak/p.csv d/part-0"
	for _, tt := range []struct {
		arg, want, warning string
	}{
		{"d", kept, "skipped unfinished or replaced files, by their names (13): "},
		{"d/*", kept, "skipped unfinished or replaced files, by their names (13): "},
		{"**/*.csv*", "back/z.csv d/a.csv d/o.bak/p.csv only-new/y.csv", "skipped unfinished or replaced files, by their names (8): "},
		{"d/*.csv", "d/a.csv", "skipped unfinished or replaced files, by their names (1): "},
		{"d/*~", "d/a.csv~", ""},
		{"d/*.bak", "d/o.bak/p.csv", ""},
		{"d/*.{csv,BAK}", "d/a.csv d/b.CSV.BAK", "skipped unfinished or replaced files, by their names (1): "},
		{"d/*.tmp*", "d/n.tmpx", "skipped unfinished or replaced files, by their names (2): "},
		{"d/*.tmp.gz", "d/m.csv.tmp.gz", ""},
		{"d/~$*", "d/~$l.csv", ""},
		{"d/e.csv.tmp", "d/e.csv.tmp", ""},
		{"only", "", "skipped "},
		{"only/*", "", ""},
	} {
		for _, at := range []string{"", lake} {
			set, err := Expand(t.Context(), []string{at + tt.arg}, Options{Retry: soon})
			if tt.want == "" {
				wantError(t, err, fs.ErrNotExist, tt.arg, tt.warning, "only/x.csv.tmp")
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", at+tt.arg, err)
			}
			got := strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(names(set))), " "), lake, "")
			if got != strings.Join(slices.Sorted(strings.FieldsSeq(tt.want)), " ") {
				t.Errorf("%s: %s, want %s", at+tt.arg, got, tt.want)
			}
			if got := strings.Join(set.Warnings, "\n"); !strings.HasPrefix(got, tt.warning) || (got == "") != (tt.warning == "") || strings.Contains(got, "\n") {
				t.Errorf("%s: warns %q, want %q", at+tt.arg, got, tt.warning)
			}
		}
	}
	wantNames(t, expand(t, Options{Extensions: []string{".bak", ".csv"}}, "d"), "d/a.csv", "d/b.CSV.BAK", "d/o.bak/p.csv")
	// What may not be whole counts as not read, so that nothing is deleted for it; an earlier version does not.
	for arg, unread := range map[string]int{"d": 1, "back": 0} {
		if set := expand(t, Options{}, arg); len(set.Unread) != unread || len(set.Warnings) != 1 {
			t.Errorf("%s: %q of %q", arg, set.Unread, set.Warnings)
		}
	}
}

func TestOneFileCompressedAndNotIsAWarning(t *testing.T) {
	tree(t, "d/a.csv", "d/a.csv.gz", "d/b.csv.zst", "e/a.csv", "f/c.csv.gz", "f/c.csv.zst", "f/d.GZ", "f/d")
	for arg, want := range map[string]string{
		"d":    "d/a.csv and d/a.csv.gz seem to be the same file",
		"f":    "f/c.csv.gz and f/c.csv.zst, f/d and f/d.GZ seem to be the same file",
		"e":    "",
		"*/a*": "d/a.csv and d/a.csv.gz seem",
	} {
		set := expand(t, Options{}, arg)
		if got := strings.Join(set.Warnings, "\n"); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: warns %q, want %q", arg, got, want)
		}
	}
}
