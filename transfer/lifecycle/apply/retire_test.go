package apply

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	exact "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/transfer/lifecycle/archive"
)

// contents lists the exports of the archive by name, with their numbers of rows and their tables.
func (w *world) contents() string {
	w.t.Helper()
	store := conformance.Try(jobdir.Open(w.t.Context(), w.dir, jobdir.Options{})).Must(w.t)
	names := conformance.Try(store.List(w.t.Context(), "")).Must(w.t)
	var all []string
	for _, name := range names {
		file, manifest := strings.CutSuffix(name, "/"+exact.ManifestName)
		if !manifest {
			continue
		}
		m, err := exact.ReadFrom(w.t.Context(), exact.FilesIn(w.t.Context(), jobdir.Below(store, file)))
		if err == nil {
			err = m.Check(w.t.Context())
		}
		conformance.MustTrue(w.t, err == nil && len(m.Parts) == 1, "%v %v", err, m)
		lines := w.linesOf(m.Open(w.t.Context(), &m.Parts[0]))
		for i, l := range lines {
			want := fmt.Sprintf(
				`{"Wide":true,"PK":{"Values":[{"C":"id","V":%d,"IsInt":true}]},"Attr":{"Values":[{"C":"v","V":"%s %d","TS":`, i,
				m.Table, i)
			conformance.True(w.t, strings.HasPrefix(l, want), "%s, line %d: %s", name, i+1, l)
		}
		all = append(all, fmt.Sprintf("%s %d", file, len(lines)))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (w *world) lines(part string) []string {
	w.t.Helper()
	f, err := os.Open(part)
	return w.linesOf(f, err)
}

func (w *world) linesOf(f io.ReadCloser, err error) []string {
	w.t.Helper()
	must(w.t, err)
	defer f.Close()
	d := conformance.Try(zstd.NewReader(f)).Must(w.t)
	defer d.Close()
	return strings.Split(strings.TrimSuffix(string(conformance.Try(io.ReadAll(d)).Must(w.t)), "\n"), "\n")
}

func (w *world) manifest(month string) *archive.Manifest {
	w.t.Helper()
	m, err := w.place().Latest(w.t.Context(), "here", "c_"+month)
	conformance.MustTrue(w.t, err == nil && m != nil, "manifest of %s: %v, %v", month, m, err)
	return m
}

// expired returns a world in which two months have expired and one has not.
func expired(t *testing.T) *world { return expiredIn(t, filepath.Join(t.TempDir(), "archive")) }

func expiredIn(t *testing.T, dir string) *world {
	w := newWorldIn(t, dir, "202408", server.Options{})
	for i, month := range []string{"202401", "202402", "202408"} {
		w.create(month, 2+i, table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedWrite: 50})
	}
	return w
}

const exported = "c_202401 2, c_202402 3"

func TestExpiredTablesAreOnlyExportedWithoutTheFlag(t *testing.T) {
	w := expired(t)
	before := w.tables()
	p := w.mustRun()
	conformance.Equal(t, w.contents(), exported, "archive")
	conformance.True(t, w.tables() == before && w.count("DeleteTable") == 0, "tables %s", w.tables())
	for _, i := range p.Items[:2] {
		m := i.Export
		conformance.True(t, i.State == Done && !i.Dropped && m != nil && m.State == archive.Verified &&
			p.File(i) == filepath.Join(w.dir, m.File), "%+v", i)
	}
	conformance.True(t, p.Items[2].State == Unchanged && p.File(p.Items[2]) == "", "%+v", p.Items[2])
	w.requests = nil
	w.mustRun()
	conformance.Equal(t, w.count("GetRange"), 0, "a complete export is made again")
}

func TestExpiredTablesAreDroppedAfterTheirExportIsCompared(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		w := expired(t)
		if earlier {
			w.mustRun()
		}
		w.request.DropExpired = true
		w.requests = nil
		p := w.mustRun()
		conformance.Equal(t, w.contents(), exported, "archive")
		conformance.Equal(t, w.tables(), "c_202408 0/50 -1 1", "tables")
		for _, i := range p.Items[:2] {
			conformance.True(t, i.State == Done && i.Dropped && w.manifest(i.Period.String()).State == archive.Dropped, "%+v", i)
		}
		scans := map[bool]string{false: "GetRange GetRange DeleteTable", true: "GetRange DeleteTable"}[earlier]
		only := slices.DeleteFunc(slices.Clone(w.requests),
			func(r string) bool { return r != "GetRange" && r != "DeleteTable" })
		conformance.Equal(t, strings.Join(only, " "), strings.Join([]string{scans, scans}, " "), "exported %v", earlier)
		p = w.mustRun()
		conformance.Equal(t, len(p.Items), 1, "%s", outline(p))
	}
}

