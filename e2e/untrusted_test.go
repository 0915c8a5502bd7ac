//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A certificate that is not trusted does not become so by waiting: the load is refused at once.
func TestAServerWhoseCertificateIsNotTrustedIsRefusedAtOnce(t *testing.T) {
	cert, key, _ := certificate(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", ownSecret)
	s := startServe(t, "--tls-cert", cert, "--tls-key", key, "--access-key-id", "me")
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte("id,v\na,1\n"), 0o600))
	p := &pod{dir: dir, s: s}
	for _, args := range [][]string{
		{"load", input, "--table", "t", "--pk", "id", "--create"}, {"load", input, "--table", "t", "--create", "--pk", "id", "--dry-run"}, {"verify", input, "--table", "t"},
		{"table", "update", "t", "--ttl", "-1"},
	} {
		cmd := p.command(append(args, "--endpoint", s.URL, "--instance", s.Instance)...)
		began := time.Now()
		killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
		out, err := cmd.CombinedOutput()
		killer.Stop()
		text := string(out)
		if code := cmd.ProcessState.ExitCode(); err == nil || code != 5 || strings.Contains(text, "waiting") || !strings.Contains(text, "the certificate of the endpoint is not trusted: x509: certificate signed by unknown authority; check --endpoint") {
			t.Errorf("%q: after %v, exit code %d: %s", args, time.Since(began), code, text)
		}
	}
}
