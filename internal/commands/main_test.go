package commands

import (
	"testing"

	"tsimport/internal/conformance"
)

func TestMain(m *testing.M) { conformance.Main(m) }