func TestTableWrittenSinceItsExportIsExportedAgain(t *testing.T) {
	w := expired(t)
	w.mustRun()
	w.put("c_202402", 3)
	w.request.DropExpired = true
	w.mustRun()
	conformance.Equal(t, w.contents(), "c_202401 2, c_202402 3, c_202402-2 4", "archive")
	got := w.tables()
	conformance.True(t, got == "c_202408 0/50 -1 1" && w.heard("changed since its export"), "tables %s", got)
}

func TestTableWithADamagedExportIsNotDropped(t *testing.T) {
	w := expired(t)
	w.mustRun()
	const part = "archive-00001-00001.jsonl.zst"
	b := conformance.Try(os.ReadFile(filepath.Join(w.dir, "c_202401", part))).Must(t)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(filepath.Join(w.dir, "c_202401", part), b, 0o600))
	w.request.DropExpired = true
	w.mustRun()
	again := w.lines(filepath.Join(w.dir, "c_202401-2", part))
	conformance.True(t, len(again) == 2 && w.heard("is damaged"), "%q", again)
}

func TestTableThatKeepsChangingIsNotDropped(t *testing.T) {
	w := expired(t)
	w.request.DropExpired = true
	next := int64(100)
	w.before = func(operation string) error {
		if operation == "GetRange" {
			w.put("c_202401", next)
			next++
		}
		return nil
	}
	p := w.mustRun()
	changed := new(archive.ChangedError)
	i := p.Items[0]
	conformance.True(t, i.State == Failed && errors.As(i.Err, &changed) && !i.Dropped, "%s, %v", i.State, i.Err)
	conformance.Equal(t, w.tables(), "c_202401 0/50 -1 1, c_202408 0/50 -1 1", "tables")
}

// TestEveryVersionIsExportedBeforeATableIsDropped exports a cell with two versions and a binary cell.
func TestEveryVersionIsExportedBeforeATableIsDropped(t *testing.T) {
	w := expired(t)
	must(t, w.own.SetOptions("c_202402", -1, 5))
	first := w.clock
	w.clock = w.clock.Add(time.Second)
	must(t, tabletest.Do(w.own.Client, tabletest.Update("c_202402", tabletest.Key("id", int64(0)),
		tabletest.Cells{"v": []byte{0, 255}})))
	w.request.DropExpired = true
	w.mustRun()
	conformance.Equal(t, w.tables(), "c_202408 0/50 -1 1", "tables")
	want :=
		fmt.Sprintf(`{"Wide":true,"PK":{"Values":[{"C":"id","V":0,"IsInt":true}]},"Attr":{"Values":[{"C":"v","V":"AP8=","T":"binary","TS":%d},{"C":"v","V":"c_202402 0","TS":%d}]}}`, w.clock.UnixMilli(), first.UnixMilli())
	got := w.lines(filepath.Join(w.dir, "c_202402", "archive-00001-00001.jsonl.zst"))
	conformance.True(t, got[0] == want, "%s, want %s", got[0], want)
}

func TestFailedDropLeavesTheExportUnchanged(t *testing.T) {
	w := expired(t)
	w.request.DropExpired = true
	refused := errors.New("no such right")
	w.before = func(operation string) error {
		if operation == "DeleteTable" {
			return refused
		}
		return nil
	}
	for _, i := range w.mustRun().Items[:2] {
		conformance.True(t, i.State == Failed && errors.Is(i.Err, refused) && !i.Dropped,
			"%s: %s, %v", i.Have.Name, i.State, i.Err)
	}
	w.request.DropExpired = false
	w.mustRun()
	got := w.contents()
	conformance.True(t, got == exported && w.manifest("202401").State == archive.Verified, "archive: %s", got)
	got = outline(w.look())
	conformance.True(t, !strings.Contains(got, "planned"), "%s", got)
	w.before, w.request.DropExpired = nil, true
	w.mustRun()
	got = w.tables()
	conformance.True(t, got == "c_202408 0/50 -1 1" && w.contents() == exported, "%s, %s", got, w.contents())
}

