//go:build unix

package rundir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func TestRunFolderOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	conformance.Equal(t, CheckOwner(dir), nil, "CheckOwner")
	conformance.Equal(t, CheckOwner(filepath.Join(dir, "missing")), nil, "CheckOwner")
	info := conformance.Try(os.Stat(dir)).Must(t)
	conformance.Refused(t, checkOwner(dir, info, os.Geteuid()+1), "belongs to user", "result")
}

func TestSharedFolderOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	info := conformance.Try(os.Stat(dir)).Must(t)
	conformance.Equal(t, CheckShared(dir), nil, "CheckShared")
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Skip("folders of others are made by root only")
	}
	err := CheckShared(dir)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "belongs to user 12345") &&
		strings.Contains(err.Error(), SharedVariable+"=trust"), "got %v", err)
	conformance.Equal(t, checkShared(dir, info, os.Geteuid()), nil, "of root, or of one's own")
	t.Setenv(SharedVariable, "trust")
	conformance.Equal(t, CheckShared(dir), nil, "CheckShared")
}

func TestRunFolderIsPrivate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs", "run")
	f := conformance.Try(Create(root, []Header{{Text: []byte("id\n"), Kind: ".csv", Dir: "dt=1"}})).Must(t)
	must(t, f.Reject(0, table.Reject{Raw: []byte("a\n")}))
	must(t, f.Flush())
	files := 0
	err := filepath.WalkDir(filepath.Dir(root), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		conformance.True(t, err != nil || info.Mode().Perm()&0o077 == 0, "%s has mode %v", path, info.Mode())
		files++
		return err
	})
	conformance.True(t, err == nil && files >= 5, "%d files, %v", files, err)
}
