package table

import (
	"math"
	"strconv"
)

// KeepsDouble reports whether the double nearest to a decimal number is that number: rounded to the number's own significant
// digits it gives the same digits. 0.1 and 0.10000000000000001 (17 digits, as many programs print them) are kept,
// 0.1000000000000000055 and 12345678901234567891 have digits that no double gives back. Text is a number that
// was parsed to f.
func KeepsDouble(text []byte, f float64) bool {
	var room [40]byte
	digits, exponent := significant(room[:0], text)
	if len(digits) <= 15 && (f == 0 || math.Abs(f) >= smallestNormal) {
		return true // a double keeps any 15 digits
	}
	if len(digits) > maxDigits {
		return false // no double has so many
	}
	var printed, back [40]byte
	same, at := significant(printed[:0], strconv.AppendFloat(back[:0], f, 'e', len(digits)-1, 64))
	return at == exponent && string(same) == string(digits)
}

const (
	smallestNormal = 0x1p-1022
	maxDigits      = 767 // of the exact decimal text of a double
)

// significant appends the digits of a decimal number from the first that is not 0 to the last that is not 0, and returns
// the power of ten of the first. Zero has no digits.
func significant(dst []byte, text []byte) (digits []byte, exponent int) {
	digits = dst
	point, seen := -1, 0 // digits before the point, counted from the first significant one
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
			given, _ := strconv.Atoi(string(text[i+1:])) // of a number that fits in a double
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
