package sketch

import (
	"math"
	"math/bits"
)

// Precision of Distinct: 2^14 registers of one byte, a standard error of 0.8 %.
const (
	precision = 14
	registers = 1 << precision
	maxRank   = 64 - precision
)

// Distinct counts different values by their hashes (HyperLogLog). Its memory is 16 KiB; the estimate's standard error
// is 0.8 %, and some counts below a hundred are exact. The zero Distinct has seen nothing.
type Distinct struct{ rank [registers]uint8 }

// Add sees a value's hash.
func (d *Distinct) Add(hash uint64) {
	i := hash >> maxRank
	// The marker bit ends the run of zeros where the hash does.
	r := uint8(bits.LeadingZeros64(hash<<precision|1<<(precision-1))) + 1
	if r > d.rank[i] {
		d.rank[i] = r
	}
}

// Count estimates how many different hashes were added, by Ertl's estimator: unlike the first one it needs no
// corrections of its own for small and middling counts.
func (d *Distinct) Count() int64 {
	var count [maxRank + 2]float64
	for _, r := range d.rank {
		count[r]++
	}
	const m = float64(registers)
	z := m * tau(1-count[maxRank+1]/m)
	for k := maxRank; k >= 1; k-- {
		z = 0.5 * (z + count[k])
	}
	z += m * sigma(count[0]/m)
	if math.IsInf(z, 0) {
		return 0
	}
	return int64(math.Round(m * m / (2 * math.Ln2) / z))
}

// sigma accounts for registers that no value has reached.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; y += y {
		x *= x
		last := z
		z += x * y
		if z == last {
			return z
		}
	}
}

// tau accounts for registers that are full.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 1.0, 1-x; ; {
		x = math.Sqrt(x)
		last := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == last {
			return z / 3
		}
	}
}
