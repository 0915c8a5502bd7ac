package spill

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAtItsLimitAStoreRefusesFramesAndKeepsTheEarlierOnes(t *testing.T) {
	s := open(t, Options{MaxBytes: 10*blockBytes + 1})
	first, second := noise(1, 3*blockBytes-50), noise(2, 6*blockBytes-50)
	a, b := write(t, s, first), write(t, s, second)
	before := s.Usage()
	if _, err := s.Write(noise(3, 2*blockBytes)); !errors.Is(err, ErrFull) {
		t.Fatalf("a frame too many: %v", err)
	}
	conformance.Equal(t, s.Usage(), before, "usage after the refused frame")
	for f, want := range map[Frame][]byte{a: first, b: second} {
		if got, err := s.Read(f, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("an earlier frame: %v", err)
		}
	}
	s.Free(a) // leaves a hole of three blocks; with the one after the end it holds a frame of four
	third := noise(4, 4*blockBytes-50)
	c := write(t, s, third)
	if got, err := s.Read(c, nil); err != nil || !bytes.Equal(got, third) {
		t.Errorf("a frame in two pieces: %v", err)
	}
	conformance.Equal(t, s.Usage().DiskBytes, 10*blockBytes, "bytes on disk")
}

// failing is a file whose n-th operation of a kind fails.
type failing struct {
	file
	mu             sync.Mutex
	failWrite      error // what the next write that is not passed fails with, after half of it
	pass           int
	corrupt, short bool
}

func (f *failing) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pass--; f.pass < 0 && f.failWrite != nil {
		n, _ := f.file.WriteAt(b[:len(b)/2], at)
		return n, &fs.PathError{Op: "write", Path: framesName, Err: f.failWrite}
	}
	return f.file.WriteAt(b, at)
}

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(b, at)
	if f.corrupt && n > 0 {
		b[n/2] ^= 1
	}
	if f.short {
		return n / 2, errors.New("input/output error")
	}
	return n, err
}

// failingStore makes a store on a failing file that works as yet.
func failingStore(t *testing.T) (*Store, *failing) {
	s, f := open(t, Options{}), &failing{}
	s.create = func(path string) (inner file, err error) {
		f.file, err = createFile(path)
		return f, err
	}
	return s, f
}

func TestAFailedWriteLeavesEarlierFramesIntact(t *testing.T) {
	for _, tt := range []struct {
		cause error
		full  bool
	}{{syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EIO, false}} {
		for pass := range 2 {
			s, disk := failingStore(t)
			data := noise(1, 4*blockBytes)
			hole, a := write(t, s, noise(0, blockBytes/2)), write(t, s, data)
			s.Free(hole) // the next frame is written in two pieces
			before := s.Usage()
			disk.failWrite, disk.pass = tt.cause, pass
			_, err := s.Write(noise(2, 3*blockBytes))
			if err == nil || errors.Is(err, ErrFull) != tt.full || !errors.Is(err, tt.cause) {
				t.Errorf("%v at piece %d: %v", tt.cause, pass, err)
			}
			u := s.Usage()
			u.PeakDiskBytes = before.PeakDiskBytes // it was needed for a moment
			conformance.Equal(t, u, before, "%v at piece %d: usage", tt.cause, pass)
			if got, err := s.Read(a, nil); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%v at piece %d: the earlier frame: %v", tt.cause, pass, err)
			}
			disk.failWrite = nil
			if got, err := s.Read(write(t, s, data), nil); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%v at piece %d: a later frame: %v", tt.cause, pass, err)
			}
		}
	}
}

func TestAFolderThatCannotBeFilledLeavesNothing(t *testing.T) {
	s := open(t, Options{})
	s.create = func(string) (file, error) {
		return nil, &fs.PathError{Op: "open", Path: framesName, Err: syscall.ENOSPC}
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if left := names(t, s.dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.create = createFile
	write(t, s, []byte("x"))
}

func TestADamagedFrameIsAnErrorThatNamesTheFile(t *testing.T) {
	for name, damage := range map[string]func(*Store, *failing){
		"a flipped bit":   func(_ *Store, f *failing) { f.corrupt = true },
		"a failing disk":  func(_ *Store, f *failing) { f.short = true },
		"a file cut off":  func(_ *Store, f *failing) { _ = f.Truncate(10) },
		"another's bytes": func(_ *Store, f *failing) { _, _ = f.file.WriteAt(noise(9, blockBytes), 0) },
	} {
		s, disk := failingStore(t)
		f := write(t, s, rows(1, 1<<20))
		damage(s, disk)
		got, err := s.Read(f, []byte("before"))
		if err == nil || !strings.Contains(err.Error(), s.folder.framesPath()) || string(got) != "before" {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		disk.corrupt, disk.short = false, false
		other := write(t, s, rows(2, 1<<20))
		if got, err := s.Read(other, nil); err != nil || !bytes.Equal(got, rows(2, 1<<20)) {
			t.Errorf("%s: the next frame: %v", name, err)
		}
	}
}
