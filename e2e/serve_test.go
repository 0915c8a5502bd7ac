//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const ownSecret = "S3cretOfTheTest+/="

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestServeTakesAnAccountOfTheUsersOwnAndShowsNoSecret(t *testing.T) {
	for name, v := range map[string]struct {
		env    string
		args   []string
		shown  string // of the secret
		id     string
		secret string
	}{
		"nothing said":                         {"", nil, "tsimport-local-secret", "tsimport-local", "tsimport-local-secret"},
		"a secret of a real account around":    {ownSecret, nil, "tsimport-local-secret", "tsimport-local", "tsimport-local-secret"},
		"a key id, the secret in its place":    {ownSecret, []string{"--access-key-id", "me"}, "(from-environment)", "me", ownSecret},
		"a file, with a line end":              {"", []string{"--access-key-id", "me", "--access-key-secret-file", secretFile(t, ownSecret+"\r\nmore\n")}, "(from-file)", "me", ownSecret},
		"a file goes before the environment":   {"other", []string{"--access-key-id", "me", "--access-key-secret-file", secretFile(t, ownSecret)}, "(from-file)", "me", ownSecret},
		"a file for the key id that is there":  {"", []string{"--access-key-secret-file", secretFile(t, ownSecret)}, "(from-file)", "tsimport-local", ownSecret},
		"the built-in secret, said once again": {"tsimport-local-secret", []string{"--access-key-id", "me"}, "tsimport-local-secret", "me", "tsimport-local-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", v.env)
			s := startServe(t, append([]string{"--instance", "mine"}, v.args...)...)
			if s.AccessKeySecret != v.shown || s.AccessKeyID != v.id || s.Instance != "mine" {
				t.Errorf("ready line: %q %q %q", s.AccessKeySecret, s.AccessKeyID, s.Instance)
			}
			_, err := newClient(s.URL, "mine", v.id, v.secret).ListTable()
			must(t, err)
			_, err = newClient(s.URL, "mine", v.id, v.secret+"x").ListTable()
			if codeOf(err) != "OTSAuthFailed" {
				t.Errorf("another secret: %v", err)
			}
			_, err = newClient(s.URL, "tsimport", v.id, v.secret).ListTable()
			if codeOf(err) != "OTSAuthFailed" {
				t.Errorf("another instance: %v", err)
			}
			s.stop(t)
			if strings.Contains(s.stderr.String(), ownSecret) {
				t.Errorf("stderr shows the secret: %s", s.stderr.String())
			}
		})
	}
}

func TestServeRefusesAnAccountThatCannotBe(t *testing.T) {
	for name, v := range map[string]struct {
		env  string
		args []string
		want string
	}{
		"a key id without a secret":   {"", []string{"--access-key-id", "me"}, "no secret; set TABLESTORE_ACCESS_KEY_SECRET or give --access-key-secret-file"},
		"a key id no SDK takes":       {"x", []string{"--access-key-id", "me!"}, `access key id "me!"`},
		"a secret with spaces":        {"hush hush", []string{"--access-key-id", "me"}, "the access key secret has spaces"},
		"an instance too short":       {"", []string{"--instance", "ab"}, `instance "ab": want 3 to 16`},
		"no instance":                 {"", []string{"--instance", ""}, "--instance is empty; leave it out"},
		"a file that is not there":    {"", []string{"--access-key-secret-file", "no-such-file"}, "--access-key-secret-file: open no-such-file"},
		"an empty file":               {"", []string{"--access-key-secret-file", secretFile(t, "\n")}, "the first line is empty or longer than 4096 bytes"},
		"a file that is no secret":    {"", []string{"--access-key-secret-file", secretFile(t, strings.Repeat("x", 4097))}, "the first line is empty or longer than 4096 bytes"},
		"no connections":              {"", []string{"--max-connections", "0"}, "--max-connections 0: want at least 1"},
		"a limiter that is none":      {"", []string{"--partition-wcu", "9", "--limiter", "leaky"}, `limiter "leaky" is none of token-bucket, fixed-window,`},
		"a limiter without a limit":   {"", []string{"--limiter", "queue"}, "limiter queue needs a partition capacity or a limit of the table"},
		"a burst of a queue":          {"", []string{"--limit-table", "9", "--limiter", "queue", "--burst", "2s"}, "--burst is for --limiter token-bucket"},
		"fewer connections than none": {"", []string{"--max-connections", "-1"}, "--max-connections -1: want at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", v.env)
			store := filepath.Join(t.TempDir(), "store")
			stdout, stderr, code := runBinary(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", store}, v.args...)...)
			if code != 2 || stdout != "" || !strings.Contains(stderr, v.want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "hush") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if _, err := os.Stat(store); err == nil {
				t.Error("the store is made all the same")
			}
		})
	}
}

func TestServeWarnsWhenOtherMachinesCanReachIt(t *testing.T) {
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", ownSecret)
	for name, v := range map[string]struct {
		args []string
		want string
	}{
		"with a key of one's own": {[]string{"--listen", "0.0.0.0:0", "--access-key-id", "me"}, "can be reached from other machines, and traffic is not encrypted"},
		"also with --quiet":       {[]string{"--listen", "0.0.0.0:0", "--access-key-id", "me", "--quiet"}, "traffic is not encrypted"},
		"on this machine only":    {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, v.args...)
			s.stop(t)
			if got := s.stderr.String(); v.want == "" && strings.Contains(got, "warning") || !strings.Contains(got, v.want) {
				t.Errorf("stderr: %s", got)
			}
		})
	}
}

func TestTheSecretIsNotAnArgument(t *testing.T) {
	out, err := exec.Command(binary, "serve", "--help").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--access-key-secret-file")) || bytes.Contains(out, []byte("--access-key-secret ")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAStoreHasOneServer(t *testing.T) {
	t.Parallel()
	r := openStore(t)
	stdout, stderr, code := runBinary(t, "serve", "--store", r.store, "--listen", "127.0.0.1:0")
	if want := "tsimport: open store " + r.store + ": it is in use by another process"; code != 1 || stdout != "" ||
		!strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr\n%s, want one line that begins\n%s", code, stdout, stderr, want)
	}
	r.newTable(t) // by the first, which still serves
}

func TestServeRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--quiet")
	store := filepath.Join(t.TempDir(), "store")
	for name, v := range map[string]struct {
		store string
		more  []string
		code  int
		want  string // in stderr
	}{
		"a directory that is no store": {filepath.Dir(binary), nil, 1, "not a tsimport store"},
		"an address in use":            {store, []string{"--listen", strings.TrimPrefix(s.URL, "http://")}, 1, "address already in use"},
		"an address that is none":      {store, []string{"--listen", "nowhere:x"}, 1, "listen"},
		"an argument":                  {store, []string{"extra"}, 2, "extra"},
		"a way to sync nobody knows":   {store, []string{"--sync", "often"}, 2, "often"},
		"a negative number of tables":  {store, []string{"--max-tables=-1"}, 2, "--max-tables"},
		"a negative rate of changes":   {store, []string{"--table-ops=-1"}, 2, "--table-ops"},
		"a negative interval":          {store, []string{"--throughput-interval=-1s"}, 2, "--throughput-interval"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := runBinary(t, append([]string{"serve", "--store", v.store}, v.more...)...)
			if code != v.code || stdout != "" || !strings.Contains(stderr, v.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}
