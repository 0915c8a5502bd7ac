package partitioner

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"example.com/tsimport/internal/table"
)

const (
	// counters is the number of values counted at once: shares are too low by at most 1/counters.
	counters = 256
	// After every sampleRun samples, the gap between samples doubles, up to maxGap rows: long inputs cost almost nothing.
	sampleRun = 4096
	maxGap    = 128
	// minRows is the number of rows needed to report shares, minRowsOfOne for a whole input with one value.
	minRows      = 1000
	minRowsOfOne = 200

	minShare        = 0.02 // smallest share of a hot key among many lanes
	minShareOneLane = 0.2  // smallest share with one partition, where a hot key matters only after a split
	maxReported     = 10
)

// HotKeys finds partition-key values that are hot spots by themselves: a value's rows are in one partition however the
// table is split. It counts a sample by the Space-Saving method, in constant memory. It is not safe for concurrent use.
type HotKeys struct {
	keyType table.Type
	skip    uint32 // rows to skip before the next sample
	gap     uint32 // number of rows that a sample stands for; a power of two
	run     int    // samples until the gap doubles
	random  uint64
	rows    uint64 // rows that the samples stand for
	bytes   uint64 // bytes of these rows

	slots []slot
	at    map[uint64]int32 // slot by the value's hash; values with the same hash count as one
	seed  maphash.Seed
	hand  int    // where the search for the smallest count continues
	least uint64 // lower bound of all counts
}

type slot struct {
	hash  uint64
	count uint64 // rows; too high by at most over
	over  uint64 // the slot's count when the value took it over
	bytes uint64 // bytes of the rows since then
	key   []byte // the value as AppendKey encodes it
}

// HotKey is a value of the partition key and its share of the rows.
type HotKey struct {
	Value table.Value
	Share float64 // 0 to 1
	Bytes int64   // approximate bytes of these rows
}

// NewHotKeys returns a counter of values of a partition key of the given type.
func NewHotKeys(keyType table.Type) *HotKeys {
	return &HotKeys{
		keyType: keyType, gap: 1, run: sampleRun, random: 0x9e3779b97f4a7c15,
		slots: make([]slot, 0, counters), at: make(map[uint64]int32, counters), seed: maphash.MakeSeed(),
	}
}

// Add counts one row by its ordering key and its size in bytes; the columns after the first do not matter.
func (h *HotKeys) Add(orderingKey []byte, size int) {
	if h.skip > 0 {
		h.skip--
		return
	}
	h.sample(orderingKey, size)
}

// AddAll counts n rows; row returns a row's ordering key and size. It is called only for the sample.
func (h *HotKeys) AddAll(n int, row func(i int) (orderingKey []byte, size int)) {
	for i := 0; i < n; i++ {
		if pass := min(int(h.skip), n-i); pass > 0 {
			h.skip -= uint32(pass)
			i += pass - 1
			continue
		}
		h.sample(row(i))
	}
}

func (h *HotKeys) sample(key []byte, size int) {
	weight := uint64(h.gap)
	if h.run--; h.run == 0 && h.gap < maxGap {
		h.gap, h.run = 2*h.gap, sampleRun
	}
	// The gap is random around its mean: a fixed one would always meet the same value in a periodic input.
	h.random ^= h.random << 13
	h.random ^= h.random >> 7
	h.random ^= h.random << 17
	h.skip = uint32(h.random>>32) & (2*h.gap - 1)
	if h.gap == 1 {
		h.skip = 0
	}
	n := table.FirstColumn(h.keyType, key)
	if n < 0 {
		return
	}
	key = key[:n]
	h.rows += weight
	taken := weight * uint64(size)
	h.bytes += taken
	hash := maphash.Bytes(h.seed, key)
	if i, known := h.at[hash]; known {
		h.slots[i].count += weight
		h.slots[i].bytes += taken
		return
	}
	if len(h.slots) < counters {
		h.at[hash] = int32(len(h.slots))
		h.slots = append(h.slots, slot{hash: hash, count: weight, bytes: taken, key: slices.Clone(key)})
		return
	}
	i := h.smallest()
	s := &h.slots[i]
	delete(h.at, s.hash)
	h.at[hash] = int32(i)
	*s = slot{hash: hash, count: s.count + weight, over: s.count, bytes: taken, key: append(s.key[:0], key...)}
}

// smallest returns a slot with the smallest count. Counts only grow: one search for each smallest count suffices.
func (h *HotKeys) smallest() int {
	for range counters {
		i := h.hand
		h.hand = (h.hand + 1) % counters
		if h.slots[i].count == h.least {
			return i
		}
	}
	i := 0
	for j := range h.slots {
		if h.slots[j].count < h.slots[i].count {
			i = j
		}
	}
	h.least, h.hand = h.slots[i].count, (i+1)%counters
	return i
}

// ReportWhole is like Report, for a complete input into one lane. It also reports a value that all of 200 rows have.
func (h *HotKeys) ReportWhole() []HotKey {
	if h.rows >= minRowsOfOne && h.rows < minRows && len(h.slots) == 1 {
		if v, _, err := table.DecodeKey(h.keyType, h.slots[0].key); err == nil {
			return []HotKey{{Value: v, Share: 1, Bytes: int64(h.slots[0].bytes)}}
		}
	}
	return h.Report(1)
}

// Report returns at most ten values, largest first, that are hot spots on a table with the given number of lanes. Each
// has at least one and a half times a lane's even share and at least 2 % of the rows (20 % with one lane), or more than
// table.LargestValue bytes. It returns none before a thousand rows.
func (h *HotKeys) Report(lanes int) []HotKey {
	if h.rows < minRows {
		return nil
	}
	least := minShareOneLane
	if lanes > 1 {
		least = max(1.5/float64(lanes), minShare)
	}
	var hot []HotKey
	for _, s := range h.slots {
		share := float64(s.count-s.over) / float64(h.rows)
		if share < least && s.bytes <= table.LargestValue {
			continue
		}
		if v, _, err := table.DecodeKey(h.keyType, s.key); err == nil {
			hot = append(hot, HotKey{Value: v, Share: share, Bytes: int64(s.bytes)})
		}
	}
	slices.SortFunc(hot, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Value.Int, b.Value.Int),
			bytes.Compare(a.Value.Bytes, b.Value.Bytes))
	})
	return hot[:min(len(hot), maxReported)]
}

// Largest returns the value with the most bytes, with its share of all bytes, or false before a thousand rows.
func (h *HotKeys) Largest() (HotKey, bool) {
	if h.rows < minRows {
		return HotKey{}, false
	}
	s := slices.MaxFunc(h.slots, func(a, b slot) int { return cmp.Compare(a.bytes, b.bytes) })
	v, _, err := table.DecodeKey(h.keyType, s.key)
	return HotKey{Value: v, Share: float64(s.bytes) / float64(max(h.bytes, 1)), Bytes: int64(s.bytes)}, err == nil
}
