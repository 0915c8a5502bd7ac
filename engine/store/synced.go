package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
)

// Every batch writes its number under serialKey. Before a synced write is acknowledged, its number is written to the
// file SYNCED, without a sync. Pebble takes a log that ends early for one cut by a crash during an unacknowledged
// write; the two numbers reveal the loss of acknowledged writes. Deleting SYNCED turns this check off for the next
// start.
const (
	syncedName  = "SYNCED"
	syncedMagic = "tsimsync"
	syncedSlots = 2 // written in turn, so that a torn write leaves the other one intact
	slotBytes   = 512
)

var serialKey = []byte{0x00, 0x01}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// synced is the open file SYNCED. The zero value does nothing.
type synced struct {
	mu     sync.Mutex
	file   vfs.File
	number uint64
	slot   int64
}

func appendSlot(dst []byte, number uint64) []byte {
	from := len(dst)
	dst = append(dst, syncedMagic...)
	dst = binary.BigEndian.AppendUint64(dst, number)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[from:], crcTable))
}

func readSlot(b []byte) (number uint64, ok bool) {
	const end = len(syncedMagic) + 8
	if len(b) < end+4 || string(b[:len(syncedMagic)]) != syncedMagic ||
		binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], crcTable) {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[len(syncedMagic):]), true
}

// readSynced returns the last acknowledged number. ok is false if SYNCED is missing.
func readSynced(fs vfs.FS, dir string) (number uint64, ok bool, err error) {
	text, err := readWhole(fs, fs.PathJoin(dir, syncedName), syncedSlots*slotBytes)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for i := 0; i < len(text); i += slotBytes {
		if n, valid := readSlot(text[i:min(len(text), i+slotBytes)]); valid {
			number, ok = max(number, n), true
		}
	}
	if !ok {
		return 0, false, fmt.Errorf("%s is damaged; restore the directory from a copy, or delete that file to accept the "+
			"rest as it is", syncedName)
	}
	return number, true, nil
}

// open opens the file so that advance can write to it. It creates a missing file.
func (y *synced) open(fs vfs.FS, dir string, number uint64, exists bool) error {
	if !exists {
		slot := make([]byte, slotBytes)
		copy(slot, appendSlot(nil, number))
		if err := writeWhole(fs, dir, syncedName, bytes.Repeat(slot, syncedSlots)); err != nil {
			return err
		}
	}
	file, err := fs.OpenReadWrite(fs.PathJoin(dir, syncedName), vfs.WriteCategoryUnspecified)
	y.file, y.number = file, number
	return err
}

// advance records that all batches up to number are on disk.
func (y *synced) advance(number uint64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.file == nil || number <= y.number {
		return nil
	}
	var buf [slotBytes]byte
	if _, err := y.file.WriteAt(appendSlot(buf[:0], number), y.slot%syncedSlots*slotBytes); err != nil {
		return fmt.Errorf("write %s: %w", syncedName, err)
	}
	y.number = number
	y.slot++
	return nil
}

func (y *synced) close() error {
	if y.file == nil {
		return nil
	}
	return cmp.Or(y.file.Sync(), y.file.Close())
}

// giveSerial adds the next number to the end of a batch, where lastSerial finds it. The caller holds commits.
func (s *Store) giveSerial(b *pebble.Batch) error {
	s.serial++
	return b.Set(serialKey, binary.BigEndian.AppendUint64(nil, s.serial), nil)
}

func serialOf(b *pebble.Batch) uint64 {
	repr := b.Repr()
	return binary.BigEndian.Uint64(repr[len(repr)-8:])
}

// readSerial returns the number of the last batch in a database, or 0 if none was numbered.
func readSerial(db *pebble.DB) (uint64, error) {
	number, err := readNumber(db, serialKey, 8)
	if err != nil {
		return 0, fmt.Errorf("read number of the last write: %w", err)
	}
	return number, nil
}

func (s *Store) acknowledge(b *pebble.Batch) *wire.Error {
	if err := s.synced.advance(serialOf(b)); err != nil {
		s.health.fail(err)
		return s.health.ambiguous()
	}
	return nil
}
