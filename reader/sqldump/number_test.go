package sqldump

import (
	"fmt"
	"testing"
)

func TestANumberOfADumpIsReadExactlyOrRefusedInWords(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "-0", "0.0": "0", "0e0": "0", "1.5": "1.5", "-1e308": "-1e+308", "1.7976931348623157e+308": "1.7976931348623157e+308", "2.2250738585072014e-308": "2.2250738585072014e-308",
		"5e-324": "5e-324", "0.30000000000000004": "0.30000000000000004", "NaN": "NaN", "-Infinity": "-Inf", "123456789012345": "1.23456789012345e+14",
		"1e400": "it is too large", "1e-400": "it is too small for a double", "-0.0001e-400": "it is too small for a double", "1.2345e-320": "it has more digits than a double keeps",
		"12345678901234567891": "it has more digits than a double keeps", "": "want a number", "x": "want a number", "0x1p4": "want a number", "-0x1p4": "want a number", "1_0": "want a number", "1 ": "want a number",
	} {
		f, err := Double([]byte(text), false)
		got := fmt.Sprint(f)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"-9223372036854775808": "-9223372036854775808", "9223372036854775808": "it is too large", "1.0": "want an integer", "": "want an integer", "0x1": "want an integer"} {
		n, err := Integer(text)
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if f, err := Double([]byte("0.1"), true); err != nil || f != float64(float32(0.1)) {
		t.Errorf("the single 0.1 is %v, %v", f, err)
	}
	if n, err := Unsigned("18446744073709551615"); err != nil || n != 1<<64-1 {
		t.Error(n, err)
	}
	if _, err := Unsigned("-1"); err != errInteger {
		t.Error(err)
	}
}
