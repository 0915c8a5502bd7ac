package notices

import (
	"flag"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES")

func TestTheNoticesMatchTheModulesThatAreBuilt(t *testing.T) {
	Check(t, "../..", "../..", "tsimport", *update)
}
