package convert

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/table"
)

// TestDigitsAreReadAsMathBigReadsThem reads texts of 1 to 24 bytes, most of them digits, and each byte at each place.
func TestDigitsAreReadAsMathBigReadsThem(t *testing.T) {
	check := func(text []byte, negative bool) {
		n, fits, ok := parseDigits(text, negative)
		wantOK := true
		for _, c := range text {
			wantOK = wantOK && '0' <= c && c <= '9'
		}
		if ok != wantOK {
			t.Fatalf("%q: digits %v, want %v", text, ok, wantOK)
		}
		if !ok {
			return
		}
		want, _ := new(big.Int).SetString(string(text), 10)
		signed := want
		if negative {
			signed = new(big.Int).Neg(want)
		}
		if fits != signed.IsInt64() || fits && n != want.Uint64() {
			t.Fatalf("%q, negative %v: %d, fits %v, want %v", text, negative, n, fits, want)
		}
	}
	for length := 1; length <= 20; length++ {
		for at := range length {
			for b := range 256 {
				text := []byte("12345678901234567890")[:length]
				text[at] = byte(b)
				check(text, b%2 == 0)
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 23))
	for range 50_000 {
		text := make([]byte, 1+rnd.IntN(24))
		for i := range text {
			text[i] = byte('0' + rnd.IntN(10))
		}
		if rnd.IntN(4) == 0 {
			text[rnd.IntN(len(text))] = byte(rnd.IntN(256))
		}
		check(text, rnd.IntN(2) == 0)
	}
	for _, text := range []string{"9223372036854775807", "9223372036854775808", "9223372036854775809", "000000000000000000000001", "999999999999999999", "1000000000000000000"} {
		check([]byte(text), false)
		check([]byte(text), true)
	}
}

// TestDecimalsAreReadAsStrconvReadsThem reads texts of 1 to 17 bytes of digits, points and signs, and each byte at each place.
func TestDecimalsAreReadAsStrconvReadsThem(t *testing.T) {
	taken := 0
	check := func(text string) {
		f, canonical, ok := plainDecimal([]byte(text))
		n, whole := usualWhole([]byte(text))
		if i, err := strconv.ParseInt(text, 10, 64); whole != (err == nil && strconv.FormatInt(i, 10) == text && -1e15 < i && i < 1e15) || whole && n != i {
			t.Fatalf("%q: %d, whole %v", text, n, whole)
		}
		if !ok {
			return
		}
		taken++
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || f != want || strings.Trim(text, "-.0123456789") != "" || !table.KeepsDouble([]byte(text), f) {
			t.Fatalf("%q: %v, want %v, %v", text, f, want, err)
		}
		if printed := string(table.AppendDouble(nil, want)); canonical != (printed == text) {
			t.Fatalf("%q: canonical %v, and it prints %s", text, canonical, printed)
		}
	}
	for _, text := range []string{"-", "1.", "-1.", ".1", "-1.50", "0.5", "00", "1..2", "999999999999999", "9999999999999999", "9.99999999999999", "123456789012345.6", "9007199254740993"} {
		check(text)
	}
	for length := 1; length <= 17; length++ {
		for at := range length {
			for b := range 256 {
				text := []byte("12345678901234567")[:length]
				text[at] = byte(b)
				check(string(text))
				text[length/2] = '.'
				check(string(text))
				text[0] = '-'
				check(string(text))
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 23))
	for range 60_000 {
		text := make([]byte, 1+rnd.IntN(17))
		for i := range text {
			text[i] = "01234567890123456789012345678901.-"[rnd.IntN(34)]
		}
		check(string(text))
	}
	if taken < 15_000 {
		t.Errorf("only %d of the texts are usual decimals", taken)
	}
}