func TestRecreatedTableGetsItsOwnExport(t *testing.T) {
	w := expired(t)
	w.request.DropExpired = true
	w.mustRun()
	w.create("202401", 6, asMade)
	w.request.DropExpired = false
	got := outline(w.look())
	conformance.True(t, strings.HasPrefix(got, "c_202401 age 7 class 3 planned export;"), "%s", got)
	w.mustRun()
	conformance.Equal(t, w.contents(), strings.Replace(exported, ", ", ", c_202401-2 6, ", 1), "archive")
}

// TestTableReplacedDuringRetirementIsKept replaces the table with an equal one before each request in turn.
func TestTableReplacedDuringRetirementIsKept(t *testing.T) {
	for _, at := range []struct {
		operation string
		n         int
	}{{"GetRange", 1}, {"GetRange", 2}, {"DescribeTable", 3}, {"DescribeTable", 4}} {
		w := newWorld(t, "202408", server.Options{})
		w.create("202401", 3, asMade)
		w.request.DropExpired = true
		seen, replaced := 0, false
		w.before = func(operation string) error {
			if operation == at.operation {
				seen++
			}
			if seen == at.n && !replaced {
				replaced = true
				conformance.Equal(t, w.own.Drop("c_202401"), nil, "Drop")
				w.create("202401", 3, asMade)
			}
			return nil
		}
		p, err := w.run()
		why := new(client.ReplacedError)
		conformance.True(t, err == nil && p.Items[0].State == Failed && !p.Items[0].Dropped &&
			errors.As(p.Items[0].Err, &why) && w.count("DeleteTable") == 0, "%v: %v, %+v", at, err, p.Items[0])
	}
}

func TestUnwritableArchiveFailsItsTable(t *testing.T) {
	w := expired(t)
	w.request.DropExpired = true
	p := w.look()
	must(t, os.WriteFile(w.dir, nil, 0o600))
	must(t, p.Run(t.Context(), w.pace))
	for _, i := range p.Items[:2] {
		conformance.True(t, i.State == Failed && !i.Dropped, "%+v", i)
	}
	conformance.Equal(t, w.count("DeleteTable"), 0, "a table was dropped")
}

func TestLongExportReportsProgress(t *testing.T) {
	w := newWorld(t, "202408", server.Options{})
	w.create("202401", 4100, asMade)
	clock := w.pace.Clock.Now
	w.pace.Clock.Now = func() time.Time { w.clock = w.clock.Add(6 * time.Second); return clock() }
	w.mustRun()
	conformance.True(t, w.heard("table c_202401: 4100 rows read so far"), "said %q", w.said)
}

// TestInterruptedRunIsFinishedByTheNext stops a run at each request, before or after the service has seen it.
func TestInterruptedRunIsFinishedByTheNext(t *testing.T) {
	storetest.New(t, "bucket")
	for _, applied := range []bool{false, true} {
		at := 1
		for ; cutShort(t, applied, (at%2 == 0) == applied, at); at++ {
		}
		conformance.True(t, at >= 10, "a run has only %d requests", at)
	}
}

// cutShort ends a run at request number at, and reports whether the run sent that many.
func cutShort(t *testing.T, applied, remote bool, at int) bool {
	dir := filepath.Join(t.TempDir(), "archive")
	if remote {
		dir = fmt.Sprintf("s3://bucket/%v-%d", applied, at)
	}
	w := expiredIn(t, dir)
	must(t, w.own.SetOptions("c_202408", 86400, 1))
	must(t, w.own.Reserve("c_202408", 7, 7))
	w.request.DropExpired = true
	cut := func(string) error {
		if len(w.requests) == at {
			w.stop(errKilled)
			return &net.OpError{Op: "read", Err: errKilled}
		}
		return nil
	}
	if applied {
		w.lost = cut
	} else {
		w.before = cut
	}
	_, err := w.run()
	if err == nil {
		return false
	}
	conformance.MustEqual(t, errors.Is(err, errKilled), true, "%s, request %d, applied %v: %v", dir, at, applied, err)
	w.before, w.lost = nil, nil
	for _, i := range w.mustRun().Items {
		conformance.True(t, i.State == Done || i.State == Unchanged,
			"%s, request %d, applied %v: %s is %s, %v", dir, at, applied, i.Have.Name, i.State, i.Err)
	}
	conformance.Equal(t, w.contents(), exported, "%s, request %d, applied %v: archive", dir, at, applied)
	conformance.Equal(t, w.tables(), "c_202408 0/50 -1 1", "%s, request %d, applied %v: tables", dir, at, applied)
	return true
}

