package store

import "hash/maphash"

// stripeCount is the number of locks shared by the rows of all tables. A batch of 200 rows takes about half of them.
const stripeCount = 256

// stripeSet holds the stripes that a request locks, each shared or exclusive.
type stripeSet struct {
	shared, owned [stripeCount / 64]uint64
}

func (s *stripeSet) add(i uint64, own bool) {
	if own {
		s.owned[i/64] |= 1 << (i % 64)
	} else {
		s.shared[i/64] |= 1 << (i % 64)
	}
}

func (s *stripeSet) each(f func(i int, own bool)) {
	for i := range stripeCount {
		bit := uint64(1) << (i % 64)
		if s.owned[i/64]&bit != 0 {
			f(i, true)
		} else if s.shared[i/64]&bit != 0 {
			f(i, false)
		}
	}
}

func (s *Store) stripe(key []byte) uint64 { return maphash.Bytes(s.seed, key) % stripeCount }

// lock locks the stripes in ascending order, which avoids deadlocks.
func (s *Store) lock(set *stripeSet) {
	set.each(func(i int, own bool) {
		if own {
			s.stripes[i].Lock()
		} else {
			s.stripes[i].RLock()
		}
	})
}

func (s *Store) unlock(set *stripeSet) {
	set.each(func(i int, own bool) {
		if own {
			s.stripes[i].Unlock()
		} else {
			s.stripes[i].RUnlock()
		}
	})
}
