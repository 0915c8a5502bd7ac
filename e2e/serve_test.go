//go:build e2e

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

const ownSecret = "S3cretOfTheTest+/="

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestServeUsesCustomAccountAndHidesSecret also expects a warning if other machines can reach the server.
func TestServeUsesCustomAccountAndHidesSecret(t *testing.T) {
	for name, v := range map[string]struct {
		env        string
		args       []string
		shown      string // part of the output about the secret
		id, secret string
	}{
		"a real account's secret": {ownSecret, nil, "tsimport-local-secret", "tsimport-local", "tsimport-local-secret"},
		"a key id, its secret in place": {ownSecret, []string{"--access-key-id", "me", "--listen", "0.0.0.0:0"},
			"(from-environment)", "me", ownSecret},
		"a file before the environment": {"other", []string{"--access-key-id", "me", "--access-key-secret-file",
			secretFile(t, ownSecret+"\r\nmore\n")}, "(from-file)", "me", ownSecret},
		"a file for the key id there": {"", []string{"--access-key-secret-file", secretFile(t, ownSecret)}, "(from-file)",
			"tsimport-local", ownSecret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", v.env)
			s := startServe(t, append([]string{"--instance", "mine"}, v.args...)...)
			conformance.True(t, s.AccessKeySecret == v.shown && s.AccessKeyID == v.id && s.Instance == "mine",
				"ready line: %q %q %q", s.AccessKeySecret, s.AccessKeyID, s.Instance)
			_, err := newClient(s.URL, "mine", v.id, v.secret).ListTable()
			must(t, err)
			_, err = newClient(s.URL, "mine", v.id, v.secret+"x").ListTable()
			conformance.Equal(t, codeOf(err), "OTSAuthFailed", "another secret: %v", err)
			_, err = newClient(s.URL, "tsimport", v.id, v.secret).ListTable()
			conformance.Equal(t, codeOf(err), "OTSAuthFailed", "another instance: %v", err)
			s.stop(t)
			if said := s.said.String(); strings.Contains(said, ownSecret) ||
				strings.Contains(said, "can be reached from other machines, and traffic is not encrypted") != slices.Contains(
					v.args, "0.0.0.0:0") {
				t.Errorf("stderr shows the secret, or who can reach it: %s", said)
			}
		})
	}
}

func TestServeRefusesInvalidStores(t *testing.T) {
	t.Parallel()
	s, p := startServe(t, "--quiet"), newPlace(t)
	cert, _, _ := certificate(t)
	empty := secretFile(t, "\n")
	for _, v := range []struct {
		secret, args string
		code         int
		want         string
	}{
		{"", "--access-key-id me", 2, "no secret; set TABLESTORE_ACCESS_KEY_SECRET or give --access-key-secret-file"},
		{"hush hush", "--access-key-id me", 2, "the access key secret must be printable ASCII"},
		{"", "--instance ab", 2, `instance "ab": want 3 to 16`},
		{"", "--access-key-secret-file no-such-file", 2, "--access-key-secret-file: open no-such-file"},
		{"", "--access-key-secret-file " + empty, 2, "its first line is empty or longer than 4096 bytes"},
		{"", "--max-connections -1", 2, "--max-connections -1: want at least 1"},
		{"", "--limiter queue", 2, "limiter queue needs a partition capacity or a table limit"},
		{"", "--listen 0.0.0.0:0", 2, "the built-in access key is public"},
		{"", "--tls-cert " + cert, 2, "--tls-cert and --tls-key go together"},
		{"", "--memory --store x", 2, "--memory keeps nothing on disk"},
		{"", "--any-credentials --memory --listen 0.0.0.0:0", 2, "--any-credentials lets everyone in"},
		{"", "extra", 2, "extra"},
		{"", "--max-tables=-1", 2, "--max-tables"},
		{"", "--listen " + strings.TrimPrefix(s.URL, "http://"), 1, "address already in use"},
		{"", "--store " + filepath.Dir(binary), 1, "not a tsimport store"},
	} {
		p.env = []string{"TABLESTORE_ACCESS_KEY_SECRET=" + v.secret}
		args := append([]string{"serve"}, strings.Fields(v.args)...)
		if !strings.Contains(v.args, "--listen") {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		if said := p.ends(v.code, args, v.want); strings.Count(said, "\n") != 1 || strings.Contains(said, "hush") {
			t.Errorf("%s: want one line, without the secret: %s", v.args, said)
		}
		left, err := os.ReadDir(p.dir)
		conformance.True(t, v.code != 2 || err == nil && len(left) == 0, "%s: left behind: %v, %v", v.args, left, err)
	}
}

func TestStoreHasOneServer(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := startServe(t, "--store", store)
	want := "tsimport: open store " + store + ": it is in use by another process"
	said := newPlace(t).ends(1, []string{"serve", "--store", store, "--listen", "127.0.0.1:0"})
	conformance.True(t, strings.HasPrefix(said, want) && strings.Count(said, "\n") == 1, "%s; want a line\n%s", said, want)
	s.newTable(t, "t", 1) // the first server still works
}

func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	der := server.Certificate().Raw
	keyDER := conformance.Try(x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)).Must(t)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(cert, text, 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, roots
}

