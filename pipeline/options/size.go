package options

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are what may follow a number of bytes, in small letters. A letter alone is a power of two, as ls and dd
// have it; followed by a B a power of ten, unless an i says otherwise.
var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseSize reads a number of bytes such as 512M, 1.5GiB, 10 MB or 4096.
func ParseSize(text string) (int64, error) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number := text[:end]
	unit, ok := sizeUnits[strings.ToLower(strings.TrimSpace(text[end:]))]
	n, err := strconv.ParseFloat(number, 64)
	// ParseFloat also takes signs, exponents, hexadecimals and underscores.
	if !ok || err != nil || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a size: want bytes, such as 128MiB, 1GiB, 512M or 4096", text)
	}
	if n *= unit; n >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large a size", text)
	}
	return int64(n), nil
}
