package suggest

import (
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestNearest(t *testing.T) {
	words := []string{"load", "copy", "ttl", "pk", "max-errors", "max-rows", "DeviceID", "CardID", "sync"}
	for word, want := range map[string][]string{
		"laod": {"load"}, "lod": {"load"}, "loadd": {"load"}, "lpad": {"load"}, "deviceid": {"DeviceID"},
		"Cardid": {"CardID"}, "max-eror": {"max-errors"},
		"tl": {"ttl"}, "px": {"pk"}, "nonsense": nil, "load": nil, "": nil, strings.Repeat("x", 100): nil,
	} {
		conformance.Same(t, Nearest(word, words), want, "%s", word)
	}
	conformance.Same(t, Nearest("max-row", []string{"max-rows", "max-raw", "min-rows"}), []string{"max-rows", "max-raw"},
		"equally near")
	conformance.Same(t, Nearest("h", []string{"a", "ho", "H"}), []string{"H"}, "h")
	got := Nearest("h", []string{"a", "b"})
	conformance.True(t, got == nil, "h has nothing in common with %q", got)
	conformance.Equal(t, Hint("ta", []string{"to", "tb"}), "; did you mean to or tb?", "hint")
}
