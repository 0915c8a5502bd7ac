package simulate

import (
	"math/rand/v2"
	"slices"
)

// Traffic is how live writes come.
type Traffic struct {
	Partitions int // that the table is meant to have; fewer are capacity that cannot be used
	Rate       int // rows a second
}

// Window is how many rows are looked at together: those of one second, but no more than half of what an even partition
// holds of the rows known. In a longer stretch even strictly growing keys would seem to spread.
func (t Traffic) Window(rows int) int {
	return min(rows, max(8, min(t.Rate, rows/(2*t.Partitions))))
}

// Live is the share of the capacity that rows coming in an order can use. Of the n rows of a window the busiest of P
// partitions gets m; as it must keep up, the window can use n/(P·m). The mean over all windows is put on the scale on
// which one partition for all rows is 1/P and rows that each go to a random partition are 1: in a small window even they
// meet. More than 1 is 1.
//
// order is the rows' numbers as they arrive; nil is their own order.
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
	return t.scale(sum/float64(windows), n) // what is left over is less than a window
}

// scale puts a mean of n/(P·m) on the scale of Live.
func (t Traffic) scale(mean float64, n int) float64 {
	one, even := 1/float64(t.Partitions), evenMean(n, t.Partitions)
	if even <= one { // a single partition, or a single row
		return 1
	}
	return max(one, min(1, one+(mean-one)*(1-one)/(even-one)))
}

// trials is how often the luck of even keys is tried; the mean is then good to about 1 %.
const trials = 32

// evenMean is the mean of n/(p·m) where m of n rows are in the busiest of p partitions and each row's partition is drawn at
// random.
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
