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
	must(t, err)
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
				p := newPlace(t)
				p.run(0, "load", server.URL+path, "--store", "store", "--table", "t", "--pk", "id")
				if got := p.output("export", "--store", "store", "--table", "t"); !slices.Equal(csvRecords(t, text), csvRecords(t, []byte(got))) {
					t.Errorf("%s: the table is not the file", path)
				}
			}
			newPlace(t).run(2, "load", server.URL+"/none.csv", "--store", "store", "--table", "t", "--pk", "id")
		})
	}
	if ranges.Load() < 2 {
		t.Errorf("%d requests for ranges", ranges.Load())
	}
}
