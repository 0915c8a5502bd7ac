package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxPartBytes limits the size of the part, which every clone of the repository includes.
const maxPartBytes = 1300 << 10

// TestPartAgreesWithManifest checks that the manifest lists all files, with licences, and that the part is small.
func TestPartAgreesWithManifest(t *testing.T) {
	dir := Part(t)
	readme := string(Read(t, dir, "README.md"))
	listed := map[string]bool{"README.md": true, "LICENSES": true, "manifest.json": true}
	for _, f := range Files(t, dir) {
		True(t, !listed[f.Path], "%s is listed twice", f.Path)
		listed[f.Path] = true
		Must(t, ErrorOf(os.Stat(filepath.Join(dir, f.Path))))
		if f.DerivedFrom != "" {
			Read(t, dir, f.DerivedFrom)
		}
		folder := strings.Join(strings.SplitN(f.Path, "/", 3)[:2], "/")
		True(t, strings.Contains(readme, "`"+folder+"`"),
			"%s: README.md does not say where the files of %s come from", f.Path, folder)
	}
	size := int64(0)
	Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		rel, _ := filepath.Rel(dir, path)
		True(t, listed[filepath.ToSlash(rel)], "%s is not in the manifest", rel)
		return nil
	}))
	True(t, size <= maxPartBytes, "the files have %d bytes, more than %d", size, maxPartBytes)
}

// TestEnvironmentNamesCollection checks that tests use the part if the variable names an empty folder.
func TestEnvironmentNamesCollection(t *testing.T) {
	t.Setenv("TSIMPORT_SHARED_DATA", t.TempDir())
	dir := Whole(t)
	True(t, dir == "" && Dir(t) == Part(t), "an empty folder is mistaken for the collection: %q, %q", dir, Dir(t))
	t.Setenv("TSIMPORT_SHARED_DATA", Part(t))
	True(t, Whole(t) == Part(t), "the collection that the environment names is %q", Whole(t))
	var ran []string
	Run(t, func(t *testing.T, dir string) { ran = append(ran, filepath.Base(t.Name())) })
	True(t, strings.Join(ran, " ") == "part whole", "it ran on %q", ran)
}

// told stands in for a test and counts its failures.
type told int

func (n *told) Helper()               {}
func (n *told) Fatal(...any)          { *n++ }
func (n *told) Errorf(string, ...any) { *n++ }

// TestFailedChecksFailTests guards against a check that never fails, which would hide every defect.
func TestFailedChecksFailTests(t *testing.T) {
	for _, holds := range []bool{true, false} {
		var n told
		True(&n, holds, "")
		MustTrue(&n, holds, "")
		MustEqual(&n, holds, true, "")
		Must(&n, ErrorOf(0, map[bool]error{false: os.ErrInvalid}[holds]))
		MustEqual(t, Try(7, map[bool]error{false: os.ErrInvalid}[holds]).Must(&n), 7, "value")
		MustEqual(t, n, map[bool]told{false: 5}[holds], "failures of five checks")
	}
}

func TestNoServiceKeepsTheServiceForTests(t *testing.T) {
	for name, want := range map[string]string{"TABLESTORE_ENDPOINT": "", "TSIMPORT_PROFILE": "", "TABLESTORE_TEST_X": "x"} {
		t.Setenv(name, "x")
		NoService()
		Equal(t, os.Getenv(name), want, "%s", name)
	}
}
