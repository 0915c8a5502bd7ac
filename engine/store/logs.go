package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkLogs refuses a store whose files lack acknowledged batches, before Pebble mistakes the loss for a crash's.
func (s *Store) checkLogs(fs vfs.FS, dir string, lock *pebble.Lock, acknowledged uint64) error {
	data := fs.PathJoin(dir, dataDir)
	last, err := s.flushedSerial(fs, data, lock)
	if err != nil {
		return err
	}
	names, err := fs.List(data)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(names)
	for _, name := range names {
		err := eachSerial(fs, data, name, func(n uint64) error {
			if n > last+1 {
				return fmt.Errorf(
					"writes %d to %d are missing before log %s: a log was truncated; restore the directory from a copy",
					last+1, n-1, name)
			}
			last = max(last, n)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if last < acknowledged {
		return fmt.Errorf("it ends with write %d, but write %d was acknowledged: a log or manifest was truncated or "+
			"damaged; restore the directory from a copy, or delete %s to accept the loss", last, acknowledged, syncedName)
	}
	return nil
}

// withoutLogs is a file system that hides the logs from Pebble.
type withoutLogs struct{ vfs.FS }

func (fs withoutLogs) List(dir string) ([]string, error) {
	names, err := fs.FS.List(dir)
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, ".log") }), err
}

// flushedSerial returns the number of the last batch that was flushed, or 0 for a new database.
func (s *Store) flushedSerial(fs vfs.FS, data string, lock *pebble.Lock) (uint64, error) {
	if d, err := pebble.Peek(data, fs); err != nil || !d.Exists {
		return 0, err
	}
	db, err := pebble.Open(data, &pebble.Options{FS: withoutLogs{fs}, ReadOnly: true, Lock: lock, DisableTableStats: true,
		Logger: logger{&s.health}})
	if err != nil {
		return 0, err
	}
	number, err := readSerial(db)
	return number, cmp.Or(err, db.Close())
}

// eachSerial calls f with the number of each batch in a log, up to its end or the first damage.
func eachSerial(fs vfs.FS, data, name string, f func(uint64) error) error {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 32)
	if err != nil {
		return nil // not a log of Pebble's
	}
	file, err := fs.Open(fs.PathJoin(data, name))
	if err != nil {
		return err
	}
	defer file.Close()
	records := newReader(record.NewReader, file, number)
	var batch bytes.Buffer
	for {
		r, err := records.Next()
		if err != nil {
			return nil
		}
		batch.Reset()
		if _, err := io.Copy(&batch, r); err != nil {
			return nil
		}
		if n, ok := lastSerial(batch.Bytes()); ok {
			if err := f(n); err != nil {
				return err
			}
		}
	}
}

// newReader calls f with the log's number converted to a type that Pebble does not export.
func newReader[N ~uint64](f func(io.Reader, N) *record.Reader, r io.Reader, number uint64) *record.Reader {
	return f(r, N(number))
}

// lastSerial returns the number that a batch writes under serialKey.
func lastSerial(repr []byte) (number uint64, ok bool) {
	if len(repr) < batchrepr.HeaderLen {
		return 0, false
	}
	r := batchrepr.Read(repr)
	for {
		kind, key, value, more, err := r.Next()
		if !more || err != nil {
			return number, ok
		}
		if kind == pebble.InternalKeyKindSet && bytes.Equal(key, serialKey) && len(value) == 8 {
			number, ok = binary.BigEndian.Uint64(value), true
		}
	}
}
