package rundir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What the user has made or changed in the folder of a run that is not finished is not lost when the run is resumed.
func TestFilesOfTheUserStayWhenARunIsResumed(t *testing.T) {
	dir := t.TempDir()
	headers := []Header{{Text: []byte("id,v\n")}, {Text: []byte("x,y\n")}}
	f, err := Create(dir, headers)
	must(t, err)
	reject(t, f, 0, "1,bad\n")
	must(t, f.Flush())
	kept := f.Kept()
	reject(t, f, 1, "2,later\n")
	must(t, f.Close())
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	own := []string{"rejects-fixed.csv", "rejects.csv~", "rejects.csv.bak", "rejects.xlsx", "rejects"}
	for _, name := range own {
		write(name, "the user's")
	}
	write("rejects.csv", "id,v\n1,corrected\n")
	f, err = Reopen(dir, headers, kept)
	must(t, err)
	reject(t, f, 0, "3,worse\n")
	must(t, f.Close())
	for _, name := range own {
		if got := read(t, filepath.Join(dir, name)); got != "the user's" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	for name, want := range map[string]string{
		"rejects.edited-1.csv": "id,v\n1,corrected\n", "rejects.csv": "id,v\n3,worse\n", "rejects-2.later-1.csv": "x,y\n2,later\n",
	} {
		if got := read(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	want := []string{filepath.Join(dir, "rejects.csv"), filepath.Join(dir, "rejects.edited-1.csv"), filepath.Join(dir, ReasonsFile)}
	if got := f.RejectsFiles(); !slices.Equal(got, want) {
		t.Errorf("files of rejects %q, want %q", got, want)
	}

	// An attempt that moved a file aside and was killed before its first checkpoint leaves none of the first name.
	must(t, os.Remove(filepath.Join(dir, "rejects.csv")))
	if f, err = Reopen(dir, headers, kept); err != nil {
		t.Fatal(err)
	}
	must(t, f.Close())
}

func TestReasonsThatWereChangedAreRefused(t *testing.T) {
	dir := t.TempDir()
	headers := []Header{{Text: []byte("id,v\n")}}
	f, err := Create(dir, headers)
	must(t, err)
	reject(t, f, 0, "1,bad\n")
	must(t, f.Close())
	kept := f.Kept()
	text := []byte(read(t, filepath.Join(dir, ReasonsFile)))
	text[3] ^= 1
	must(t, os.WriteFile(filepath.Join(dir, ReasonsFile), text, 0o644))
	if _, err := Reopen(dir, headers, kept); err == nil {
		t.Error("reasons that somebody has changed are mistaken for the run's")
	}
}
