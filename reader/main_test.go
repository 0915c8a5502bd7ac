package reader

import (
	"testing"

	"tsimport/internal/conformance"
)

// must ends the test with an error that it does not expect.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { conformance.Main(m) }
