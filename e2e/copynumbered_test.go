//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// TestCopiesOfNumberedTablesThatAreKilled kills copies into tables that number their rows with SIGKILL, while both services refuse and lose
// requests and the tables split: while the source is archived, and while the archive is loaded.
func TestCopiesOfNumberedTablesThatAreKilled(t *testing.T) {
	t.Parallel()
	for round := range *copyRounds {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(round), 43))
			const rows = 1200
			p := newPairOf(t)
			p.fill("t", 0, rows)
			p.troubles(uint64(round), 0.3, 0.1)
			args := []string{"copy", "t", p.inB("r"), "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--returned-keys", "keys.csv", "--settle", "200ms", "--concurrency", fmt.Sprint(1 + rnd.IntN(8))}
			through, parts := filepath.Join(p.dir, "keys.csv.rows"), 0
			size := p.size
			whole := false
			for kills := 3 + rnd.IntN(4); kills > 0 && !whole; kills-- {
				manifest, keys := size("keys.csv.rows/manifest.json") >= 0, size("keys.csv")+int64(rnd.IntN(15_000))
				come := func() bool { return size("keys.csv") > keys }
				if !manifest && rnd.IntN(2) == 0 {
					journal := size("keys.csv.rows/.tsimport-archive.jsonl") + int64(rnd.IntN(2000))
					parts++
					come = func() bool {
						return size("keys.csv.rows/.tsimport-archive.jsonl") > journal || size("keys.csv.rows/manifest.json") >= 0
					}
				}
				given := args
				if keys > 0 && finalRows(p.dir) >= 0 && rnd.IntN(2) == 0 {
					given = []string{"resume"}
				}
				whole = p.attempt(come, given...)
				// It may be killed when all is done but its end, and then the same command would be another copy.
				whole = whole || size("keys.csv") > 0 && size("keys.csv.rows") < 0
			}
			if !whole {
				p.run(0, args...)
			}
			if r := p.summary(); r.State != "finished" || r.Written != rows || r.Rejected+r.Superseded+r.Unfinished != 0 {
				t.Errorf("%+v", r)
			}
			if _, err := os.Stat(through); !os.IsNotExist(err) {
				t.Errorf("the archive is left: %v", err)
			}
			p.troubles(0, 0, 0)
			p.renumbered(t, p.a, p.b, "t", "r", "keys.csv")
			q := p.swapped()
			q.run(0, "verify", q.inB("t"), "--table", "r", "--returned-keys", "keys.csv", "--extra", "fail")
			t.Logf("%d attempts were killed while the source was archived", parts)
		})
	}
}

// TestACopyThatIsKilledBeforeItsArchiveIsRemoved: the same command removes what is left, and copies nothing again.
func TestACopyThatIsKilledBeforeItsArchiveIsRemoved(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	args := []string{"copy", "t", p.inB("r"), "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--returned-keys", "keys.csv", "--settle", "200ms"}
	troubled(t, p.b, 1, 1, "BatchWriteRow", "refuse:OTSServerBusy")
	p.run(1, append(args, "--retry-for", "300ms")...)
	troubled(t, p.b, 1, 0, "BatchWriteRow", "refuse")
	rows, saved := filepath.Join(p.dir, "keys.csv.rows"), filepath.Join(p.dir, "saved")
	must(t, os.CopyFS(saved, os.DirFS(rows)))
	p.run(0, args...)

	must(t, os.CopyFS(rows, os.DirFS(saved)))
	parts, err := filepath.Glob(filepath.Join(rows, "*.zst"))
	must(t, err)
	must(t, os.Remove(parts[0])) // the removal had begun
	p.ends(0, args, "only the archive was left")
	if _, err := os.Stat(rows); !os.IsNotExist(err) {
		t.Errorf("the archive is left: %v", err)
	}
	p.renumbered(t, p.a, p.b, "t", "r", "keys.csv")

	// Nothing says that an archive that came later was loaded.
	must(t, os.CopyFS(rows, os.DirFS(saved)))
	manifest, err := os.ReadFile(filepath.Join(rows, "manifest.json"))
	must(t, err)
	runs, away := filepath.Join(p.dir, "tsimport-runs"), filepath.Join(p.dir, "runs-away")
	must(t, os.Rename(runs, away))
	p.ends(2, args, "keys.csv exists")
	if now, err := os.ReadFile(filepath.Join(rows, "manifest.json")); string(now) != string(manifest) {
		t.Errorf("the archive was changed: %v", err)
	}

	// A target that is gone has none of the rows.
	must(t, os.RemoveAll(runs))
	must(t, os.Rename(away, runs))
	target := p.b.client()
	_, err = target.DeleteTable(&tablestore.DeleteTableRequest{TableName: "r"})
	must(t, err)
	p.ends(2, args, "keys.csv exists")
}

