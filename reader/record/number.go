package record

import (
	"math/big"
	"time"
)

// Moment is a time of day or a timestamp as a time in UTC.
func (d *Datum) Moment() time.Time {
	unit := int64(d.Unit)
	return time.Unix(d.Int/unit, d.Int%unit*(1e9/unit)).UTC()
}

// Unscaled returns a decimal's digits without its point.
func (d *Datum) Unscaled() *big.Int {
	n := new(big.Int).SetBytes(d.Bytes)
	if len(d.Bytes) > 0 && d.Bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d.Bytes))))
	}
	return n
}

// AppendDecimal appends the exact text of a decimal: all digits after the point, none in exponents.
func (d *Datum) AppendDecimal(dst []byte) []byte {
	n := d.Unscaled()
	if d.Scale <= 0 {
		return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-d.Scale)), nil)).Append(dst, 10)
	}
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	digits := n.Append(nil, 10)
	for len(digits) <= int(d.Scale) {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - int(d.Scale)
	return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
}
