package e2e

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted is the secret of every shape below; whatever shows it, or a part of it, fails.
const planted = "hunter2hunter2"

// TestNoSecretOfAnInputIsKeptOrShown loads from addresses that hold a secret, each of another shape, in loads that succeed, reject
// and fail, and looks for the secret in all output and in every file of the run folder.
func TestNoSecretOfAnInputIsKeptOrShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone.csv" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write([]byte("id,n\na,1\nb,x,y\nc,3\n"))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	shapes := []string{
		"http://user:" + planted + "@" + host + "/a.csv", "http://" + planted + "@" + host + "/a.csv", "http://" + host + "/a.csv#" + planted,
		"http://" + host + "/a.csv;jsessionid=" + planted, "http://" + host + "/a.csv?" + planted, "http://" + host + "/a.csv?page=1;sid=" + planted,
	}
	for _, name := range []string{"Signature", "OSSAccessKeyId", "x-oss-security-token", "X-Amz-Credential", "sig", "st", "se", "pin", "pass", "passwd", "jwt", "hdnts",
		"token", "access_token", "api_key", "k", "ticket", "%53ig", "id", "hmac"} {
		shapes = append(shapes, "http://"+host+"/a.csv?page=1&"+name+"="+planted)
	}
	store := filepath.Join(t.TempDir(), "store")
	look := func(t *testing.T, what string, text []byte) {
		t.Helper()
		if i := bytes.Index(text, []byte(planted[:8])); i >= 0 {
			t.Errorf("%s shows the secret: …%s…", what, text[max(0, i-60):min(len(text), i+40)])
		}
	}
	// Many inputs in one load: each would cost a process.
	run := filepath.Join(t.TempDir(), "run")
	args := append(append([]string{"load"}, shapes...), "--store", store, "--table", "t", "--pk", "id", "--run-dir", run, "--json", "-v", "--max-errors", "-1")
	stdout, stderr, code := runBinary(t, args...)
	if code != 3 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	look(t, "stdout", []byte(stdout))
	look(t, "stderr", []byte(stderr))
	for _, args := range [][]string{
		{"load", shapes[7], strings.Replace(shapes[8], "a.csv", "gone.csv", 1), "--store", store, "--table", "t", "--pk", "id", "--run-dir", filepath.Join(run, "failed")},
		{"inspect", shapes[0], shapes[len(shapes)-1]},
		{"check", shapes[1], "--pk", "id"},
		{"load", "@" + shapes[2], "--store", store, "--table", "t", "--pk", "id", "--run-dir", filepath.Join(run, "list")},
		{"load", "s3://" + planted + ":" + planted + "@bucket/a.csv", "--store", store, "--table", "t", "--pk", "id", "--run-dir", filepath.Join(run, "scheme")},
		{"runs", "--run-dir", run},
		{"resume", run},
	} {
		stdout, stderr, _ := runBinary(t, args...)
		look(t, args[0]+" stdout", []byte(stdout))
		look(t, args[0]+" stderr", []byte(stderr))
	}
	files := 0
	err := filepath.WalkDir(run, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		look(t, filepath.Base(path), text)
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}
