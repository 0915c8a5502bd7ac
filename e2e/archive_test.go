//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/objectstore/storetest"
)

// TestAnArchiveRestoresItsTable exports a table and loads it into another service.
func TestAnArchiveRestoresItsTable(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	to := func(args ...string) []string {
		return append(args, "--endpoint", p.b.URL, "--instance", p.b.Instance)
	}
	out := p.run(0, "export", "--table", "t", "--format", "archive", "-o", "kept")
	if !strings.Contains(out, "archived 1,500 rows") {
		t.Error(out)
	}
	if out := p.run(2, "export", "--table", "t", "-o", "kept"); !strings.Contains(out, "holds a complete archive already") {
		t.Error(out)
	}
	load := to("load", "kept", "--table", "t", "--create", "--verify")
	cmd := p.command(load...)
	cmd.Env = append(cmd.Env, "TABLESTORE_ACCESS_KEY_ID="+p.b.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET="+p.b.AccessKeySecret)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.same(p.a, p.b, "t", "t")
	sdk := newClient(p.b.URL, p.b.Instance, p.b.AccessKeyID, p.b.AccessKeySecret)
	described, err := sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	must(t, err)
	if o, d := described.TableOption, described.TableMeta.DefinedColumns; o.MaxVersion != 4 || o.TimeToAlive != -1 || len(d) != 1 || d[0].Name != "n" {
		t.Errorf("the new table has %+v and %+v", o, d)
	}

	p.run(0, "verify", "kept", "--table", "t")
	p.fill("t", 1500, 1501)
	if out := p.run(6, "verify", "kept", "--table", "t", "--extra", "fail"); !strings.Contains(out, "1 surplus") {
		t.Error(out)
	}
	parts, err := filepath.Glob(filepath.Join(p.dir, "kept", "*.zst"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	p.run(0, "export", "--table", "t", "-o", "whole/")
	must(t, os.Truncate(parts[0], 100))
	if out := p.run(2, "verify", "whole", "--archive", "kept"); !strings.Contains(out, "this part of the archive was changed or damaged: it has 100 bytes") {
		t.Error(out)
	}
	for _, command := range []string{"load", "verify"} {
		if out := p.run(2, command, "kept", "--table", "t"); !strings.Contains(out, "this part of the archive was changed or damaged: it has 100 bytes") {
			t.Error(out)
		}
	}
	must(t, os.Remove(filepath.Join(p.dir, "kept", "manifest.json")))
	if out := p.run(2, "load", "kept", "--table", "t"); !strings.Contains(out, "it has no manifest.json") {
		t.Error(out)
	}
}

// TestAnArchiveOfATableThatIsReplacedIsNotContinued drops a table while it is archived, and makes it again.
func TestAnArchiveOfATableThatIsReplacedIsNotContinued(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	p.fillLarge("t", 1500, 3)
	export := []string{"export", "--table", "t", "-o", "kept/", "--concurrency", "1"}
	journal := filepath.Join(p.dir, "kept", ".tsimport-archive.jsonl")
	if p.attempt(untilThen(func() bool { _, err := os.Stat(journal); return err == nil }), export...) {
		t.Skip("the export ended before it could be killed")
	}
	p.run(0, "table", "drop", "t", "--yes")
	p.run(2, export...)
	p.fill("t", 0, 10)
	if out := p.run(2, export...); !strings.Contains(out, "dropped and made again") || strings.Contains(out, "rows are kept") {
		t.Error(out)
	}
	if out := p.run(2, "load", "kept", "--table", "new", "--create"); !strings.Contains(out, "is not finished") {
		t.Error(out)
	}
	p.run(0, append(export, "--fresh")...)
	p.run(0, "verify", "kept", "--table", "t", "--extra", "fail")
}

// TestWhatATargetCannotKeepOfAnArchiveIsRefused loads cells into tables that do not take them.
func TestWhatATargetCannotKeepOfAnArchiveIsRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.run(0, "table", "create", "old", "--pk", "pk1:string", "--max-versions", "3", "--max-deviation", "1000000000")
	s := p.a
	tb := &table{service: &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}, name: "old"}
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("pk1", "a")
	tb.load(t, tb.put(key, c("now", 1), v("then", int64(1), 1_600_000_000_000), v("then", int64(2), 1_600_000_000_001), v("then", int64(3), 1_600_000_000_002)))
	p.run(0, "export", "--table", "old", "-o", "kept/")
	p.run(0, "table", "create", "young", "--pk", "pk1:string", "--max-versions", "3")
	for _, check := range []struct{ target, want string }{
		{"young", "does not take cells of before"}, {"few", "and table few keeps 1"}, {"other", "has another primary key"}, {"numbered", "give --returned-keys FILE"},
	} {
		switch check.target {
		case "few":
			p.run(0, "table", "create", "few", "--pk", "pk1:string", "--max-deviation", "1000000000")
		case "other":
			p.run(0, "table", "create", "other", "--pk", "pk1:integer", "--max-versions", "3", "--max-deviation", "1000000000")
		case "numbered":
			p.run(0, "table", "create", "numbered", "--pk", "pk1:string", "--pk", "n:auto", "--max-versions", "3", "--max-deviation", "1000000000")
		}
		if out := p.run(2, "load", "kept", "--table", check.target); !strings.Contains(out, check.want) {
			t.Errorf("%s: %s", check.target, out)
		}
		if rows := dump(t, p.a, check.target); len(rows) != 0 {
			t.Errorf("%s has rows: %v", check.target, rows)
		}
	}
	p.run(0, "load", "kept", "--table", "young", "--drop-expired", "--verify")
	if r := p.summary(); r.Expired_cells != 3 || r.Written != 1 {
		t.Errorf("%+v", r)
	}
	p.run(0, "load", "kept", "--table", "as_it_was", "--create", "--verify")
	p.same(p.a, p.a, "old", "as_it_was")
}

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

// TestAnArchiveIsWrittenToAStoreOfObjects and read from there, while the store refuses requests and loses answers.
// TestAnArchiveOfNoRowsMakesItsTable: what the table was is in the manifest.
func TestAnArchiveOfNoRowsMakesItsTable(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 0)
	p.run(0, "export", "--table", "t", "-o", "kept/")
	q := p.swapped()
	q.run(0, "load", "kept", "--table", "t", "--create")
	if said := q.run(0, "table", "describe", "t"); !strings.Contains(said, "pk2 (integer)") || !strings.Contains(said, "t_by_city") {
		t.Error(said)
	}
	q.run(0, "verify", "kept", "--table", "t", "--extra", "fail")
	q.run(0, "load", "kept", "--table", "h", "--create", "--pk", "h:string=md5(pk1, 4)", "--pk", "pk2", "--indexes", "none")
}

