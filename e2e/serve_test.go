package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
			check(t, err, authFailed("Signature mismatch."))
			_, err = newClient(s.URL, "tsimport", v.id, v.secret).ListTable()
			check(t, err, authFailed("The instance is not found."))
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

// TestSIGTERMLetsARequestInFlightFinish holds a request back by its body: the server has read the headers when it asks
// for more, and the body is sent after the signal has closed the port.
func TestSIGTERMLetsARequestInFlightFinish(t *testing.T) {
	p := startServe(t)
	s := &service{endpoint: p.URL, instance: p.Instance, keyID: p.AccessKeyID, secret: p.AccessKeySecret}
	// The request is signed by send; a transport writes it in two parts.
	parts := &inParts{between: func() {
		must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		for { // until the port refuses: the server stops
			c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				return
			}
			c.Close()
		}
	}}
	s.transport = parts
	s.send(t, rawRequest{operation: "DescribeTable", body: message{}.text(1, "no_such_table")}).check(t, noSuchTable)
	p.stopped = true
	p.cmd.Wait() // its error is the exit code below
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0; stderr:\n%s", code, p.stderr.String())
	}
}

// inParts sends the headers, waits until the server asks for the body, and sends it after between.
type inParts struct{ between func() }

func (p *inParts) RoundTrip(r *http.Request) (*http.Response, error) {
	address, err := url.Parse("http://" + r.URL.Host)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", address.Host)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(processTimeout))
	var text bytes.Buffer
	r.Header.Set("Expect", "100-continue")
	if err := r.Write(&text); err != nil {
		return nil, err
	}
	head, body, _ := bytes.Cut(text.Bytes(), []byte("\r\n\r\n"))
	if _, err := c.Write(append(head, "\r\n\r\n"...)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(c)
	if _, err := http.ReadResponse(reader, r); err != nil { // 100 Continue
		return nil, err
	}
	p.between()
	if _, err := c.Write(body); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(reader, r)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(whole))
	c.Close()
	return resp, err
}

func TestTheSecretIsNotAnArgument(t *testing.T) {
	out, err := exec.Command(binary, "serve", "--help").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--access-key-secret-file")) || bytes.Contains(out, []byte("--access-key-secret ")) {
		t.Errorf("%v\n%s", err, out)
	}
}
