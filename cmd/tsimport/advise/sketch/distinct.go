package sketch

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Precision of Distinct: 2^14 registers of one byte, a standard error of 0.8 %.
const (
	precision = 14
	registers = 1 << precision
	maxRank   = 64 - precision
)

// Distinct estimates the number of distinct values from their hashes by HyperLogLog. It takes 16 KiB.
type Distinct struct{ rank [registers]uint8 }

func (d *Distinct) Add(hash uint64) {
	i := hash >> maxRank
	// The marker bit ends the run of zeros at the end of the hash.
	r := uint8(bits.LeadingZeros64(hash<<precision|1<<(precision-1))) + 1
	if r > d.rank[i] {
		d.rank[i] = r
	}
}

// Count estimates the number of distinct hashes by Ertl's estimator, which needs no corrections for small counts.
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

// sigma accounts for empty registers.
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

// tau accounts for saturated registers.
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

// Odd mixing constants without a pattern.
const (
	mixA = 0xa0761d6478bd642f
	mixB = 0xe7037ed1a0b428db
	mixC = 0x8ebc6af09c88c6e3
)

// Mix returns a uniform 64-bit hash of a number. Hashes may collide.
func Mix(v uint64) uint64 { return fold(fold(v^mixA, mixB)^mixC, v|1) }

// Hash returns a uniform 64-bit hash of bytes, the same in every run, so that estimates are reproducible.
func Hash(b []byte) uint64 {
	h := uint64(len(b)) ^ mixA
	for len(b) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(b), mixB)
		b = b[8:]
	}
	var tail uint64
	for i, c := range b {
		tail |= uint64(c) << (8 * i)
	}
	return fold(fold(h^tail, mixC)^mixB, mixA)
}

// fold multiplies to 128 bits and adds the halves without carry.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
