package table

import (
	"bytes"
	"math"
	"strconv"
)

// PrintsDouble reports whether AppendDouble, Go, Python, Java's Double.toString or C's %.17g would print f as text. f
// must be the value of text. Other texts, such as 007, 10.50 or 1e3, may mean more than a number.
func PrintsDouble(text []byte, f float64) bool {
	if n, _ := significant(make([]byte, 0, 40), text); len(n) > 17 || !KeepsDouble(text, f) {
		return false
	}
	a := math.Abs(f)
	mark := bytes.IndexAny(text, "eE")
	mantissa := bytes.TrimPrefix(text, []byte("-"))
	if mark >= 0 {
		mantissa = bytes.TrimPrefix(text[:mark], []byte("-"))
	}
	whole, fraction, point := bytes.Cut(mantissa, []byte("."))
	zero := point && string(fraction) == "0"
	switch {
	case len(whole) == 0 || whole[0] == '+' || len(whole) > 1 && whole[0] == '0' || point && len(fraction) == 0,
		point && !zero && fraction[len(fraction)-1] == '0':
		return false
	case mark < 0:
		return a == 0 || a >= 1e-7 && a < 1e16 || a < 1e21 && !zero
	case len(whole) != 1 || whole[0] == '0':
		return false
	}
	exponent := text[mark+1:]
	if text[mark] == 'E' { // Java
		digits := bytes.TrimPrefix(exponent, []byte("-"))
		return point && (a < 1e-3 || a >= 1e7) && digits[0] != '+' && digits[0] != '0'
	}
	digits := exponent[1:]
	signed := exponent[0] == '-' || exponent[0] == '+' && len(digits) > 1 // Go's JSON writes one digit after a minus
	padded := len(digits) < 3 || digits[0] != '0'
	return signed && padded && !zero && (a < 1e-4 || a >= 1e6) && (len(digits) > 1 || digits[0] != '0')
}

// KeepsDouble reports whether f, the double nearest to the decimal number text, preserves its digits: rounding f to as
// many significant digits as text has gives text again. This is so for 0.1 and 0.10000000000000001 (many programs print
// 17 digits), but not for 0.1000000000000000055 and 12345678901234567891.
func KeepsDouble(text []byte, f float64) bool {
	var room [40]byte
	digits, exponent := significant(room[:0], text)
	if len(digits) <= 15 && (f == 0 || math.Abs(f) >= smallestNormal) {
		return true // a double preserves any 15 digits
	}
	if len(digits) > maxDigits {
		return false // no double has so many digits
	}
	var printed, back [40]byte
	same, at := significant(printed[:0], strconv.AppendFloat(back[:0], f, 'e', len(digits)-1, 64))
	return at == exponent && string(same) == string(digits)
}

const (
	smallestNormal = 0x1p-1022
	maxDigits      = 767 // maximum number of digits of the exact decimal text of a double
)

// significant appends a number's digits without leading and trailing zeros, and returns the first digit's power of ten.
// It appends nothing for zero.
func significant(dst []byte, text []byte) (digits []byte, exponent int) {
	digits = dst
	point, seen := -1, 0 // numbers of digits since the first significant one: before the point, and so far
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if len(digits) > 0 || c != '0' {
				digits = append(digits, c)
			} else if point >= 0 {
				exponent--
			}
			if point < 0 && len(digits) > 0 {
				seen++
			}
		case c == '.':
			point = i
		case c == 'e' || c == 'E':
			given, _ := strconv.Atoi(string(text[i+1:])) // fits in an int, as the number fits in a double
			exponent += given
			return trimZeros(digits), exponent + seen - 1
		}
	}
	return trimZeros(digits), exponent + seen - 1
}

func trimZeros(digits []byte) []byte {
	for n := len(digits); n > 0 && digits[n-1] == '0'; n = len(digits) {
		digits = digits[:n-1]
	}
	return digits
}
