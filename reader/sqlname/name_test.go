package sqlname

import (
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestNamesRoundTrip(t *testing.T) {
	for text, parts := range map[string][]string{
		"t": {"t"}, "s.t": {"s", "t"}, `"a.b"."c""d"`: {"a.b", `c"d`}, `s."x."`: {"s", "x."}, `""""`: {`"`}, `"a b`: nil,
		"": nil, "s.": nil, ".t": nil, `""`: nil, `"a"b`: nil, `"a""`: nil,
	} {
		got, err := Split(text)
		conformance.True(t, slices.Equal(got, parts) && (err == nil) == (parts != nil), "%s: %q, %v", text, got, err)
		if parts == nil {
			continue
		}
		conformance.Equal(t, Join(parts...), text, "%q", parts)
	}
	conformance.Same(t, conformance.Try(Split(`We"ird`)).Must(t), []string{`We"ird`}, "result")
}
