package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// TestProfilesAreFound has steps that change the environment and the file of profiles, and steps that look for one.
func TestProfilesAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv(FileVariable, file)
	t.Setenv("HOME", t.TempDir())
	conformance.Golden(t, "profiles.golden", func(input string) string {
		step, of, _ := strings.Cut(input, " ")
		switch step {
		case "set":
			name, value, _ := strings.Cut(of, " ")
			t.Setenv(name, value)
			return "done"
		case "write":
			return fmt.Sprint(os.WriteFile(file, []byte(of), 0o600))
		case "file":
			return File()
		}
		p, err := Find(of)
		if err != nil {
			return strings.ReplaceAll(err.Error(), file, "FILE")
		}
		if step == "find" {
			return strings.ReplaceAll(fmt.Sprintf("%+v", *p), file, "FILE")
		}
		provider, from, err := p.Keys()
		text, _, _ := strings.Cut(fmt.Sprint(err), "vendor's command line (") // then the vendor's words
		if provider != nil {
			text += ", secret " + provider.GetCredentials().GetAccessKeySecret()
		}
		return from + ": " + text
	})
}
