package convert

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Digits are read eight at a time, as a word whose lowest byte is the first byte of the text.
const (
	zeros  = 0x3030303030303030 // eight digits 0
	points = 0x2e2e2e2e2e2e2e2e
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
)

// word returns the first eight bytes of a text, padded with digits 0.
func word(text []byte) uint64 {
	n := len(text)
	switch {
	case n >= 8:
		return binary.LittleEndian.Uint64(text)
	case n >= 4: // the two halves have the same bytes where they overlap
		return uint64(binary.LittleEndian.Uint32(text)) | uint64(binary.LittleEndian.Uint32(text[n-4:]))<<(8*(n-4))
	case n > 0:
		return uint64(text[0]) | uint64(text[n/2])<<(8*(n/2)) | uint64(text[n-1])<<(8*(n-1))
	}
	return 0
}

// eightDigits returns the number with a word's eight digits; ok is false if some byte is not a digit.
func eightDigits(word uint64) (uint64, bool) {
	// Each byte must be 0x30 to 0x39: its upper half is 3, even after adding 6.
	if (word&0xf0f0f0f0f0f0f0f0 | (word+0x0606060606060606)&0xf0f0f0f0f0f0f0f0>>4) != 0x3333333333333333 {
		return 0, false
	}
	// Combine the digits: two per 16 bits, then four per 32, then all eight.
	word = word & 0x0f0f0f0f0f0f0f0f * 2561 >> 8
	word = word & 0x00ff00ff00ff00ff * 6553601 >> 16
	return word & 0x0000ffff0000ffff * 42949672960001 >> 32, true
}

// fewDigits is like eightDigits, for the first n bytes of a word (1 to 8).
func fewDigits(word uint64, n int) (uint64, bool) {
	return eightDigits(word<<(64-8*n) | zeros>>(8*n))
}

// safeDigits is the largest number of digits that always fit in a 64-bit integer.
const safeDigits = 18

// parseDigits parses digits; ok is false for other bytes. fits means that the number, with its sign, fits in an int64.
func parseDigits(digits []byte, negative bool) (n uint64, fits, ok bool) {
	if len(digits) > safeDigits {
		return manyDigits(digits, negative)
	}
	if len(digits) == 0 {
		return 0, true, true
	}
	first := (len(digits)-1)%8 + 1
	n, ok = fewDigits(word(digits[:first]), first)
	for digits = digits[first:]; ok && len(digits) > 0; digits = digits[8:] {
		var next uint64
		next, ok = eightDigits(binary.LittleEndian.Uint64(digits))
		n = n*100_000_000 + next
	}
	return n, ok, ok
}

// manyDigits is like parseDigits, for texts longer than safeDigits.
func manyDigits(digits []byte, negative bool) (n uint64, fits, ok bool) {
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	fits = true
	for i, c := range digits {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		if i >= safeDigits {
			fits = fits && n <= (limit-uint64(c-'0'))/10
		}
		if fits {
			n = n*10 + uint64(c-'0')
		}
	}
	return n, fits, true
}

// usualWhole parses an integer of at most 15 digits that is canonical both as an integer and as a double.
func usualWhole(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 15 || digits[0] == '0' && (len(digits) > 1 || negative) {
		return 0, false
	}
	var u uint64
	if few := len(digits); few <= 8 {
		u, ok = fewDigits(word(digits), few)
	} else if u, ok = fewDigits(binary.LittleEndian.Uint64(digits), few-8); ok {
		var rest uint64
		rest, ok = eightDigits(binary.LittleEndian.Uint64(digits[few-8:]))
		u = u*100_000_000 + rest
	}
	if negative {
		return -int64(u), ok
	}
	return int64(u), ok
}

// plainDecimal parses a number of at most 15 digits without an exponent. Its digits and the power of ten are exact
// doubles, so one division rounds correctly. A text without extra zeros is canonical; 0.5 takes the slow path.
func plainDecimal(text []byte) (f float64, canonical, ok bool) {
	digits, negative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	n := len(digits)
	if n == 0 || n > 16 || digits[0] < '1' || digits[0] > '9' {
		return 0, false, false
	}
	mantissa, point, ok := decimalDigits(digits)
	if !ok {
		return 0, false, false
	}
	f = float64(mantissa)
	switch {
	case point < 0:
		canonical = true
		ok = n <= 15
	case point < n-1:
		f /= powersOfTen[n-1-point]
		canonical = digits[n-1] != '0'
	default:
		ok = false
	}
	if negative {
		f = -f
	}
	return f, canonical, ok
}

// decimalDigits parses up to 16 digits with at most one point, and returns the point's index, or -1.
func decimalDigits(digits []byte) (mantissa uint64, point int, ok bool) {
	n := len(digits)
	if n > 8 {
		return longDecimal(digits)
	}
	w := word(digits)
	other := w ^ points
	found := (other - ones) &^ other & highs // its lowest bit marks the first point
	if found == 0 {
		mantissa, ok = fewDigits(w, n)
		return mantissa, -1, ok
	}
	point = bits.TrailingZeros64(found) / 8
	if n == 1 {
		return 0, point, false
	}
	before := uint64(1)<<(8*point) - 1
	mantissa, ok = fewDigits(w&before|w>>8&^before, n-1)
	return mantissa, point, ok
}

func longDecimal(digits []byte) (mantissa uint64, point int, ok bool) {
	point = -1
	for i, b := range digits {
		switch {
		case b >= '0' && b <= '9':
			mantissa = mantissa*10 + uint64(b-'0')
		case b == '.' && point < 0:
			point = i
		default:
			return 0, 0, false
		}
	}
	return mantissa, point, true
}

var powersOfTen = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// integral reports whether a JSON number has neither a point nor an exponent.
func integral(text []byte) bool {
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}
