package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tsimport/engine/wire"
)

func TestWhatWasSyncedSurvivesALossOfPower(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, err := Open("d", Options{FS: fs, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	tab := newTable(t, s, -1, 1)
	for k := range int64(50) {
		apply(t, s, tab, change(wire.PutRow, k, at("a", "x", 0)))
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open("d", Options{FS: after, NoSync: true}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tab = s.Table([]byte("t"))
	if tab == nil {
		t.Fatal("the table is lost")
	}
	for k := range int64(50) {
		if read(t, s, tab, k) == "-" {
			t.Errorf("row %d is lost", k)
		}
	}
}
