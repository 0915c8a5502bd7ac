package compare

import (
	"math"
	"slices"
)

// MannWhitney returns the probability that two samples of one and the same distribution differ in rank as much as these or
// more, to either side (the two-sided U test). It is exact for samples without ties of at most exactMost values each,
// otherwise that of the normal approximation with corrections for ties and continuity. Without values it is 1.
func MannWhitney(a, b []float64) float64 {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 1
	}
	u, ties, tied := rankSum(a, b)
	if !tied && n <= exactMost && m <= exactMost {
		return exactP(u, n, m)
	}
	total := float64(n + m)
	mean := float64(n*m) / 2
	variance := float64(n*m) / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1 // all are alike
	}
	z := max(0, math.Abs(u-mean)-.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// exactMost is how many values a side may have for the exact distribution.
const exactMost = 50

// rankSum returns U of a, and the sum of t³−t over groups of t equal values.
func rankSum(a, b []float64) (u, ties float64, tied bool) {
	type value struct {
		v float64
		a bool
	}
	var all []value
	for _, v := range a {
		all = append(all, value{v, true})
	}
	for _, v := range b {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(x, y value) int {
		switch {
		case x.v < y.v:
			return -1
		case x.v > y.v:
			return 1
		}
		return 0
	})
	ranks := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		t := float64(j - i)
		rank := float64(i+j+1) / 2 // the mean of the ranks i+1 to j
		for k := i; k < j; k++ {
			if all[k].a {
				ranks += rank
			}
		}
		ties += t*t*t - t
		tied = tied || t > 1
		i = j
	}
	n := float64(len(a))
	return ranks - n*(n+1)/2, ties, tied
}

// exactP counts in how many orders of n and m values U is as far from its middle as u.
func exactP(u float64, n, m int) float64 {
	// ways[k][s] is in how many ways k of the places so far sum up to U = s: the numbers of partitions of s into at most n
	// parts of at most m, built up one place at a time.
	most := n * m
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, most+1)
	}
	ways[0][0] = 1
	for place := range n + m {
		for k := min(n, place+1); k >= 1; k-- {
			add := place - (k - 1) // values of the other side before this one
			if add > m {
				continue
			}
			for s := most; s >= add; s-- {
				ways[k][s] += ways[k-1][s-add]
			}
		}
	}
	far := math.Abs(u - float64(most)/2)
	total, tail := 0.0, 0.0
	for s, w := range ways[n] {
		total += w
		if math.Abs(float64(s)-float64(most)/2) >= far-1e-9 {
			tail += w
		}
	}
	return tail / total
}
