package table

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestADoubleIsTakenOnlyForANumberThatItKeeps compares with exact arithmetic: rounding the double to the number's own
// digits must give the number.
func TestADoubleIsTakenOnlyForANumberThatItKeeps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		digits := strconv.FormatUint(rnd.Uint64()>>rnd.IntN(60), 10) + strconv.FormatUint(rnd.Uint64()>>rnd.IntN(64), 10)
		text := digits[:1+rnd.IntN(len(digits))]
		if at := rnd.IntN(len(text) + 1); rnd.IntN(2) == 0 && at < len(text) {
			text = text[:at] + "." + text[at:]
			if at == 0 {
				text = "0" + text
			}
		}
		if rnd.IntN(3) == 0 {
			text += "e" + strconv.Itoa(rnd.IntN(600)-300)
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		given, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is not a number", text)
		}
		n, _ := significant(nil, []byte(text))
		rounded, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', max(len(n)-1, 0), 64))
		if want := rounded.Cmp(given) == 0; KeepsDouble([]byte(text), f) != want {
			t.Fatalf("%s: keeps is %v, its double is %s", text, !want, strconv.FormatFloat(f, 'e', max(len(n)-1, 0), 64))
		}
	}
}
