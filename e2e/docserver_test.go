//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var serveLine = regexp.MustCompile(`^tsimport serve ([^&>#]*)`)

// TestTheCommandsOfPagesOnTheLocalServerRun runs the commands of pages that start a server and ask it, each page in an empty folder. The server
// is the page's own with --admin, at a free port.
func TestTheCommandsOfPagesOnTheLocalServerRun(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "awk")
	for page, least := range map[string]int{"simulation.md": 20, "engine.md": 4, "how-to/local-engine.md": 3} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			text, err := os.ReadFile(filepath.Join("../docs", page))
			must(t, err)
			var before, after, flags []string
			for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
				for line := range strings.Lines(continuation.ReplaceAllString(block[1], " ")) {
					line, _, _ = strings.Cut(line, "  #")
					line = strings.TrimSpace(line)
					serve := serveLine.FindStringSubmatch(line)
					switch {
					case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "docker ") || strings.Contains(line, "…"):
					case serve != nil && strings.Contains(line, "--admin"):
						flags = strings.Fields(serve[1])
						before, after = after, nil
					case serve == nil:
						after = append(after, line)
					}
				}
			}
			if flags == nil || len(before)+len(after) < least {
				t.Fatalf("the page has the commands %q and %q, and serve with %q", before, after, flags)
			}
			run := func(lines []string) {
				t.Helper()
				if r := p.bash("set -exo pipefail; curl() { command curl -sSf \"$@\"; }\n" + strings.Join(lines, "\n")); r.wait() != 0 {
					t.Fatalf("%v\n%s", r.ProcessState, &r.said)
				}
			}
			run(before)
			for i := range flags {
				switch {
				case i == 0:
				case flags[i-1] == "--store" || flags[i-1] == "--sample-file":
					flags[i] = p.path(flags[i])
				case flags[i-1] == "--listen":
					flags[i] = "127.0.0.1:0"
				}
			}
			s, err := launch(flags...)
			must(t, err)
			defer s.stop(t)
			for i := range after {
				after[i] = strings.ReplaceAll(after[i], "http://127.0.0.1:8087", s.URL)
			}
			p.env = append(s.credentials(), "url="+s.URL)
			run(after)
		})
	}
}
