package drawn

import (
	"os"
	"testing"

	"tsimport/internal/conformance"
)

func TestMain(m *testing.M) {
	if err := conformance.TempInMemory(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
