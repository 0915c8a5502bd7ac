//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"example.com/tsimport/internal/objectstore/storetest"
)

// unreliable makes a store refuse one of every so many requests, and lose the answer to another.
func unreliable(objects *storetest.Server, every int) {
	objects.Change(func(s *storetest.Server) {
		s.Fault = func(number int, w http.ResponseWriter, r *http.Request) bool {
			if number%every == 1 {
				storetest.Refuse(w, r, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			}
			return number%every == 1
		}
		s.After = func(number int, _ *http.Request) {
			if number%every == 3 {
				panic(http.ErrAbortHandler)
			}
		}
	})
}

// TestAnArchiveIsWrittenToAStoreOfObjects and read from there, while the store refuses requests and loses answers. That damage is named is
// shown in reader/archivefile.
func TestAnArchiveIsWrittenToAStoreOfObjects(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	objects := p.bucket(t, "bucket")
	unreliable(objects, 4)
	const kept = "s3://bucket/backup/kept"
	for _, format := range []string{"csv", "jsonl"} {
		p.ends(2, []string{"export", "--table", "t", "--format", format, "-o", kept}, "only archives are written to oss:// and s3://")
	}
	p.run(0, "export", "--table", "t", "-o", kept, "--concurrency", "3")
	keys := objects.Keys()
	for _, key := range keys {
		if !strings.HasPrefix(key, "backup/kept/archive-0") && key != "backup/kept/manifest.json" && !strings.HasPrefix(key, "backup/kept/.tsimport-archive/lease.") {
			t.Errorf("%s is left", key)
		}
	}
	p.ends(2, []string{"export", "--table", "t", "-o", kept}, "holds a complete archive already")
	q := p.swapped()
	q.run(0, "load", kept, "--table", "t", "--create", "--verify")
	p.same(p.a, p.b, "t", "t")
	p.run(0, "sync", kept+"/", "--table", "t", "--plan")
	p.run(0, "export", "--table", "t", "-o", "local/")
	p.run(0, "verify", "local", "--archive", kept, "--extra", "fail")
	p.ends(2, []string{"verify", kept, "--archive", kept + "/manifest.json"}, "are the same archive")
	p.ends(2, []string{"check", kept}, "is an archive of a table")
}
