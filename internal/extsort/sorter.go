package extsort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

type Options struct {
	Memory  int64         // bytes for items before they are spilled, and for reading them back; 0 means DefaultMemory
	Readers int           // iterators used at the same time; 0 means 1
	Spill   spill.Options // where sorted runs are stored
}

// DefaultMemory is the value of Options.Memory if it is 0.
const DefaultMemory = 64 << 20

// frameBytes is the approximate size of a run's frame. Each open reader holds one frame of every run.
const frameBytes = 64 << 10

// minFanIn is the smallest number of runs that may be merged at once, even if memory is short.
const minFanIn = 4

type item struct {
	head       uint64 // the key's first bytes as an integer in the same order
	at         uint32 // offset of the key in the arena; the value follows it
	key, value uint32 // lengths of the key and the value
}

const itemBytes = 24

// Sorter collects items until Sort is called. It is not safe for concurrent use.
type Sorter struct {
	store *spill.Store
	limit int64 // limit of the memory of arena and items
	fanIn int
	arena []byte
	items []item
	runs  []*run
	count int64
	spill int64 // number of items written to disk
}

// New makes a sorter. It writes nothing to disk until its memory is full.
func New(o Options) (*Sorter, error) {
	o.Memory, o.Readers = cmp.Or(o.Memory, DefaultMemory), max(o.Readers, 1)
	store, err := spill.Open(o.Spill)
	if err != nil {
		return nil, err
	}
	s := &Sorter{store: store}
	// While the arena grows, its old and new memory exist together.
	s.limit = max(min(o.Memory/2, math.MaxUint32/2), 4<<10)
	s.fanIn = int(max(o.Memory/(2*frameBytes*int64(o.Readers)), minFanIn))
	return s, nil
}

// Add adds an item. It copies key and value.
func (s *Sorter) Add(key, value []byte) error {
	size := int64(len(key)) + int64(len(value)) + itemBytes
	if len(s.items) > 0 && int64(len(s.arena))+itemBytes*int64(len(s.items))+size > s.limit {
		if err := s.spillRun(); err != nil {
			return err
		}
	}
	if uint64(len(s.arena))+uint64(len(key))+uint64(len(value)) > math.MaxUint32 {
		return fmt.Errorf("sort: an item of %d bytes is too large", size)
	}
	s.arena, s.items = room(s.arena, len(key)+len(value), s.limit), room(s.items, 1, s.limit/itemBytes)
	at := uint32(len(s.arena))
	s.arena = append(append(s.arena, key...), value...)
	s.items = append(s.items, item{table.Head(key), at, uint32(len(key)), uint32(len(value))})
	s.count++
	return nil
}

// room makes room for n more elements by doubling s, up to most elements; append would copy a large slice four times.
func room[T any](s []T, n int, most int64) []T {
	if len(s)+n > cap(s) {
		return slices.Grow(s, max(n, min(len(s), int(most)-len(s))))
	}
	return s
}

// Expect allocates memory for about the given number of items and total bytes of their keys and values.
func (s *Sorter) Expect(items, bytes int64) {
	items, bytes = items+items/16, bytes+bytes/16
	share := min(1, float64(s.limit)/float64(max(bytes+itemBytes*items, 1))) // share of the items that fits in memory
	// slices.Grow would also clear the new memory.
	s.arena = append(make([]byte, 0, max(int(share*float64(bytes)), len(s.arena))), s.arena...)
	s.items = append(make([]item, 0, max(int(share*float64(items)), len(s.items))), s.items...)
}

func (s *Sorter) keyOf(i *item) []byte { return s.arena[i.at : i.at+i.key] }

func (s *Sorter) valueOf(i *item) []byte { return s.arena[i.at+i.key:][:i.value] }

func (s *Sorter) sortItems() {
	var differ uint64 // bits in which any heads differ
	for i := range s.items {
		differ |= s.items[i].head ^ s.items[0].head
	}
	s.sortFrom(s.items, (bits.Len64(differ)-1)&^7) // negative if no bits differ
}

// compare compares items with the same head.
func (s *Sorter) compare(a, b *item) int {
	return cmp.Or(bytes.Compare(s.keyOf(a), s.keyOf(b)), bytes.Compare(s.valueOf(a), s.valueOf(b)))
}

// few is the largest number of items that are sorted by insertion.
const few = 48

