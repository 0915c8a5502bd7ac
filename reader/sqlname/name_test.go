package sqlname

import (
	"slices"
	"testing"
)

func TestEveryNameIsReadAsItWasWritten(t *testing.T) {
	for text, parts := range map[string][]string{
		"t": {"t"}, "s.t": {"s", "t"}, `"a.b"."c""d"`: {"a.b", `c"d`}, `s."x."`: {"s", "x."}, `""""`: {`"`}, `"a b`: nil, "": nil, "s.": nil, ".t": nil, `""`: nil, `"a"b`: nil, `"a""`: nil,
	} {
		got, err := Split(text)
		if !slices.Equal(got, parts) || (err == nil) != (parts != nil) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
		if parts == nil {
			continue
		}
		if again := Join(parts...); again != text {
			t.Errorf("%q: %s, want %s", parts, again, text)
		}
	}
	if got, err := Split(`We"ird`); err != nil || !slices.Equal(got, []string{`We"ird`}) {
		t.Errorf("%q, %v", got, err)
	}
}
