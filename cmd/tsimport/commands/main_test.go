package commands

import (
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestMain(m *testing.M) { conformance.Main(m) }
