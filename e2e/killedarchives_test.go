//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var (
	archiveKills     = flag.Int("archive-kills", 1, "how many exports to an archive, and loads of one, TestKilledArchives kills at least")
	archiveMegabytes = flag.Int("archive-megabytes", 1, "how large its archive is beside rows of all kinds")
	archiveSeed      = flag.Uint64("archive-seed", 1, "the seed of its moments and faults")
)

// fillLarge adds rows that no compression makes smaller.
func (p *pairOf) fillLarge(name string, from, megabytes int) (rows int) {
	p.t.Helper()
	tb := p.a.table(name)
	random := rand.NewChaCha8([32]byte{7})
	for range megabytes {
		var changes []tablestore.RowChange
		for range 4 {
			value := make([]byte, 256<<10)
			_, _ = random.Read(value) // never fails
			changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", from%997), from), c("large", value)))
			from++
			rows++
		}
		tb.load(p.t, changes...)
	}
	return rows
}

// allPartsAreThere reports whether an export to a folder has nothing left to write but the manifest.
func allPartsAreThere(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, ".tsimport-archive.jsonl"))
	if err != nil {
		return false
	}
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	var subject struct{ Ranges []string }
	if json.Unmarshal(first, &subject) != nil || len(subject.Ranges) == 0 {
		return false
	}
	ended := map[int]bool{}
	for line := range bytes.Lines(rest) {
		var entry struct {
			Range int
			At    struct{ Ended bool }
		}
		if json.Unmarshal(line, &entry) == nil && entry.At.Ended { // the last line may be half of one
			ended[entry.Range] = true
		}
	}
	return len(ended) == len(subject.Ranges)
}

const beforeManifest = "between the last part and the manifest"

// exportMoment draws when an export to a folder is killed: at any time, when a part gets its name, when no part is missing any more, or when the
// manifest is written.
func exportMoment(dir string, rnd *rand.Rand) (name string, moment func() bool) {
	count := func(pattern string) int {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is a good one
		return len(found)
	}
	switch rnd.IntN(6) {
	case 0:
		return "manifest", func() bool { return count("manifest.json*") > 0 }
	case 1, 2:
		return beforeManifest, func() bool { return allPartsAreThere(dir) }
	case 3:
		at := time.Now().Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		return "any time", func() bool { return time.Now().After(at) }
	}
	parts := count("archive-*.zst") + rnd.IntN(3)
	return "part", func() bool { return count("archive-*.zst") > parts }
}

