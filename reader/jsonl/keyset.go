package jsonl

import (
	"bytes"
	"hash/maphash"
)

// keySet finds repeated keys in objects. One open-addressing hash table serves all objects. Its hash is seeded.
type keySet struct {
	seed    maphash.Seed
	slots   []keySlot // their number is a power of two
	used    int
	turn    uint32
	objects uint32
}

type keySlot struct {
	turn, object uint32
	hash         uint64
	key          []byte
}

func (k *keySet) reset() {
	if k.turn++; k.turn == 0 || k.slots == nil {
		k.seed = maphash.MakeSeed()
		k.slots = make([]keySlot, 64)
		k.turn = 1
	}
	// Drop the memory of a record with very many keys, because it would slow down later records.
	if len(k.slots) > 1<<16 && k.used < len(k.slots)/16 {
		k.slots = make([]keySlot, 64)
	}
	k.used, k.objects = 0, 0
}

// object returns a number for a new object. It is never 0.
func (k *keySet) object() uint32 {
	k.objects++
	return k.objects
}

// add reports whether the key is new in the object. It retains the key until the record ends.
func (k *keySet) add(object uint32, key []byte) bool {
	if k.used*2 >= len(k.slots) {
		k.grow()
	}
	hash := maphash.Bytes(k.seed, key) + uint64(object)*0x9E3779B97F4A7C15
	for i := hash; ; i++ {
		slot := &k.slots[i&uint64(len(k.slots)-1)]
		if slot.turn != k.turn {
			*slot = keySlot{k.turn, object, hash, key}
			k.used++
			return true
		}
		if slot.hash == hash && slot.object == object && bytes.Equal(slot.key, key) {
			return false
		}
	}
}

func (k *keySet) grow() {
	old := k.slots
	k.slots = make([]keySlot, 2*len(old))
	for _, slot := range old {
		if slot.turn != k.turn {
			continue
		}
		for i := slot.hash; ; i++ {
			if to := &k.slots[i&uint64(len(k.slots)-1)]; to.turn != k.turn {
				*to = slot
				break
			}
		}
	}
}
