package e2e

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestTheBinarySaysWhatItWasBuiltFrom checks the stamp of a binary that is built in a clone: what a report of a fault names must be
// what was running.
func TestTheBinarySaysWhatItWasBuiltFrom(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat("../.git"); err != nil || !info.IsDir() {
		t.Skip("not a clone, or a worktree, which go build does not stamp")
	}
	if flags, err := exec.Command("go", "env", "GOFLAGS").Output(); err != nil || strings.Contains(string(flags), "-buildvcs=false") {
		t.Skipf("go build is told not to stamp, or cannot say (%v): GOFLAGS=%s", err, flags)
	}
	head, err := exec.Command("git", "-C", "..", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("git does not say what is checked out: %v", err)
	}
	newPlace(t).ends(0, []string{"--version"}, "revision "+strings.TrimSpace(string(head))[:12], "go1.", runtime.GOOS+"/"+runtime.GOARCH)
}
