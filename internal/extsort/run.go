package extsort

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"example.com/tsimport/internal/spill"
)

// run holds sorted items on disk, in frames that can be read one by one.
type run struct{ frames []frame }

type frame struct {
	first []byte // first key of the frame
	on    spill.Frame
}

// from returns the index of the first frame that can hold the key or a later one.
func (r *run) from(key []byte) int {
	if key == nil {
		return 0
	}
	// The frame before n may end with the key.
	n := sort.Search(len(r.frames), func(i int) bool { return bytes.Compare(r.frames[i].first, key) >= 0 })
	return max(n-1, 0)
}

// runWriter writes a run in frames of about frameBytes. Each item consists of two lengths, its key and its value.
type runWriter struct {
	store *spill.Store
	run   run
	first []byte
	buf   []byte
}

func (w *runWriter) add(key, value []byte) error {
	if len(w.buf) > 0 && len(w.buf)+len(key)+len(value) > frameBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(w.buf) == 0 {
		w.first = bytes.Clone(key)
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(len(key)))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(value)))
	w.buf = append(append(w.buf, key...), value...)
	return nil
}

func (w *runWriter) flush() error {
	on, err := w.store.Write(w.buf)
	if err != nil {
		return err
	}
	w.run.frames = append(w.run.frames, frame{w.first, on})
	w.buf = w.buf[:0]
	return nil
}

func (w *runWriter) finish() (*run, error) {
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	w.run.frames = slices.Clip(w.run.frames)
	return &w.run, nil
}

// cursor reads one run, or the items in memory.
type cursor struct {
	key, value []byte

	sorter *Sorter
	items  []item // the remaining items, in memory
	head   uint64 // head of key, for items in memory
	ahead  int    // number of items already touched
	looked byte   // keeps the compiler from removing readAhead's loads

	run   *run
	frame int    // index of the next frame to read
	buf   []byte // content of the current frame
	rest  []byte // unread rest of buf
}

func (c *cursor) next() (ok bool, err error) {
	if c.run == nil {
		if len(c.items) == 0 {
			return false, nil
		}
		if c.ahead == 0 {
			c.readAhead()
		}
		c.ahead--
		c.key, c.value = c.sorter.keyOf(&c.items[0]), c.sorter.valueOf(&c.items[0])
		c.head = c.items[0].head
		c.items = c.items[1:]
		return true, nil
	}
	for len(c.rest) == 0 {
		if c.frame == len(c.run.frames) {
			return false, nil
		}
		if c.buf, err = c.sorter.store.Read(c.run.frames[c.frame].on, c.buf[:0]); err != nil {
			return false, err
		}
		c.rest = c.buf
		c.frame++
	}
	key, n := binary.Uvarint(c.rest)
	if n <= 0 {
		return false, errDamaged
	}
	value, m := binary.Uvarint(c.rest[n:])
	if m <= 0 || key > uint64(len(c.rest)) || value > uint64(len(c.rest)) || key+value > uint64(len(c.rest)-n-m) {
		return false, errDamaged
	}
	c.rest = c.rest[n+m:]
	c.key, c.value, c.rest = c.rest[:key:key], c.rest[key:key+value:key+value], c.rest[key+value:]
	return true, nil
}

// readAhead touches the next items in the arena, so that the processor fetches them from memory in parallel.
func (c *cursor) readAhead() {
	c.ahead = min(32, len(c.items))
	for i := range c.items[:c.ahead] {
		item := &c.items[i]
		if n := item.key + item.value; n > 0 {
			c.looked ^= c.sorter.arena[item.at] ^ c.sorter.arena[item.at+n-1]
		}
	}
}
