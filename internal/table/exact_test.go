package table

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
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

func TestADoubleIsWhatAProgramPrints(t *testing.T) {
	for text, want := range map[string]bool{
		"8.76712776820554e-05": true, "1e+16": true, "1e-05": true, "5e-324": true, "1.7976931348623157e+308": true, // Python
		"8.76712776820554E-5": true, "1.0E10": true, "4.9E-324": true, "23.0": true, "-0.0": true, "100.0": true, // Java
		"0.10000000000000001": true, "9.9999999999999995e-08": true, "1e+20": true, // C
		"1e+06": true, "1.23456789e+08": true, "1e-7": true, "0.0000001": true, "100000000000000000000": true, "0": true, "-0": true, // Go
		"10.50": false, "007": false, "+5": false, "1e3": false, "1.5e2": false, "2E10": false, "1E5": false, "1.0e-05": false, "1e16": false,
		"12e-5": false, "0.5e-05": false, "1e-005": false, ".5": false, "5.": false, "23.00": false, "1.0E+10": false, "1.0E-05": false,
		"0.1000000000000000055": false, "9007199254740993.0": false, "1e+5": false, "1.10e-05": false, "12345678901234567890": false,
	} {
		f, err := strconv.ParseFloat(text, 64)
		if got := PrintsDouble([]byte(text), f); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	printers := map[string]func(f float64) string{
		"ours":   func(f float64) string { return string(AppendDouble(nil, f)) },
		"go":     func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) },
		"json":   func(f float64) string { text, _ := json.Marshal(f); return string(text) },
		"%.17g":  func(f float64) string { return cPrint(f) },
		"python": pythonPrint,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		f := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			f = float64(random.IntN(2e6)-1e6) / math.Pow10(random.IntN(9))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		for by, print := range printers {
			if text := print(f); !PrintsDouble([]byte(text), f) {
				t.Fatalf("%s prints %s", by, text)
			}
		}
	}
}

// cPrint is %.17g of C.
func cPrint(f float64) string {
	text := strconv.FormatFloat(f, 'e', 16, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 17 {
		return strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".") + "e" + exponent
	} else if text = strconv.FormatFloat(f, 'f', 16-n, 64); strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// pythonPrint is repr of Python.
func pythonPrint(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
