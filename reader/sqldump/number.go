package sqldump

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"example.com/tsimport/internal/table"
)

var (
	errInteger = errors.New("want an integer")
	errNumber  = errors.New("want a number")
	errRange   = errors.New("it is too large")
	errSmall   = errors.New("it is too small for a double")
	errDigits  = errors.New("it has more digits than a double keeps")
)

func Integer(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, numberError(err, errInteger)
}

// Unsigned parses a non-negative integer.
func Unsigned(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, numberError(err, errInteger)
}

// Double parses a double, which must be exact. If single is set, it is a 32-bit float, returned as the equal double.
func Double(number []byte, single bool) (float64, error) {
	text := unsafe.String(unsafe.SliceData(number), len(number))
	bits := 64
	if single {
		bits = 32
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return f, numberError(err, errNumber)
	}
	switch {
	case ofGo(text):
		return f, errNumber
	case len(text) <= 15 && math.Abs(f) >= 0x1p-1022: // a double keeps this many digits, unless it is close to 0
	case f == 0 && !isZero(number):
		return f, errSmall
	case !single && f-f == 0 && !table.KeepsDouble(number, f): // not for NaN and infinities, which have no digits
		return f, errDigits
	}
	return f, nil
}

// ofGo reports whether a number is in a notation that only Go accepts.
func ofGo(text string) bool {
	return strings.IndexByte(text, '_') >= 0 || len(text) > 2 && (text[1]|0x20 == 'x' || text[2]|0x20 == 'x')
}

func isZero(number []byte) bool {
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		number = number[:e]
	}
	return !bytes.ContainsAny(number, "123456789")
}

func numberError(err, want error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return errRange
	}
	return want
}
