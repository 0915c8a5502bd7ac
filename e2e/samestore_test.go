//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStoresOfOneNameInTwoFoldersAreTwoTargets loads one file into the default store of each of two folders at once. In the same
// folder the second load is refused.
func TestStoresOfOneNameInTwoFoldersAreTwoTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	text := "id,v\n"
	for i := range 2000 {
		text += fmt.Sprintf("%d,x\n", i)
	}
	must(t, os.WriteFile(input, []byte(text), 0o600))
	here, there := filepath.Join(dir, "here"), filepath.Join(dir, "there")
	must(t, os.Mkdir(here, 0o755))
	must(t, os.Mkdir(there, 0o755))
	load := func(folder string, flags ...string) *exec.Cmd {
		cmd := exec.Command(binary, append([]string{"load", input, "--table", "t", "--pk", "id:integer"}, flags...)...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
		return cmd
	}
	first := load(here, "--max-rows-per-second", "1")
	must(t, first.Start())
	defer func() {
		first.Process.Kill()
		first.Wait() // killed
	}()
	for end := time.Now().Add(processTimeout); ; time.Sleep(time.Millisecond) {
		if runs, err := filepath.Glob(filepath.Join(here, "tsimport-runs", "*", "summary.json")); err == nil && len(runs) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the first load does not begin")
		}
	}
	if out, err := load(there).CombinedOutput(); err != nil {
		t.Errorf("the load in another folder: %v\n%s", err, out)
	}
	if out, err := load(here).CombinedOutput(); err == nil || !strings.Contains(string(out), "it is in use by another process") {
		t.Errorf("the load in the same folder: %v\n%s", err, out)
	}
}
