package extsort

import (
	"bytes"
	"cmp"
	"sort"
)

// Iterator returns items in order. It is not safe for concurrent use.
type Iterator struct {
	to         []byte
	cursors    []*cursor // a heap by key and value; the first is the current item
	started    bool
	err        error
	key, value []byte
}

func newIterator(s *Sorter, runs []*run, from, to []byte) *Iterator {
	it := &Iterator{to: to}
	if len(runs) == 0 {
		first := 0
		if from != nil {
			first = sort.Search(len(s.items), func(i int) bool { return bytes.Compare(s.keyOf(&s.items[i]), from) >= 0 })
		}
		it.open(&cursor{sorter: s, items: s.items[first:]}, from)
		return it
	}
	for _, r := range runs {
		it.open(&cursor{sorter: s, run: r, frame: r.from(from)}, from)
	}
	for i := len(it.cursors)/2 - 1; i >= 0; i-- {
		it.down(i)
	}
	return it
}

// open moves a cursor to its first item at or after from.
func (it *Iterator) open(c *cursor, from []byte) {
	for it.err == nil {
		var ok bool
		if ok, it.err = c.next(); !ok || it.err != nil {
			return
		}
		if bytes.Compare(c.key, from) >= 0 {
			it.cursors = append(it.cursors, c)
			return
		}
	}
}

// Next moves to the next item. It returns false at the end or after an error.
func (it *Iterator) Next() bool {
	if it.started && it.err == nil && len(it.cursors) > 0 {
		it.advance()
	}
	it.started = true
	if it.err != nil || len(it.cursors) == 0 {
		return false
	}
	c := it.cursors[0]
	if it.to != nil && bytes.Compare(c.key, it.to) >= 0 {
		it.cursors = nil
		return false
	}
	it.key, it.value = c.key, c.value
	return true
}

func (it *Iterator) advance() {
	var ok bool
	if ok, it.err = it.cursors[0].next(); it.err != nil {
		return
	}
	if !ok {
		last := len(it.cursors) - 1
		it.cursors[0] = it.cursors[last]
		it.cursors = it.cursors[:last]
	}
	it.down(0)
}

func (it *Iterator) down(i int) {
	h := it.cursors
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && less(h[child+1], h[child]) {
			child++
		}
		if !less(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func less(a, b *cursor) bool {
	return cmp.Or(bytes.Compare(a.key, b.key), bytes.Compare(a.value, b.value)) < 0
}

// Alone reports whether the next item is known to have a different key. It does not compare keys: false means unknown.
func (it *Iterator) Alone() bool {
	c := it.cursors[0]
	return c.run == nil && (len(c.items) == 0 || c.items[0].head != c.head)
}

// Key returns the item's key, which is valid until the next call of Next.
func (it *Iterator) Key() []byte { return it.key }

// Value returns the item's value, which is valid until the next call of Next.
func (it *Iterator) Value() []byte { return it.value }

// Err returns the error that made Next return false, or nil at the end.
func (it *Iterator) Err() error { return it.err }
