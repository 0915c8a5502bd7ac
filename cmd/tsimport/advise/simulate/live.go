package simulate

import (
	"math/rand/v2"
	"slices"
)

// Traffic describes live writes.
type Traffic struct {
	Partitions int // partitions of the planned table; those without rows are unused capacity
	Rate       int // rows per second
}

// Window returns the rows per window: at least 8, and at most a second's or half a partition's, to show growing keys.
func (t Traffic) Window(rows int) int {
	return min(rows, max(8, min(t.Rate, rows/(2*t.Partitions))))
}

// Live returns the share of the capacity that rows arriving in this order can use. If the busiest of P partitions gets
// m of the n rows of a window, the window can use n/(P·m). The mean over all windows is rescaled, so that 1/P means one
// partition for all rows, and 1 a random partition for each row, since even random keys collide in small windows.
//
// order holds row numbers in order of arrival; nil means the order of the rows.
func Live(of []uint16, order []int32, t Traffic) (share float64) {
	rows := len(of)
	if rows == 0 {
		return 0
	}
	n := t.Window(rows)
	sum, windows := 0.0, 0
	count := make([]int32, t.Partitions)
	for i := range rows {
		row := i
		if order != nil {
			row = int(order[i])
		}
		count[of[row]]++
		if (i+1)%n != 0 {
			continue
		}
		sum += float64(n) / (float64(t.Partitions) * float64(slices.Max(count)))
		windows++
		clear(count)
	}
	return t.scale(sum/float64(windows), n) // the rest is less than a window
}

// scale rescales a mean of n/(P·m) as Live describes.
func (t Traffic) scale(mean float64, n int) float64 {
	one, even := 1/float64(t.Partitions), evenMean(n, t.Partitions)
	if even <= one { // a single partition, or a single row
		return 1
	}
	return max(one, min(1, one+(mean-one)*(1-one)/(even-one)))
}

// trials is the number of random trials, which give the mean within about 1 %.
const trials = 32

// evenMean returns the mean of n/(p·m) if each row has a random partition: m of n rows are in the busiest of p.
func evenMean(n, p int) (mean float64) {
	random := rand.New(rand.NewPCG(uint64(n), uint64(p)))
	count := make([]int32, p)
	for range trials {
		clear(count)
		for range n {
			count[random.IntN(p)]++
		}
		mean += float64(n) / (float64(p) * float64(slices.Max(count))) / trials
	}
	return mean
}
