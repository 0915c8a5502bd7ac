package address

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAddressesAreParsedWithoutShowingSecrets(t *testing.T) {
	conformance.Golden(t, "addresses.golden", func(input string) string {
		switch words := append(strings.Fields(input), ""); words[0] {
		case "variable":
			return Variable(words[1], words[2])
		case "endpoint":
			return EndpointOf(words[1], words[2], words[3])
		}
		a, err := Parse(input)
		if err != nil {
			return fmt.Sprint(err, "; is an address: ", Is(input))
		}
		back, err := Parse(a.String())
		conformance.True(t, err == nil && back == a && Is(input), "%s is shown as %s", input, a)
		return fmt.Sprintf("%+v, profile %q, instance %q, table %q", a, a.Profile, a.Instance, a.Table)
	})
}
