package spread

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"example.com/tsimport/internal/table"
)

// maxSample is how many partition-key values are kept to cut the table at; datasets up to that size are cut exactly.
const maxSample = 1 << 20

// sample is a random choice of partition-key values, each row as likely as another.
type sample struct {
	values []table.Value
	seen   int64
	random *rand.Rand
	size   int
}

func newSample(seed uint64, size int) *sample {
	return &sample{random: rand.New(rand.NewPCG(seed, 1)), size: size}
}

func (s *sample) add(v table.Value) {
	s.seen++
	if len(s.values) < s.size {
		s.values = append(s.values, v)
	} else if i := s.random.Int64N(s.seen); i < int64(len(s.values)) {
		s.values[i] = v
	}
}

// cuts are the bounds of n partitions with as equal numbers of rows as whole partition-key values allow, and the number
// of sampled rows in each partition. Few values give fewer partitions.
func (s *sample) cuts(n int) (bounds []table.Value, parts []int) {
	slices.SortFunc(s.values, table.Compare)
	all, last := len(s.values), 0
	for left := n; left > 1 && last < all; left-- {
		ideal := last + (all-last)/left // of what is left: a heavy value must not cost its neighbours their partitions
		low, _ := slices.BinarySearchFunc(s.values, s.values[ideal], table.Compare)
		high := low
		for high < all && table.Compare(s.values[high], s.values[low]) == 0 {
			high++
		}
		at := low
		if low <= last || ideal-low > high-ideal {
			at = high
		}
		if at >= all {
			break
		}
		bounds, parts = append(bounds, s.values[at]), append(parts, at-last)
		last = at
	}
	return bounds, append(parts, all-last)
}

// unevenFrom is the largest partition's share of rows, against the mean, from which on it is worth a word: below, whole
// values and the sample's luck explain it.
const unevenFrom = 1.1

// cutNotes says where partitions are not what was asked for.
func cutNotes(parts []int, wanted int) (notes []string) {
	if len(parts) < wanted {
		notes = append(notes, fmt.Sprintf("the data's partition-key values are too few or too skewed for %d partitions: there are %d", wanted, len(parts)))
	}
	total := 0
	for _, n := range parts {
		total += n
	}
	mean := float64(total) / float64(len(parts))
	if most := float64(slices.Max(parts)); most > unevenFrom*mean {
		notes = append(notes, fmt.Sprintf("partitions are uneven: the largest holds %.1f times the mean number of rows", most/mean))
	}
	return notes
}

// keyJSON is a partition-key value as the engine's admin API takes it.
func keyJSON(v table.Value) any {
	switch v.Type {
	case table.Integer:
		return v.Int
	case table.String:
		return string(v.Bytes)
	}
	return map[string][]byte{"binary": v.Bytes}
}

// keyText is such a value for people; null is the end of the key space.
func keyText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "-inf"
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
