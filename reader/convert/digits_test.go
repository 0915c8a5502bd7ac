package convert

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
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
	for range 200_000 {
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

func BenchmarkDigits(b *testing.B) {
	for _, text := range []string{"7", "12345", "12345678", "1234567890", "1700000000000"} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			digits := []byte(text)
			for b.Loop() {
				parseDigits(digits, false)
			}
		})
	}
}