func TestAnArchiveIsWrittenToAStoreOfObjects(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	around := &surroundings{T: t}
	objects := storetest.New(around, "bucket")
	p.env = around.env
	unreliable(objects, 4)
	const kept = "s3://bucket/backup/kept"
	for _, format := range []string{"csv", "jsonl"} {
		if out := p.run(2, "export", "--table", "t", "--format", format, "-o", kept); !strings.Contains(out, "only archives are written to oss:// and s3://") {
			t.Error(out)
		}
	}
	p.run(0, "export", "--table", "t", "-o", kept, "--concurrency", "3")
	keys := objects.Keys()
	for _, key := range keys {
		if !strings.HasPrefix(key, "backup/kept/archive-0") && key != "backup/kept/manifest.json" && !strings.HasPrefix(key, "backup/kept/.tsimport-archive/lease.") {
			t.Errorf("%s is left", key)
		}
	}
	if out := p.run(2, "export", "--table", "t", "-o", kept); !strings.Contains(out, "holds a complete archive already") {
		t.Error(out)
	}
	q := p.swapped()
	q.run(0, "load", kept, "--table", "t", "--create", "--verify")
	p.same(p.a, p.b, "t", "t")
	p.run(0, "sync", kept+"/", "--table", "t", "--plan")
	p.run(0, "export", "--table", "t", "-o", "local/")
	p.run(0, "verify", "local", "--archive", kept, "--extra", "fail")
	if out := p.run(2, "verify", kept, "--archive", kept+"/manifest.json"); !strings.Contains(out, "are the same archive") {
		t.Error(out)
	}
	if out := p.run(2, "check", kept); !strings.Contains(out, "is an archive of a table") {
		t.Error(out)
	}

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
