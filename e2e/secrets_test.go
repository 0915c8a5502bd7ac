//go:build e2e

package e2e

import (
	"bytes"
	"example.com/tsimport/internal/conformance"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// planted begins every secret of the tests here.
const planted = "geheim"

// secretAddresses are addresses of a server, each with another kind of secret; reader/input tests every form.
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

// secretSite serves N.csv with the one row N,x under any address, /bad.csv with a bad row, and /list of the addresses.
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

func TestSecretsOfAddressesAreShownAndKeptNowhere(t *testing.T) {
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

	// A load that stops, its possible outputs, and its end.
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

func TestSecretsStayOutOfEverythingShown(t *testing.T) {
	t.Parallel()
	p := newPlace(t, append(startServe(t).env(), "TABLESTORE_ACCESS_KEY_SECRET="+planted)...)
	p.write("in.csv", "id\n1\n")
	noSecretIn(t, "the output", p.ends(5, strings.Fields("load in.csv --table t --pk id --create --run-dir run")))
	noSecretBelow(t, p.dir)
}