// TestServeSpeaksTLS tests clients with the certificate, and clients without it, which must fail at once.
func TestServeSpeaksTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", ownSecret)
	s := startServe(t, "--tls-cert", cert, "--tls-key", key, "--access-key-id", "me")
	conformance.MustTrue(t, strings.HasPrefix(s.URL, "https://"), "url=%s", s.URL)
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer web.CloseIdleConnections()
	for secret, want := range map[string]int{ownSecret: http.StatusOK, "wrong": http.StatusUnauthorized} {
		r := conformance.Try(http.NewRequest(http.MethodGet, s.URL+"/_engine/stats", nil)).Must(t)
		r.SetBasicAuth("me", secret)
		res := conformance.Try(web.Do(r)).Must(t)
		res.Body.Close()
		conformance.Equal(t, res.StatusCode, want, "status")
	}
	p := newPlace(t, s.env()...)
	p.write("in.csv", "id,v\na,1\n")
	for _, args := range []string{"load in.csv --table t --pk id --create",
		"load in.csv --table t --create --pk id --dry-run", "verify in.csv --table t", "table update t --ttl -1"} {
		said := p.ends(5, strings.Fields(args), "the certificate of the endpoint is not trusted: x509: certificate signed "+
			"by unknown authority; check --endpoint")
		conformance.True(t, !strings.Contains(said, "waiting"), "%s: %s", args, said)
	}
}

func TestServeLoadsSeeds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("orders.csv", "id,seq,v\na,1,x\nb,2,y\n")
	p.run(0, strings.Fields("load orders.csv -t orders --create --pk id --pk seq:integer --store store")...)
	p.run(0, strings.Fields("export -t orders --format archive -o kept --store store")...)
	s := startServe(t, "--memory", "--seed", p.path("orders.csv")+"?pk=id&pk=seq:integer", "--seed", p.path("kept")+
		"?table=archived", "--seed", p.path("orders.csv")+"?table=orders")
	for _, table := range []string{"orders", "archived"} {
		conformance.Equal(t, len(dump(t, s, table)), 2, "%s", table)
	}
	for want, seed := range map[string]string{
		"the table needs a primary key: --seed 'orders.csv?table=orders&pk=COLUMN'": "orders.csv",
		"unknown parameter key":                        "orders.csv?key=id",
		"no input is named":                            "?table=t",
		"not-there.csv":                                "not-there.csv?pk=id",
		"to seed random numbers, give --random-seed 7": "7",
	} {
		said := p.ends(2, []string{"serve", "--memory", "--seed", seed}, want)
		conformance.True(t, strings.Count(said, "\n") <= 2, "%s: %s", seed, said)
	}
}

// An interrupted or failed seed must not leave a partial table that a later start would take for complete.
func TestSeedIsLoadedAtomically(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("bad.csv", "id,seq\na,1\nb,two\n")
	const how = "?table=t&pk=id&pk=seq:integer"
	bad := p.start("serve", "--store", "store", "--seed", "bad.csv"+how)
	if code := bad.wait(); code == 0 || !strings.Contains(bad.said.String(), "record 2 (line 3) cannot be loaded: ") {
		t.Fatalf("a seed with a bad record: exit code %d: %s", code, &bad.said)
	}
	good := func(text string, rows int) {
		t.Helper()
		s := startServe(t, "--store", p.path("store"), "--seed", p.write("good.csv", text)+how)
		conformance.Equal(t, len(dump(t, s, "t")), rows, "rows")
		s.stop(t)
	}
	good("id,seq\na,1\nb,2\n", 2)
	p.write("store/SEEDING", "t\n") // as after a kill
	p.ends(2, []string{"serve", "--store", "store"}, "the load of table t was interrupted")
	good("id,seq\na,1\nb,2\nc,3\n", 3)
	conformance.Equal(t, there(p.path("store/SEEDING"))(), false, "the mark is still there")
}

// planted is the beginning of every secret in the tests below.
const planted = "geheim"

// secretAddresses returns addresses of a server, each with a different kind of secret. reader/input tests all forms.
func secretAddresses(server string) (all []string) {
	host := strings.TrimPrefix(server, "http://")
	for i, shape := range []string{
		"http://user:SECRET@HOST/N.csv", "HTTP://us%20er:p%2FSECRET@HOST/N.csv",
		"http://HOST/N.csv?OSSAccessKeyId=SECRET&Expires=1&Signature=SECRET", "http://HOST/N.csv?SECRETSECRETSECRE==",
		"http://HOST/N.csv?file=http://user:SECRET@other/", "http://HOST/N.csv#access_token=SECRET",
		"http://HOST/eyJhbGciOi.SECRET.c2ln/N.csv",
	} {
		all = append(all, strings.NewReplacer("SECRET", planted, "HOST", host, "N.csv",
			fmt.Sprintf("%d.csv", i+1)).Replace(shape))
	}
	return all
}

var fileOfNumber = regexp.MustCompile(`([0-9]+)\.csv`)

