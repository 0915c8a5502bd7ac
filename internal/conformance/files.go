package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// File is a file's entry in the manifest. Pointers are nil if the manifest does not say.
type File struct {
	Path, Format, Compression, Encoding string
	Expected                            string // ok, error or any; empty for files without an expected result
	Note                                string
	DerivedFrom                         string `json:"derived_from"` // the content of this compressed file
	Delimiter                           *string
	Header                              *bool
	Rows, Records                       *int64
}

// Part returns the folder of the part of the collection in this repository.
func Part(t testing.TB) string {
	t.Helper()
	return filepath.Join(root(t), "reader", "testdata")
}

// Whole returns the folder of the whole collection, TSIMPORT_SHARED_DATA or shared/data beside the repository, or "".
func Whole(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TSIMPORT_SHARED_DATA")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		return ""
	}
	return dir
}

// Dir returns Whole, or Part if there is no collection. Only the part has a folder "made".
func Dir(t testing.TB) string {
	t.Helper()
	if dir := Whole(t); dir != "" {
		return dir
	}
	return Part(t)
}

// Run runs a test on the part and, if present, on the whole collection.
func Run(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	t.Run("part", func(t *testing.T) { test(t, Part(t)) })
	if dir := Whole(t); dir != "" {
		t.Run("whole", func(t *testing.T) { test(t, dir) })
	}
}

// Files returns the entries of a folder's manifest.
func Files(t testing.TB, dir string) []File {
	t.Helper()
	var files []File
	Must(t, json.Unmarshal(Read(t, dir, "manifest.json"), &files))
	return files
}

func Read(t testing.TB, dir, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
	Must(t, err)
	return text
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no folder above has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
}