// TestACopyIsNumberedAsItsSourceWas: the source changes after it was archived, and its keys are compared one by one.
func TestACopyIsNumberedAsItsSourceWas(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 600)
	before := dump(t, p.a, "t")
	copying := []string{"copy", "t", p.inB("r"), "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--returned-keys", "keys.csv", "--settle", "200ms"}
	for _, tt := range []struct{ args, says string }{
		{"--since 2020-01-01T00:00:00Z --returned-keys k.csv", "a row that is copied again would be another row"},
		{"--when stored.n<new.n --returned-keys k.csv", "is always new"},
		{"", "give --returned-keys FILE"},
	} {
		if said := p.run(2, append([]string{"copy", "t", p.inB("r"), "-q", "--create", "--pk", "pk1:string", "--pk", "pk2:auto"}, strings.Fields(tt.args)...)...); !strings.Contains(said, tt.says) {
			t.Errorf("%s: %s", tt.args, said)
		}
	}
	p.ends(2, []string{"copy", "t", p.inB("plain"), "--create", "--through", "x"}, "leave it out")
	p.run(0, append(copying, "--dry-run")...)
	if _, err := os.Stat(filepath.Join(p.dir, "keys.csv.rows")); !os.IsNotExist(err) {
		t.Errorf("a dry run has left an archive: %v", err)
	}

	// The first attempt ends after it has archived the source; then rows change, go and come.
	troubled(t, p.b, 1, 1, "BatchWriteRow", "refuse:OTSServerBusy")
	p.run(1, append(copying, "--retry-for", "300ms", "--through", "kept")...)
	troubled(t, p.b, 1, 0, "BatchWriteRow", "refuse")
	p.ends(2, append(copying, "--through", "kept", "--fresh"), "give another ")
	p.fill("t", 300, 320)
	p.fill("t", 600, 630)
	tb := p.a.table("t")
	for i := range 10 {
		tb.load(t, tb.delete(tb.key(fmt.Sprint("key ", i), i)))
	}
	p.ends(2, append(copying, "--through", "kept", "--columns", "n"), "differs in --columns")
	p.run(0, append(copying, "--through", "kept")...)
	p.renumberedFrom(t, before, p.b, "r", "keys.csv")
	q := p.swapped()
	q.run(0, "verify", "kept", "--table", "r", "--returned-keys", "keys.csv", "--extra", "fail")
	said := q.run(6, "verify", q.inB("t"), "--table", "r", "--returned-keys", "keys.csv", "--examples", "0")
	if !strings.Contains(said, "571 equal, 0 missing, 19 different, 10 surplus") || !strings.Contains(said, "30 without a returned key") {
		t.Error(said)
	}
	p.ends(2, append(copying, "--through", "kept"), "keys.csv exists")

	// Marks of an earlier load are cells like any: they need another column, or are left out.
	args := []string{"copy", p.inB("r"), p.inB("again"), "--create", "--returned-keys", "again.csv"}
	p.ends(2, args, "--mark-column NAME")
	if _, err := os.Stat(filepath.Join(p.dir, "again.csv.rows")); !os.IsNotExist(err) {
		t.Errorf("what is refused was archived: %v", err)
	}
	p.run(0, append(args, "--exclude", "_tsimport", "--verify")...)
}

func TestACopyIsNumberedThroughAStoreOfObjects(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	objects := p.bucket(t, "bucket")
	args := []string{"copy", "t", p.inB("r"), "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--returned-keys", "keys.csv", "--through", "s3://bucket/kept.rows", "--settle", "200ms"}
	troubled(t, p.b, 1, 1, "BatchWriteRow", "refuse:OTSServerBusy")
	p.run(1, append(args, "--retry-for", "300ms")...)
	troubled(t, p.b, 1, 0, "BatchWriteRow", "refuse")
	said := p.run(0, append(args, "--verify")...)
	if !strings.Contains(said, "the rows are in s3://bucket/kept.rows already") || !strings.Contains(said, "300 equal") {
		t.Error(said)
	}
	p.renumbered(t, p.a, p.b, "t", "r", "keys.csv")
	if _, there := objects.Content("kept.rows/manifest.json"); !there {
		t.Errorf("the archive is gone: %v", objects.Keys())
	}
	p.ends(2, append(args, "--fresh"), "keys.csv exists")

	// To start over is refused before anything is removed that resuming needs.
	args = []string{"copy", "t", p.inB("s"), "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--returned-keys", "s.csv", "--settle", "200ms"}
	p.attempt(func() bool {
		info, err := os.Stat(filepath.Join(p.dir, "s.csv"))
		return err == nil && info.Size() > 200
	}, append(args, "--max-rows-per-second", "100")...)
	p.ends(2, append(args, "--fresh"), "s.csv exists")
	p.run(0, args...)
	p.renumbered(t, p.a, p.b, "t", "s", "s.csv")
}