// secretSite serves N.csv with the row N,x at any address, /bad.csv with a bad row, and /list with the addresses.
func secretSite(t *testing.T) (server *httptest.Server) {
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/list"):
			fmt.Fprintln(w, strings.Join(secretAddresses(server.URL), "\n"))
		case strings.HasSuffix(r.URL.Path, "/evil-list"):
			fmt.Fprintln(w, "s3://id:geheim@bucket/key")
		case strings.HasSuffix(r.URL.Path, "/bad.csv"):
			io.WriteString(w, "id,v\nnine,x\n")
		case fileOfNumber.MatchString(r.URL.Path):
			fmt.Fprintf(w, "id,v\n%s,x\n", fileOfNumber.FindStringSubmatch(r.URL.Path)[1])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func noSecretIn(t *testing.T, where, text string) {
	t.Helper()
	i := strings.Index(text, planted)
	conformance.True(t, i < 0, "%s shows a secret: …%q…", where, text[max(0, i-120):min(len(text), i+20)])
}

func noSecretBelow(t *testing.T, dir string) {
	t.Helper()
	files := 0
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		noSecretIn(t, name, name+string(bytes.ToValidUTF8(text, nil)))
		files++
		return err
	}))
	conformance.MustTrue(t, files != 0, "no files in %s", dir)
}

func TestAddressSecretsAreNeitherShownNorStored(t *testing.T) {
	t.Parallel()
	server := secretSite(t)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	target := []string{"--store", dir + "/store", "--table", "t", "--pk", "id"}
	addresses := secretAddresses(server.URL)
	bad := "http://user:geheim@" + host + "/bad.csv?sig=geheim"
	p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=20ms")
	run := func(code int, args ...string) {
		t.Helper()
		noSecretIn(t, fmt.Sprintf("what %.60q says", args), p.ends(code, args))
	}
	with := func(command string, inputs []string, flags ...string) []string {
		return append(append(append([]string{command}, inputs...), target...), flags...)
	}

	run(0, with("load", addresses, "--run-dir", dir+"/all", "--json")...)
	run(3, with("load", []string{bad}, "--run-dir", dir+"/bad", "--type", "id=integer", "--json", "--max-errors", "-1")...)
	run(0, with("load", []string{"@http://user:geheim@" + host + "/list?geheim"}, "--run-dir", dir+"/list")...)
	run(2, with("load", []string{"@http://user:geheim@" + host + "/evil-list?geheim"}, "--run-dir", dir+"/evil")...)

	// This load stops, with all outputs that a load can have.
	stopped := with("load", []string{addresses[3], bad}, "--run-dir", dir+"/stopped", "--type", "id=integer", "--json",
		"--max-errors")
	run(4, append(stopped, "0")...)
	folders := []string{dir + "/all", dir + "/bad", dir + "/stopped"}
	for _, command := range []string{"runs", "runs --json"} {
		run(0, append(strings.Fields(command), folders...)...)
	}
	run(2, "resume", dir+"/stopped")
	run(2, "load", "--retry-rejects", dir+"/bad")
	run(2, "verify", "--run", dir+"/all")
	run(3, append(stopped, "-1")...)

	run(0, with("check", addresses, "--json")...)
	run(3, with("check", []string{bad}, "--type", "id=integer")...)
	run(0, with("verify", addresses)...)
	run(3, with("verify", []string{bad}, "--type", "id=integer", "--json")...)
	for _, command := range []string{"inspect", "inspect --json --count", "advise", "advise --json"} {
		run(0, append(strings.Fields(command), addresses...)...)
	}
	run(0, append([]string{"explain", "--pk", "id"}, addresses[0])...)
	run(0, "export", "--store", dir+"/store", "--table", "t", "-o", dir+"/export.csv")

	for _, wrong := range []string{
		"http://user:geheim@" + host + "/none?sig=geheim", "http://user:ge/geheim@h/?sig=geheim", "http:user:geheim@h/a.csv",
		"s3://id:geheim@bucket/key", "oss://id:geheim@bucket/key", "oss://id:geheim@bucket?Signature=geheim",
		"@@http://user:geheim@h/", "@http://user:geheim@h:port/",
	} {
		run(2, "load", wrong, "--store", dir+"/none", "--table", "t", "--pk", "id")
		run(2, "inspect", wrong)
	}
	run(7, "load", "http:/user:geheim@h/a.csv?sig=geheim", "--store", dir+"/none", "--table", "t", "--pk", "id") // a glob
	run(2, with("load", []string{addresses[0]}, "--endpoint", "http://id:geheim@h/", "--fresh", "--limit", "x")...)
	run(2, "load", addresses[0], "--endpoint", "http://id:geheim@h/?geheim", "--instance", "i", "-t", "t", "--pk", "id")
	noSecretBelow(t, dir)
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	p := newPlace(t, append(startServe(t).env(), "TABLESTORE_ACCESS_KEY_SECRET="+planted)...)
	p.write("in.csv", "id\n1\n")
	noSecretIn(t, "the output", p.ends(5, strings.Fields("load in.csv --table t --pk id --create --run-dir run")))
	noSecretBelow(t, p.dir)
}