// TestTableIsKeptUntilItsArchiveIsStored uses a store that refuses the nth write and all later ones, for every n.
func TestTableIsKeptUntilItsArchiveIsStored(t *testing.T) {
	for kept := 0; ; kept++ {
		s := storetest.New(t, "bucket")
		w := expiredIn(t, "s3://bucket/old")
		w.request.DropExpired = true
		puts := 0
		s.Fault = func(_ int, rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || strings.Contains(r.URL.Path, "lease.") || strings.Contains(r.URL.Path, "probe") {
				return false
			}
			if puts++; puts > kept {
				storetest.Refuse(rw, r, http.StatusForbidden, "AccessDenied", "No.")
				return true
			}
			return false
		}
		p := w.mustRun()
		whole := true
		for _, i := range p.Items[:2] {
			whole = whole && i.Dropped
			conformance.True(t, i.Dropped != (i.State == Failed) &&
				(!i.Dropped || w.manifest(i.Period.String()).State == archive.Dropped), "after %d puts: %+v", kept, i)
		}
		s.Change(func(s *storetest.Server) { s.Fault = nil })
		w.mustRun()
		conformance.Equal(t, w.contents(), exported, "after %d puts: archive", kept)
		conformance.Equal(t, w.tables(), "c_202408 0/50 -1 1", "after %d puts: tables", kept)
		if whole {
			conformance.True(t, kept >= 10, "two exports have only %d puts", kept)
			return
		}
	}
}

func TestUnreachableArchiveStoreFailsTheLook(t *testing.T) {
	s := storetest.New(t, "bucket")
	w := expiredIn(t, "s3://bucket/old")
	w.mustRun()
	s.Fault = func(_ int, rw http.ResponseWriter, r *http.Request) bool {
		storetest.Refuse(rw, r, http.StatusForbidden, "AccessDenied", "No.")
		return true
	}
	conformance.Refused(t, conformance.ErrorOf(Look(t.Context(), w.requestOf(t.Context()))), "", "a look without exports")
}

// dropping is like expired, with a policy that drops expired tables without an export.
func dropping(t *testing.T) *world {
	w := expired(t)
	w.request.Policy.Classes[2].Archive, w.request.Policy.Classes[2].Drop = "", true
	return w
}

func TestDropClassTablesAreKeptWithoutTheFlag(t *testing.T) {
	w := dropping(t)
	before := w.tables()
	for _, i := range w.mustRun().Items[:2] {
		conformance.True(t, i.State == Unchanged && !i.Drop && !i.Exports() &&
			strings.Contains(i.Note, "--drop-expired drops it without an archive"), "%+v", i)
	}
	conformance.Equal(t, w.tables(), before, "tables")
}

func TestDropClassTablesAreDroppedUnread(t *testing.T) {
	w := dropping(t)
	w.request.DropExpired = true
	if got := outline(w.look()); !strings.HasPrefix(got,
		"c_202401 age 7 class 3 planned drop; c_202402 age 6 class 3 planned drop;") {
		t.Error(got)
	}
	for _, i := range w.mustRun().Items[:2] {
		conformance.True(t, i.State == Done && i.Dropped && i.Export == nil, "%+v", i)
	}
	conformance.Equal(t, w.tables(), "c_202408 0/50 -1 1", "tables")
	_, err := os.Stat(w.dir)
	conformance.True(t, err != nil && w.count("GetRange") == 0 && w.heard("c_202401: dropped without an archive"),
		"said %q", w.said)
}

func TestTableReplacedBeforeAnUnreadDropIsKept(t *testing.T) {
	w := dropping(t)
	w.request.DropExpired = true
	p := w.look()
	must(t, w.own.Drop("c_202401"))
	w.create("202401", 3, asMade)
	must(t, p.Run(t.Context(), w.pace))
	i := p.Items[0]
	conformance.True(t, i.State == Failed && !i.Dropped && errors.As(i.Err, new(*client.ReplacedError)) &&
		p.Items[1].Dropped, "%+v", i)
}
