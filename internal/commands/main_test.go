package commands

import (
	"os"
	"runtime/debug"
	"testing"

	"tsimport/internal/conformance"
)

func TestMain(m *testing.M) {
	if err := conformance.TempInMemory(); err != nil {
		panic(err)
	}
	debug.SetGCPercent(400) // hundreds of short commands
	os.Exit(m.Run())
}
