package scaleout

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
)

// shardsEach is the number of shards per process. It is above one, so that a slow or lost process delays others little.
const shardsEach = 3

// mostShards limits the shards of a job, because each split's run has rows of each shard.
const mostShards = 1024

// keyRange is a range of the first key column while shards are made.
type keyRange struct {
	lower  table.Value // first value; Type Null means unbounded
	sample []table.Value
	weight float64
	hot    bool // the range has only one value
}

// shardKeys divides the keys into ranges, and the ranges among shards. Ranges begin at partition bounds, so that each
// partition has one writer. A sample of the rows divides few partitions, and finds values that need their own shard.
func shardKeys(partitions []table.Value, places [][]table.Value, workers int) (bounds []Bound, shards []Shard) {
	want := min(workers*shardsEach, mostShards)
	sample := slices.Concat(places...)
	slices.SortFunc(sample, table.Compare)
	cuts := slices.Clone(partitions)
	hot := map[string]bool{}
	for _, v := range frequent(sample, want) {
		if after, ok := successor(v); ok && v.Type != table.Null {
			cuts = append(cuts, v, after)
			hot[string(table.AppendKey(nil, v))] = true
		}
	}
	cuts = table.SortDistinct(cuts)
	ranges := rangesOf(cuts, sample, hot)
	weigh(ranges, places)
	for len(ranges) < want {
		if !cutHeaviest(&ranges) {
			break
		}
	}
	for _, r := range ranges[1:] {
		bounds = append(bounds, Bound{r.lower.Type, r.lower.Int, r.lower.Bytes})
	}
	return bounds, assign(ranges, want)
}

// rangesOf divides a sorted sample at the cuts.
func rangesOf(cuts, sample []table.Value, hot map[string]bool) []*keyRange {
	ranges := []*keyRange{{}}
	for _, c := range cuts {
		ranges = append(ranges, &keyRange{lower: c, hot: hot[string(table.AppendKey(nil, c))]})
	}
	at := 0
	for _, v := range sample {
		for at+1 < len(ranges) && table.Compare(ranges[at+1].lower, v) <= 0 {
			at++
		}
		ranges[at].sample = append(ranges[at].sample, v)
	}
	return ranges
}

// weigh estimates each range's share of the rows. Places of the sample have equal weights. A range without samples
// counts as half a sampled row if the input is shuffled. If it is sorted, so that places fall in different ranges, 64
// places meet at most 64 of 128 partitions, so such a range counts as the rows of one place.
func weigh(ranges []*keyRange, places [][]table.Value) {
	at := func(v table.Value) int {
		i, found := slices.BinarySearchFunc(ranges[1:], v,
			func(r *keyRange, v table.Value) int { return table.Compare(r.lower, v) })
		if found {
			i++
		}
		return i
	}
	shares := make([]float64, len(ranges))
	rows, looked, alike := 0, 0.0, 0.0
	for _, values := range places {
		if len(values) == 0 {
			continue
		}
		of := map[int]float64{}
		for _, v := range values {
			of[at(v)] += 1 / float64(len(values))
		}
		for i, share := range of {
			shares[i] += share
			alike += share * share
		}
		looked++
		rows += len(values)
	}
	together := 0.0 // the value of alike if all places had the same distribution
	for _, share := range shares {
		together += share * share / max(looked, 1)
	}
	unmet := max(0, alike-together) / max(looked-together, 1)
	if unmet = max(unmet, looked/float64(2*max(rows, 1))); rows == 0 {
		unmet = 1 // without a sample, ranges are assumed equal
	}
	all := looked + unmet*float64(len(ranges))
	for i, r := range ranges {
		r.weight = (shares[i] + unmet) / max(all, 1e-9)
	}
}

// frequent returns the values of a sorted sample with more rows than a shard should have.
func frequent(sample []table.Value, shards int) (values []table.Value) {
	const least = 8 // smaller numbers are unreliable
	for from := 0; from < len(sample); {
		to := from + 1
		for to < len(sample) && table.Compare(sample[from], sample[to]) == 0 {
			to++
		}
		if n := to - from; n >= least && n*shards > len(sample) {
			values = append(values, sample[from])
		}
		from = to
	}
	return values
}

// successor returns the first value after v, or false if there is none.
func successor(v table.Value) (table.Value, bool) {
	if v.Type == table.Integer {
		v.Int++
		return v, v.Int > -1<<63
	}
	v.Bytes = append(bytes.Clone(v.Bytes), 0)
	return v, len(v.Bytes) <= table.MaxKeyBytes
}

// cutHeaviest halves the heaviest range that can be cut.
func cutHeaviest(ranges *[]*keyRange) bool {
	best, at := -1, 0
	for i, r := range *ranges {
		if r.hot || best >= 0 && r.weight <= (*ranges)[best].weight {
			continue
		}
		if m := middle(r); m > 0 {
			best, at = i, m
		}
	}
	if best < 0 {
		return false
	}
	r := (*ranges)[best]
	upper := &keyRange{lower: r.sample[at], sample: r.sample[at:]}
	each := r.weight / float64(len(r.sample))
	r.sample = r.sample[:at]
	r.weight, upper.weight = each*float64(len(r.sample)), each*float64(len(upper.sample))
	*ranges = slices.Insert(*ranges, best+1, upper)
	return true
}

// middle returns the index at which to cut a range's sample: the change of values nearest its middle, or 0 if none.
func middle(r *keyRange) int {
	for i, half := 0, len(r.sample)/2; i <= half; i++ {
		for _, at := range []int{half - i, half + i} {
			if at > 0 && at < len(r.sample) && table.Compare(r.sample[at-1], r.sample[at]) < 0 &&
				(r.lower.Type == table.Null || table.Compare(r.lower, r.sample[at]) < 0) {
				return at
			}
		}
	}
	return 0
}

// assign distributes the ranges among shards, the heaviest first, each to the lightest shard.
func assign(ranges []*keyRange, want int) []Shard {
	order := make([]int, len(ranges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranges[b].weight, ranges[a].weight) })
	shards := make([]Shard, 0, want)
	for _, i := range order {
		r := ranges[i]
		if r.hot {
			shards = append(shards, Shard{Ranges: []int{i}, Weight: r.weight, HotKey: plainText(r.lower)})
		}
	}
	hot := len(shards)
	for _, i := range order {
		if ranges[i].hot {
			continue
		}
		if len(shards) < max(want, hot+1) {
			shards = append(shards, Shard{Ranges: []int{i}, Weight: ranges[i].weight})
			continue
		}
		lightest := hot
		for k := hot; k < len(shards); k++ {
			if shards[k].Weight < shards[lightest].Weight {
				lightest = k
			}
		}
		shards[lightest].Ranges = append(shards[lightest].Ranges, i)
		shards[lightest].Weight += ranges[i].weight
	}
	for i := range shards {
		slices.Sort(shards[i].Ranges)
	}
	return shards
}

func plainText(v table.Value) string {
	if v.Type == table.Integer {
		return strconv.FormatInt(v.Int, 10)
	}
	return table.Show(v.Bytes)
}
