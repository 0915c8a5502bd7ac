package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADirectoryOfSomethingElseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a tsimport store") || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("the directory was changed: %v", files)
	}
}

func TestASecondOpenNamesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := Open(d, Options{ReadOnly: true}); err == nil {
			t.Errorf("%s was opened", d)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("the directory was changed: %v", files)
	}
}

func TestAStoreOfAnotherFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, markerName), []byte("tsimport store, format 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "format") {
		t.Error(err)
	}
}

func TestAnUnwritableDirectoryIsRefused(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}
