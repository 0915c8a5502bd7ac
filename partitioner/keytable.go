package partitioner

import "math/bits"

// keyTable finds keys by their hash. A key is added and removed with every row, so it uses open addressing and the hash
// directly: Go's map costs three times as much. Removing a key moves up the keys after it. Hashes are stored beside the
// pointers, so that a search does not touch the memory of other keys.
type keyTable struct {
	slots []keySlot // a power of two, at most half of them used
	count int
	shift uint
}

type keySlot struct {
	hash uint64
	key  *key // nil if the slot is free
}

// home returns the slot where a search for the hash begins. Real hashes are uniform; only tests need the factor.
func (t *keyTable) home(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> t.shift) }

func (t *keyTable) get(hash uint64) *key {
	if t.count == 0 {
		return nil
	}
	for i := t.home(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.key == nil || s.hash == hash {
			return s.key
		}
	}
}

// near reads the slots of the keys' hashes one after another, so that the processor fetches them concurrently.
func (t *keyTable) near(keys []*key) (sum uint64) {
	if t.count == 0 {
		return 0
	}
	for _, k := range keys {
		sum += t.slots[t.home(k.hash)].hash
	}
	return sum
}

// put adds a key whose hash is absent.
func (t *keyTable) put(k *key) {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	t.count++
	t.place(k)
}

func (t *keyTable) place(k *key) {
	i := t.home(k.hash)
	for t.slots[i].key != nil {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = keySlot{k.hash, k}
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots = make([]keySlot, max(1024, 2*len(old)))
	t.shift = uint(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, s := range old {
		if s.key != nil {
			t.place(s.key)
		}
	}
}

func (t *keyTable) remove(hash uint64) {
	if t.count == 0 {
		return
	}
	mask := len(t.slots) - 1
	i := t.home(hash)
	for ; t.slots[i].key == nil || t.slots[i].hash != hash; i = (i + 1) & mask {
		if t.slots[i].key == nil {
			return
		}
	}
	t.count--
	// A key after the gap moves into it, unless its home lies between the two.
	for next := (i + 1) & mask; t.slots[next].key != nil; next = (next + 1) & mask {
		if home := t.home(t.slots[next].hash); (next-home)&mask >= (next-i)&mask {
			t.slots[i] = t.slots[next]
			i = next
		}
	}
	t.slots[i] = keySlot{}
}

// each calls f with every key; f must not change the table.
func (t *keyTable) each(f func(*key)) {
	for _, s := range t.slots {
		if s.key != nil {
			f(s.key)
		}
	}
}
