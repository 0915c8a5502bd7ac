package simulate

import "math/rand/v2"

// Traffic is how live writes come.
type Traffic struct {
	Partitions int // that the table is meant to have; fewer are capacity that cannot be used
	Rate       int // rows a second
}

// Heat is how many rows each partition got in each part of the time.
type Heat struct {
	Partitions int
	Rows       [][]int32 // by part of the time, then by partition
}

// heatColumns is into how many parts of the time a Heat is divided at most.
const heatColumns = 96

// Window is how many rows are looked at together: those of one second, but no more than half of what an even partition
// holds of the rows known. In a longer stretch even strictly growing keys would seem to spread.
func (t Traffic) Window(rows int) int {
	return min(rows, max(8, min(t.Rate, rows/(2*t.Partitions))))
}

// Live is the share of the capacity that rows coming in an order can use. In each window of n rows the busiest partition
// gets m of them, where even keys would give it e, the mean over random choices of n partitions; as every partition must
// keep up, the window uses e/m of the capacity. The share is the mean over all windows, at most 1.
//
// order is the rows' numbers as they arrive; nil is their own order.
func Live(of []uint16, order []int32, t Traffic) (share float64, heat Heat) {
	rows := len(of)
	if rows == 0 {
		return 0, Heat{}
	}
	n := t.Window(rows)
	even := evenMaximum(n, t.Partitions)
	count := make([]int32, t.Partitions)
	windows := 0
	columns := min(heatColumns, rows/n)
	heat = Heat{Partitions: t.Partitions, Rows: make([][]int32, columns)}
	for i := range heat.Rows {
		heat.Rows[i] = make([]int32, t.Partitions)
	}
	for i := range rows {
		row := i
		if order != nil {
			row = int(order[i])
		}
		p := of[row]
		count[p]++
		heat.Rows[int(uint64(i)*uint64(columns)/uint64(rows))][p]++
		if (i+1)%n != 0 {
			continue
		}
		var most int32
		for _, c := range count {
			most = max(most, c)
		}
		share += even / float64(most)
		windows++
		clear(count)
	}
	return min(1, share/float64(windows)), heat // what is left over is less than a window
}

// trials is how often the luck of even keys is tried; the mean is then good to less than 1 %.
const trials = 24

// evenMaximum is how many of n rows the busiest of p partitions gets, on average, when each row's partition is drawn at
// random. For few rows that is far above n/p, and nobody's fault.
func evenMaximum(n, p int) float64 {
	random := rand.New(rand.NewPCG(uint64(n), uint64(p)))
	sum := int32(0)
	count := make([]int32, p)
	for range trials {
		clear(count)
		for range n {
			count[random.IntN(p)]++
		}
		var most int32
		for _, c := range count {
			most = max(most, c)
		}
		sum += most
	}
	return float64(sum) / trials
}
