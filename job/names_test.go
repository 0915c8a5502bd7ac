package job

import (
	"strings"
	"testing"
)

func TestNamesOfLoadsHaveAtMost255Bytes(t *testing.T) {
	for name, right := range map[string]bool{"": false, "a": true, "-a": false, "a.b-c_1": true, "a/b": false, "a\n": false, strings.Repeat("a", 255): true, strings.Repeat("a", 256): false} {
		if got := IsName(name); got != right {
			t.Errorf("a name of %d bytes, %.10q: %v", len(name), name, got)
		}
	}
}
