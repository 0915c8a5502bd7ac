package archive

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"tsimport/internal/jobdir"
)

// fullPlace fails one operation for want of room, after a part of it.
type fullPlace struct {
	place
	left int // operations until then
}

func (f *fullPlace) full() error {
	if f.left--; f.left == -1 {
		return syscall.ENOSPC
	}
	return nil
}

func (f *fullPlace) create(part string) (partFile, error) {
	if err := f.full(); err != nil {
		return nil, err
	}
	made, err := f.place.create(part)
	return &fullPart{made, f}, err
}

func (f *fullPlace) beginJournal(line []byte) error {
	return errors.Join(f.full(), f.place.beginJournal(line)) // it may be there
}

func (f *fullPlace) appendJournal(line []byte) error {
	err := f.full()
	if folder, ok := f.place.(*folder); ok && err != nil {
		_, _ = folder.journal.Write(line[:len(line)/2])
		folder.torn = err
	}
	if err != nil {
		return err
	}
	return f.place.appendJournal(line)
}

func (f *fullPlace) putManifest(text []byte) error {
	if err := f.full(); err != nil {
		return err
	}
	return f.place.putManifest(text)
}

func (f *fullPlace) clean() error {
	if err := f.full(); err != nil {
		return err
	}
	return f.place.clean()
}

type fullPart struct {
	partFile
	place *fullPlace
}

func (p *fullPart) Write(b []byte) (int, error) {
	if err := p.place.full(); err != nil {
		n, _ := p.partFile.Write(b[:len(b)/2])
		return n, err
	}
	return p.partFile.Write(b)
}

func (p *fullPart) commit() error {
	if err := p.place.full(); err != nil {
		return errors.Join(err, p.abandon())
	}
	return p.partFile.commit()
}

// export writes what is missing of an archive of 60 rows in two ranges.
func export(at place) (err error) {
	w, err := open(at, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(subject(), key); err != nil {
		return err
	}
	for rng := range 2 {
		for !w.Range(rng).Ended {
			at := w.Range(rng)
			if at.Rows == 30 {
				if err := w.End(rng); err != nil {
					return err
				}
				continue
			}
			p, err := w.NewPart(rng)
			if err != nil {
				return err
			}
			for i := range int64(10) {
				if err := p.Row(row(int64(rng)*30+at.Rows+i, i)); err != nil {
					return errors.Join(err, p.Abandon())
				}
			}
			if err := p.Commit([]byte("next")); err != nil {
				return err
			}
		}
	}
	_, err = w.Finish(Manifest{})
	return err
}

// TestAnArchiveWithoutRoomIsNotOneAndIsContinued fails one operation after the other, in a folder and in a store.
func TestAnArchiveWithoutRoomIsNotOneAndIsContinued(t *testing.T) {
	ctx := context.Background()
	for kind, open := range map[string]func(dir string) (place, error){
		"folder": func(dir string) (place, error) { return newFolder(dir) },
		"store": func(dir string) (place, error) {
			s, err := jobdir.Open(ctx, dir, jobdir.Options{})
			return &objects{ctx: ctx, store: s}, err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for n := 0; ; n++ {
				dir := filepath.Join(t.TempDir(), "a")
				at, err := open(dir)
				must(t, err)
				failing := &fullPlace{at, n}
				switch err := export(failing); {
				case failing.left >= 0 && err == nil && n > 20:
					return
				case !errors.Is(err, syscall.ENOSPC):
					t.Fatalf("operation %d: %v", n, err)
				}
				m, err := Read(dir)
				if err == nil { // only the journal is left
					err = m.Check(ctx)
				} else if at, err = open(dir); err == nil {
					err = export(at)
				}
				if err != nil {
					t.Fatalf("after operation %d: %v", n, err)
				}
				if m, err = Read(dir); err != nil || m.Rows != 60 || len(m.Parts) != 6 || m.Check(ctx) != nil {
					t.Fatalf("after operation %d: %+v, %v", n, m, err)
				}
			}
		})
	}
}
