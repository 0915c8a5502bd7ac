package advise

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/tsimport/cmd/tsimport/advise/sketch"
)

// keptBlock is the number of consecutive rows that are kept together, with the same neighbours as in the input.
const keptBlock = 8192

// maxKept limits the rows kept, regardless of memory: more would only take longer to simulate.
const maxKept = 4 << 20

// kept holds, per row and column, 8 bytes that sort like the column and, for texts, 8 bytes of hash. When full, it
// drops every second block, and keeps half as many blocks from then on.
type kept struct {
	columns [][]uint64
	max     int    // maximum number of rows
	stride  uint64 // one block in stride is kept
	seen    uint64 // number of rows seen
	rows    int
	counted map[string][2]int // results of groups, by columns
}

func newKept(columns int, memory int64) *kept {
	perRow := int64(8 * max(columns, 1))
	// Slice growth and the indexes built after reading need as much memory again.
	most := int(min(maxKept, memory/4/perRow))
	return &kept{columns: make([][]uint64, columns), max: max(2*keptBlock, most/(2*keptBlock)*(2*keptBlock)), stride: 1,
		counted: map[string][2]int{}}
}

// next reports whether to keep the next row. If so, call add for each column.
func (k *kept) next() bool {
	block := k.seen / keptBlock
	k.seen++
	if block%k.stride != 0 {
		return false
	}
	if k.rows == k.max {
		k.thin()
		if block%k.stride != 0 {
			return false
		}
	}
	k.rows++
	return true
}

func (k *kept) add(column int, code uint64) { k.columns[column] = append(k.columns[column], code) }

func (k *kept) thin() {
	for c, all := range k.columns {
		n := 0
		for from := 0; from < len(all); from += 2 * keptBlock {
			n += copy(all[n:], all[from:min(from+keptBlock, len(all))])
		}
		k.columns[c] = all[:n]
		k.rows = n
	}
	k.stride *= 2
}

func (k *kept) all() bool { return k.stride == 1 }

// order returns the rows in the order of a column, and equal ones in input order. Nil means input order.
func (k *kept) order(column int) []int32 {
	codes := k.columns[column]
	if slices.IsSorted(codes) {
		return nil
	}
	order := make([]int32, len(codes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(codes[a], codes[b]), cmp.Compare(a, b)) })
	return order
}

// mixed returns the rows in the order of a column, and equal ones in random order.
func (k *kept) mixed(column int) []int32 {
	codes := k.columns[column]
	order := make([]int32, k.rows)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(codes[a], codes[b]), cmp.Compare(sketch.Mix(uint64(a)), sketch.Mix(uint64(b))))
	})
	return order
}

// groups returns the number of distinct combinations of the columns' values, and the rows of the most frequent one.
func (k *kept) groups(columns ...int) (distinct, most int) {
	name := fmt.Sprint(columns)
	if n, known := k.counted[name]; known {
		return n[0], n[1]
	}
	distinct, most = countGroups(k.rows, func(row int) uint64 {
		hash := uint64(0)
		for _, c := range columns {
			hash = sketch.Mix(hash ^ k.columns[c][row])
		}
		return hash
	})
	k.counted[name] = [2]int{distinct, most}
	return distinct, most
}

// countGroups counts with its own hash table, since a map would take three times as long.
func countGroups(rows int, hash func(row int) uint64) (distinct, most int) {
	size := 1
	for size < 2*rows {
		size *= 2
	}
	at, count := make([]uint64, size), make([]int32, size)
	for row := range rows {
		h := max(hash(row), 1) // 0 marks a free slot
		i := h & uint64(size-1)
		for at[i] != 0 && at[i] != h {
			i = (i + 1) & uint64(size-1)
		}
		if at[i] == 0 {
			at[i] = h
			distinct++
		}
		count[i]++
		most = max(most, int(count[i]))
	}
	return distinct, most
}

// trend compares rows a 64th of the input apart. up and down are the shares of pairs that rise and fall.
func (k *kept) trend(column int, order []int32) (up, down float64) {
	codes := k.columns[column]
	n := len(codes)
	step := max(1, n/64)
	pairs := n - step
	if pairs < 1 {
		return 0, 0
	}
	at := func(i int) uint64 {
		if order != nil {
			i = int(order[i])
		}
		return codes[i]
	}
	looks := min(pairs, 4096)
	for look := range looks {
		i := look * pairs / looks
		switch a, b := at(i), at(i+step); {
		case b > a:
			up++
		case b < a:
			down++
		}
	}
	return up / float64(looks), down / float64(looks)
}
