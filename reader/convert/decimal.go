package convert

import (
	"math/big"

	"example.com/tsimport/reader/record"
)

// unscaled returns a decimal's digits without its point.
func unscaled(d *record.Datum) *big.Int {
	n := new(big.Int).SetBytes(d.Bytes)
	if len(d.Bytes) > 0 && d.Bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d.Bytes))))
	}
	return n
}

// appendDecimal appends the exact text of a decimal: all digits after the point, none in exponents.
func appendDecimal(dst []byte, d *record.Datum) []byte {
	n := unscaled(d)
	if d.Scale <= 0 {
		return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-d.Scale)), nil)).Append(dst, 10)
	}
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	digits := n.Append(nil, 10)
	scale := int(d.Scale)
	for len(digits) <= scale {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - scale
	dst = append(dst, digits[:point]...)
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}
