package main

import (
	"flag"
	"testing"

	"example.com/tsimport/internal/notices"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES")

func TestTheNoticesMatchTheModulesThatAreBuilt(t *testing.T) {
	notices.Check(t, "../../..", "../..", "tsimport-beam", *update)
}
