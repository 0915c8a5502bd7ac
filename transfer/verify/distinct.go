package verify

// distinct holds hashes of keys to determine, without sorting, whether all keys are different.
type distinct struct {
	hashes []uint64
	most   int // maximum number of hashes; if there are more, all are dropped and nothing is known
}

// newDistinct makes a distinct that uses at most memory bytes, or briefly twice as much.
func newDistinct(memory int64) *distinct { return &distinct{most: int(memory / 8)} }

func (d *distinct) expect(n int64) {
	d.hashes = append(make([]uint64, 0, max(min(n, int64(d.most)), int64(len(d.hashes)))), d.hashes...)
}

func (d *distinct) add(hash uint64) {
	if len(d.hashes) < d.most {
		d.hashes = append(d.hashes, hash)
		return
	}
	d.hashes, d.most = nil, 0
}

// all reports whether all n hashes are known to be different, and drops them.
func (d *distinct) all(n int64) bool {
	hashes := d.hashes
	d.hashes = nil
	if int64(len(hashes)) != n {
		return false
	}
	// Hashes with the same first byte are processed together, so that the table stays in the processor's cache.
	var next, end [256]int
	for _, h := range hashes {
		end[h>>56]++
	}
	for b := 1; b < len(end); b++ {
		next[b] = end[b-1]
		end[b] += end[b-1]
	}
	for b := range end {
		for ; next[b] < end[b]; next[b]++ {
			moved := hashes[next[b]]
			for at := moved >> 56; int(at) != b; at = moved >> 56 {
				moved, hashes[next[at]] = hashes[next[at]], moved
				next[at]++
			}
			hashes[next[b]] = moved
		}
	}
	var table []uint64
	from := 0
	for _, to := range end {
		var ok bool
		if table, ok = differ(hashes[from:to], table); !ok {
			return false
		}
		from = to
	}
	return true
}

// differ reports whether all hashes are different and not zero. It returns the table, which may have grown, for reuse.
func differ(hashes, table []uint64) ([]uint64, bool) {
	size := 64
	for size < 2*len(hashes) {
		size *= 2
	}
	if cap(table) < size {
		table = make([]uint64, size)
	}
	table = table[:size]
	clear(table)
	for _, h := range hashes {
		at := h & uint64(size-1)
		for ; table[at] != h && table[at] != 0; at = (at + 1) & uint64(size-1) {
		}
		if table[at] == h {
			return table, false
		}
		table[at] = h
	}
	return table, true
}
