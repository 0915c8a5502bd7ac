//go:build e2e

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

// TestFilesAreReadOverHTTP loads a file from a server that serves ranges and from one that does not.
func TestFilesAreReadOverHTTP(t *testing.T) {
	t.Parallel()
	const folder = "../reader/testdata/real"
	text, err := os.ReadFile(filepath.Join(folder, "kylo/csv/userdata1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var ranges atomic.Int64
	files := http.FileServer(http.Dir(folder))
	for name, handler := range map[string]http.HandlerFunc{
		"with ranges": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				ranges.Add(1)
			}
			files.ServeHTTP(w, r)
		},
		"without ranges": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			files.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			for _, path := range []string{"/kylo/csv/userdata1.csv", "/compressed-cli/userdata1.multistream.csv.bz2"} {
				dir := t.TempDir()
				if _, stderr, code := runBinary(t, "load", server.URL+path, "--store", dir+"/store", "--table", "t", "--pk", "id", "--run-dir", dir+"/run"); code != 0 {
					t.Fatalf("load %s: exit code %d, %s", path, code, stderr)
				}
				stdout, stderr, code := runBinary(t, "export", "--store", dir+"/store", "--table", "t")
				if code != 0 || !slices.Equal(csvRecords(t, text), csvRecords(t, []byte(stdout))) {
					t.Errorf("%s: export: exit code %d, the table is not the file; %s", path, code, stderr)
				}
			}
			if _, stderr, code := runBinary(t, "load", server.URL+"/none.csv", "--store", t.TempDir()+"/s", "--table", "t", "--pk", "id"); code != 2 {
				t.Errorf("a file that is not there: exit code %d, %s", code, stderr)
			}
		})
	}
	if ranges.Load() < 2 {
		t.Errorf("%d requests for ranges", ranges.Load())
	}
}