// sortFrom sorts items whose heads are the same above the byte at shift: by that byte, then by the following ones.
func (s *Sorter) sortFrom(items []item, shift int) {
	if len(items) <= few {
		for i := 1; i < len(items); i++ {
			moved, to := items[i], i
			for ; to > 0 && (moved.head < items[to-1].head || moved.head == items[to-1].head &&
				s.compare(&moved, &items[to-1]) < 0); to-- {
				items[to] = items[to-1]
			}
			items[to] = moved
		}
		return
	}
	if shift < 0 { // the heads are the same
		slices.SortFunc(items, func(a, b item) int { return s.compare(&a, &b) })
		return
	}
	var next, end [256]int
	for i := range items {
		end[byte(items[i].head>>shift)]++
	}
	for b := 1; b < len(end); b++ {
		next[b] = end[b-1]
		end[b] += end[b-1]
	}
	for b := range end {
		for ; next[b] < end[b]; next[b]++ {
			moved := items[next[b]]
			for at := byte(moved.head >> shift); int(at) != b; at = byte(moved.head >> shift) {
				moved, items[next[at]] = items[next[at]], moved
				next[at]++
			}
			items[next[b]] = moved
		}
	}
	from := 0
	for _, to := range end {
		s.sortFrom(items[from:to], shift-8)
		from = to
	}
}

func (s *Sorter) spillRun() error {
	s.sortItems()
	w := runWriter{store: s.store}
	for i := range s.items {
		if err := w.add(s.keyOf(&s.items[i]), s.valueOf(&s.items[i])); err != nil {
			return err
		}
	}
	r, err := w.finish()
	if err != nil {
		return err
	}
	s.spill += int64(len(s.items))
	s.runs = append(s.runs, r)
	s.arena, s.items = s.arena[:0], s.items[:0]
	return nil
}

// Store returns the store that items spill to. Other data in it shares its limit and is removed by Close.
func (s *Sorter) Store() *spill.Store { return s.store }

// Len returns the number of items added.
func (s *Sorter) Len() int64 { return s.count }

// Spilled returns the number of items written to disk.
func (s *Sorter) Spilled() int64 { return s.spill }

// Sorted holds the items of a Sorter in order. It is safe for concurrent use.
type Sorted struct {
	from *Sorter
	runs []*run
}

// Sort sorts the added items. Add must not be called afterwards. The result owns the sorter's memory and files.
func (s *Sorter) Sort() (*Sorted, error) {
	if len(s.runs) > 0 && len(s.items) > 0 {
		if err := s.spillRun(); err != nil {
			return nil, err
		}
		s.arena, s.items = nil, nil
	}
	s.sortItems()
	for len(s.runs) > s.fanIn {
		if err := s.mergeSome(); err != nil {
			return nil, err
		}
	}
	return &Sorted{from: s, runs: s.runs}, nil
}

// mergeSome merges the smallest runs into one run.
func (s *Sorter) mergeSome() error {
	slices.SortStableFunc(s.runs, func(a, b *run) int { return cmp.Compare(len(a.frames), len(b.frames)) })
	n := max(min(s.fanIn, len(s.runs)-s.fanIn+1), 2)
	it := newIterator(s, s.runs[:n], nil, nil)
	w := runWriter{store: s.store}
	for it.Next() {
		if err := w.add(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	if it.Err() != nil {
		return it.Err()
	}
	merged, err := w.finish()
	if err != nil {
		return err
	}
	for _, r := range s.runs[:n] {
		for _, f := range r.frames {
			s.store.Free(f.on)
		}
	}
	s.runs = append(s.runs[n:], merged)
	return nil
}

func (s *Sorted) Len() int64 { return s.from.count }

func (s *Sorted) Spilled() int64 { return s.from.spill }

// Usage returns the current and past sizes of the sorter's files.
func (s *Sorted) Usage() spill.Usage { return s.from.store.Usage() }

// Cuts returns at most n-1 ascending keys that divide the items into about equal parts.
func (s *Sorted) Cuts(n int) [][]byte {
	var keys [][]byte
	if len(s.runs) == 0 {
		items := s.from.items
		for i := 1; i < n && len(items) > 0; i++ {
			keys = append(keys, s.from.keyOf(&items[i*len(items)/n]))
		}
	} else {
		var firsts [][]byte
		for _, r := range s.runs {
			for _, f := range r.frames {
				firsts = append(firsts, f.first)
			}
		}
		slices.SortFunc(firsts, bytes.Compare)
		for i := 1; i < n; i++ {
			keys = append(keys, firsts[i*len(firsts)/n])
		}
	}
	return slices.CompactFunc(keys, bytes.Equal)
}

// Range returns the items from a key, inclusive, to another, exclusive; nil means no bound.
func (s *Sorted) Range(from, to []byte) *Iterator { return newIterator(s.from, s.runs, from, to) }

// Close removes the files. Iterators must not be used afterwards.
func (s *Sorted) Close() error { return s.from.Close() }

// Close removes the files. It can be called without Sort.
func (s *Sorter) Close() error { return s.store.Close() }

var errDamaged = errors.New("sort: a spilled run is damaged")
