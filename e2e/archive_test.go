//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
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

// TestAnArchiveOfNoRowsMakesItsTable: what the table was is in the manifest.
func TestAnArchiveOfNoRowsMakesItsTable(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 0)
	p.run(0, "export", "--table", "t", "-o", "kept/")
	q := p.swapped()
	q.run(0, "load", "kept", "--table", "t", "--create")
	q.ends(0, []string{"table", "describe", "t"}, "pk2 (integer)", "t_by_city")
	q.run(0, "verify", "kept", "--table", "t", "--extra", "fail")
	q.run(0, "load", "kept", "--table", "h", "--create", "--pk", "h:string=md5(pk1, 4)", "--pk", "pk2", "--indexes", "none")
}

// TestAnArchiveIsWrittenToAStoreOfObjects and read from there, while the store refuses requests and loses answers.
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

	part := keys[slices.IndexFunc(keys, func(key string) bool { return strings.HasSuffix(key, ".zst") })]
	content, _ := objects.Content(part)
	manifest, _ := objects.Content("backup/kept/manifest.json")
	flipped := []byte(content)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct{ part, manifest, want string }{
		{content[:len(content)-1], manifest, "the manifest says"},
		{string(flipped), manifest, "its sha256 is not that of the manifest"},
		{"", manifest, "this part of the archive is missing"},
		{content, strings.Replace(manifest, `"rows": 1500`, `"rows": 1501`, 1), "its sha256 is not that of its text"},
		{content, strings.Replace(manifest, `"version": 1`, `"version": 2`, 1), "take a newer tsimport"},
		{content, "", "it has no manifest.json"},
	} {
		for key, text := range map[string]string{part: c.part, "backup/kept/manifest.json": c.manifest} {
			if objects.Remove(key); text != "" {
				objects.Set(key, text, time.Now())
			}
		}
		for _, command := range []string{"load", "verify", "sync"} {
			if out := p.run(2, command, kept, "--table", "t"); !strings.Contains(out, c.want) {
				t.Errorf("%s: %s, want %s", command, out, c.want)
			}
		}
	}
}