// TestKilledArchives kills exports to an archive and loads of it with SIGKILL, while both services refuse and lose requests and the tables
// split. A folder without its manifest is not taken for an archive, and the table that is restored is the one that was archived.
func TestKilledArchives(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(*archiveSeed, 23))
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	rows := int64(1500 + p.fillLarge("t", 1500, *archiveMegabytes))
	p.troubles(*archiveSeed, 0.1, 0.1)
	q := p.swapped()
	kept, exports, loads := filepath.Join(p.dir, "kept"), map[string]int{}, 0
	killed := func() (n int) {
		for _, of := range exports {
			n += of
		}
		return n
	}
	for killed() < *archiveKills || loads < *archiveKills {
		args := []string{"export", "--table", "t", "--format", "archive", "-o", "kept", "--concurrency", fmt.Sprint(1 + rnd.IntN(4))}
		for attempt, most := 0, 2+rnd.IntN(60); ; attempt++ {
			name, moment := exportMoment(kept, rnd)
			if attempt == most {
				moment = never
			}
			if p.attempt(moment, args...) {
				break
			}
			_, err := os.Stat(filepath.Join(kept, "manifest.json"))
			switch whole := err == nil; {
			case whole:
				name = "manifest"
			case allPartsAreThere(kept):
				name = beforeManifest
			case name == beforeManifest:
				name = "any time" // a part that was not noted
			}
			exports[name]++
			if err == nil {
				break // it was killed after its last step
			}
			if name == beforeManifest && rnd.IntN(3) > 0 {
				most = attempt + 1 // else all kills to come were of the same kind
			}
			if _, err := os.Stat(filepath.Join(kept, ".tsimport-archive.jsonl")); err == nil {
				if out := p.run(2, "verify", "kept", "--table", "t"); !strings.Contains(out, "the export to it is not finished") {
					t.Fatal(out)
				}
			}
		}
		p.run(0, "verify", "kept", "--table", "t", "--extra", "fail")

		must(t, os.RemoveAll(filepath.Join(p.dir, "tsimport-runs")))
		args = []string{"load", "kept", "--table", "t", "--create", "--settle", "500ms", "--concurrency", fmt.Sprint(1 + rnd.IntN(8))}
		for attempt, most := 0, 2+rnd.IntN(60); ; attempt++ {
			final := finalRows(p.dir) + rnd.Int64N(rows/8)
			moment := func() bool { return finalRows(p.dir) > final }
			if attempt == most {
				moment = never
			}
			given := args
			if attempt > 0 && rnd.IntN(2) == 0 && finalRows(p.dir) >= 0 {
				given = []string{"resume"}
			}
			if q.attempt(moment, given...) {
				break
			}
			loads++
		}
		t.Logf("so far %d exports were killed, and %d loads", killed(), loads)
		p.checkLedger(rows)
		q.run(0, "verify", "kept", "--table", "t", "--extra", "fail")
		if *archiveMegabytes <= 8 {
			p.troubles(*archiveSeed, 0, 0.1) // whoever reads here does not try again
			p.same(p.a, p.b, "t", "t")
			p.troubles(*archiveSeed, 0.1, 0.1)
		}
		q.run(0, "table", "drop", "t", "--yes")
		must(t, os.RemoveAll(kept))
	}
	t.Logf("%d exports were killed (%v), and %d loads", killed(), exports, loads)
}

var archiveStoreKills = flag.Int("archive-store-kills", 0, "how many exports to a store of objects TestKilledArchivesInAStore kills; each costs the time that a lease holds")

// TestKilledArchivesInAStore kills an export to a store that refuses requests and loses answers. What is there is not taken for an archive until it
// is whole.
func TestKilledArchivesInAStore(t *testing.T) {
	if *archiveStoreKills == 0 {
		t.Skip("give -archive-store-kills")
	}
	rnd := rand.New(rand.NewPCG(uint64(*archiveStoreKills), 29))
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	p.fillLarge("t", 1500, max(*archiveMegabytes, 100))
	objects := p.bucket(t, "bucket")
	unreliable(objects, 7)
	const kept = "s3://bucket/kept"
	count := func(what string) (n int) {
		for _, key := range objects.Keys() {
			if strings.Contains(key, what) {
				n++
			}
		}
		return n
	}
	moments := map[string]int{}
	for killed := 0; killed < *archiveStoreKills; {
		for whole := false; !whole && count("manifest") == 0; {
			what := []string{"/archive-", "/entry-", "/manifest"}[rnd.IntN(3)]
			before := count(what) + rnd.IntN(2)
			moment := func() bool { return count(what) > before }
			if killed == *archiveStoreKills {
				moment = never
			}
			if whole = p.attempt(moment, "export", "--table", "t", "-o", kept, "--concurrency", fmt.Sprint(1+rnd.IntN(4))); whole {
				break
			}
			moments[what]++
			killed++
			if count("/archive-") > 0 && count("manifest") == 0 {
				if out := p.run(2, "load", kept, "--table", "t"); !strings.Contains(out, "it has no manifest.json") {
					t.Fatal(out)
				}
			}
		}
		p.run(0, "verify", kept, "--table", "t", "--extra", "fail")
		for _, key := range objects.Keys() {
			if !strings.Contains(key, "/lease.") {
				objects.Remove(key)
			}
		}
	}
	t.Logf("exports killed after they had put: %v", moments)
}
