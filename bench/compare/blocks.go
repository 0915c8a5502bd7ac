package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"tsimport/bench/result"
)

// leastBlocks is how many independent pieces of a run a comparison needs of each side.
const leastBlocks = 8

// seconds returns the whole points of the measured time: neither the warm-up nor the last point, which ends with the run.
func seconds(r *result.Result) []result.Point {
	from := int(math.Ceil(r.WarmUp/r.Every - 1e-9))
	to := int((r.WarmUp+r.Seconds)/r.Every + 1e-9)
	to = min(to, len(r.Points))
	if from >= to {
		return nil
	}
	return r.Points[from:to]
}

// blocksOf cuts a run into pieces so long that neighbours are no more alike than chance has it: seconds of one run go up
// and down together, and counting each of them would make certain what is not. Nil is that there are too few.
func blocksOf(points []result.Point) [][]result.Point {
	for size := 1; len(points)/size >= leastBlocks; size *= 2 {
		blocks := make([][]result.Point, 0, len(points)/size)
		for i := 0; i+size <= len(points); i += size {
			blocks = append(blocks, points[i:i+size])
		}
		if correlation(rates(blocks)) <= 2/math.Sqrt(float64(len(blocks))) {
			return blocks
		}
	}
	return nil
}

func rates(blocks [][]result.Point) []float64 {
	all := make([]float64, len(blocks))
	for i, b := range blocks {
		for _, p := range b {
			all[i] += float64(p.Rows)
		}
		all[i] /= float64(len(b))
	}
	return all
}

// correlation is how much each value tells of the next: 1 all, 0 nothing.
func correlation(v []float64) float64 {
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	var with, all float64
	for i, x := range v {
		all += (x - mean) * (x - mean)
		if i > 0 {
			with += (x - mean) * (v[i-1] - mean)
		}
	}
	if all == 0 {
		return 0
	}
	return with / all
}

// dense is the latencies of blocks as counts by the same values, for adding up fast.
type dense struct {
	values []int64 // microseconds, increasing
	blocks [][]int64
}

func denseOf(blocks [][]result.Point) *dense {
	place := map[int64]int{}
	d := new(dense)
	for _, b := range blocks {
		for _, p := range b {
			for us := range p.Latency {
				if _, known := place[us]; !known {
					place[us] = 0
					d.values = append(d.values, us)
				}
			}
		}
	}
	slices.Sort(d.values)
	for i, us := range d.values {
		place[us] = i
	}
	for _, b := range blocks {
		counts := make([]int64, len(d.values))
		for _, p := range b {
			for us, n := range p.Latency {
				counts[place[us]] += n
			}
		}
		d.blocks = append(d.blocks, counts)
	}
	return d
}

// total is how many latencies there are.
func (d *dense) total() (n int64) {
	for _, b := range d.blocks {
		for _, k := range b {
			n += k
		}
	}
	return n
}

// draw adds up as many blocks as there are, drawn with putting back, and returns quantiles of the sum (increasing), 0 of
// nothing.
func (d *dense) draw(rng *rand.Rand, quantiles []float64, sum []int64) []float64 {
	clear(sum)
	for range d.blocks {
		for i, n := range d.blocks[rng.IntN(len(d.blocks))] {
			sum[i] += n
		}
	}
	total := int64(0)
	for _, n := range sum {
		total += n
	}
	at, seen := 0, int64(0)
	all := make([]float64, len(quantiles))
	for i, q := range quantiles {
		for at < len(sum) && float64(seen+sum[at]) < q*float64(total) {
			seen += sum[at]
			at++
		}
		if at < len(sum) {
			all[i] = float64(d.values[at])
		}
	}
	return all
}

// limits are those of a ratio; unknown without.
type limits struct {
	low, high float64
	known     bool
}

// How the bootstrap draws, and how many values must be beyond a quantile for it to mean something.
const (
	resamples   = 1000
	leastBeyond = 10
)

// bootstrap returns, of the ratio of each quantile in b to that in a, the limits between which a share of 1−alpha lies when
// the blocks are drawn again. Unknown are those of quantiles that too few values are beyond.
func bootstrap(a, b [][]result.Point, quantiles []float64, alpha float64) []limits {
	rng := rand.New(rand.NewPCG(1, 2)) // the same files, the same answer
	x, y := denseOf(a), denseOf(b)
	least := float64(min(x.total(), y.total()))
	ratios := make([][]float64, len(quantiles))
	sumX, sumY := make([]int64, len(x.values)), make([]int64, len(y.values))
	for range resamples {
		from, to := x.draw(rng, quantiles, sumX), y.draw(rng, quantiles, sumY)
		for i := range quantiles {
			if from[i] > 0 && to[i] > 0 {
				ratios[i] = append(ratios[i], to[i]/from[i])
			}
		}
	}
	all := make([]limits, len(quantiles))
	cut := int(alpha / 2 * resamples)
	for i, q := range quantiles {
		if r := ratios[i]; len(r) == resamples && (1-q)*least >= leastBeyond {
			slices.Sort(r)
			all[i] = limits{r[cut], r[len(r)-1-cut], true}
		}
	}
	return all
}
