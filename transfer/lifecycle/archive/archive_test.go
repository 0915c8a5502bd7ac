package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
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
	"example.com/tsimport/reader/tablescan"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var must = conformance.Must

// kept is a table t in an engine. It counts scans, each of which reads one page.
type kept struct {
	t *testing.T
	*tabletest.Store
	readings int
	before   func(reading int) error // called before each scan, which fails with its error
}

func of(t *testing.T, rows int) *kept {
	t.Helper()
	k := &kept{t: t, Store: tabletest.Open(t, server.Options{})}
	must(t, k.Admin.Create("t", []table.KeyColumn{{Name: "id", Type: table.Integer}},
		table.Definition{TimeToLive: -1, MaxVersions: 2, MaxDeviation: 1e9}))
	k.add(0, rows)
	return k
}

// add puts rows with consecutive IDs, beginning with from.
func (k *kept) add(from, rows int) {
	k.t.Helper()
	for id := from; id < from+rows; id++ {
		must(k.t, tabletest.Do(k.SDK, tabletest.Put("t", tabletest.Key("id", int64(id)), tabletest.Cells{"a": 1.0}, stamp-1)))
		must(k.t, tabletest.Do(k.SDK, tabletest.Update("t", tabletest.Key("id", int64(id)),
			tabletest.Cells{"b": "line\nend", "a": int64(id), "c": []byte{0, 255}}, stamp)))
	}
}

const stamp = 1_800_000_000_000

func (k *kept) RoundTrip(r *http.Request) (*http.Response, error) {
	if path.Base(r.URL.Path) == "GetRange" {
		if k.readings++; k.before != nil {
			if err := k.before(k.readings); err != nil {
				return nil, err
			}
		}
	}
	return k.Server.Transport().RoundTrip(r)
}

func (k *kept) subject() *Subject {
	k.t.Helper()
	target := k.Target
	target.Transport = k
	described := conformance.Try(k.Admin.Describe("t")).Must(k.t)
	return &Subject{Target: "here", Scan: tablescan.Config{Client: tabletest.Admin(k.t, target).Client, Table: described,
		RetryFor: time.Nanosecond}}
}

func at(t *testing.T, name string) *Place {
	t.Helper()
	p := conformance.Try(At(t.Context(), name, jobdir.Options{})).Must(t)
	must(t, p.Lock(t.Context()))
	t.Cleanup(func() { p.Close() })
	return p
}

func open(t *testing.T) *Place { return at(t, filepath.Join(t.TempDir(), "made", "by", "it")) }

// everywhere runs a test in a folder and in an object store.
func everywhere(t *testing.T, test func(t *testing.T, p *Place)) {
	t.Run("folder", func(t *testing.T) { test(t, open(t)) })
	t.Run("store", func(t *testing.T) {
		storetest.New(t, "bucket")
		test(t, at(t, "s3://bucket/kept"))
	})
}

func (p *Place) text(t *testing.T, name string) string {
	t.Helper()
	return string(conformance.Try(p.store.Get(t.Context(), name)).Must(t))
}

func (p *Place) place(t *testing.T, name, text string) {
	t.Helper()
	must(t, p.store.Put(t.Context(), name, []byte(text)))
}

// lines returns the text of an export's archive.
func (p *Place) lines(t *testing.T, file string) (text string, a *exact.Manifest) {
	t.Helper()
	a = conformance.Try(p.archive(t.Context(), &Manifest{File: file})).Must(t)
	for i := range a.Parts {
		in := conformance.Try(a.Open(t.Context(), &a.Parts[i])).Must(t)
		d := conformance.Try(zstd.NewReader(in)).Must(t)
		part, err := io.ReadAll(d)
		d.Close()
		must(t, errors.Join(err, in.Close()))
		text += string(part)
	}
	return text, a
}

func (p *Place) files(t *testing.T) string {
	t.Helper()
	names := conformance.Try(p.store.List(t.Context(), "")).Must(t)
	var all []string
	for _, name := range names {
		if !strings.Contains(name, "lock") && !strings.Contains(name, "/lease.") {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func (p *Place) latest(t *testing.T) *Manifest {
	t.Helper()
	return conformance.Try(p.Latest(t.Context(), "here", "t")).Must(t)
}

func (p *Place) mustExport(t *testing.T, k *kept) *Manifest {
	t.Helper()
	return conformance.Try(p.Export(t.Context(), k.subject())).Must(t)
}

func TestExportHasRowsCountAndChecksum(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		k := of(t, 100)
		m := p.mustExport(t, k)
		text, is := p.lines(t, "t")
		conformance.True(t, m.State == Verified && m.Rows == 100 && m.Bytes == is.Bytes && k.readings == 2,
			"%+v after %d readings", m, k.readings)
		const want = `{"Wide":true,"PK":{"Values":[{"C":"id","V":0,"IsInt":true}]},"Attr":{"Values":[{"C":"a","V":0,"IsInt":true,"TS":1800000000000},{"C":"a","V":1,"TS":1799999999999},{"C":"b","V":"line\nend","TS":1800000000000},{"C":"c","V":"AP8=","T":"binary","TS":1800000000000}]}}`
		first, _, _ := strings.Cut(text, "\n")
		conformance.True(t, first == want && strings.Count(text, "\n") == 100, "not 100 lines, or %s", first)
		conformance.True(t, is.Table == "t" && is.Rows == 100 && is.Cells == 400 &&
			is.Created == k.subject().Scan.Table.Created && is.Versions == 2 && is.Options.MaxVersions == 2, "%+v", is)
		var beside map[string]any
		must(t, json.Unmarshal([]byte(p.text(t, "t.manifest.json")), &beside))
		for name, want := range map[string]any{"table": "t", "target": "here", "file": "t", "format": "archive",
			"state": "verified", "rows": 100.0, "sha256": m.SHA256, "bytes": float64(m.Bytes)} {
			conformance.Equal(t, beside[name], want, "%s", name)
		}
		conformance.True(t, beside["exported_at"] != nil && beside["verified_at"] != nil && beside["dropped_at"] == nil,
			"%v", beside)
		conformance.Equal(t, p.files(t), "t.manifest.json t/archive-00001-00001.jsonl.zst t/manifest.json", "files")
		whole, err := p.Whole(t.Context(), m)
		conformance.True(t, whole && err == nil, "whole: %v, %v", whole, err)
	})
}

func TestLargeExportHasSeveralParts(t *testing.T) {
	k := of(t, 300)
	var texts, sums [2]string
	for i, p := range []*Place{open(t), open(t)} {
		if i == 1 {
			p.PartBytes = 2000
		}
		m := p.mustExport(t, k)
		var is *exact.Manifest
		if texts[i], is = p.lines(t, "t"); len(is.Parts) > 1 != (i == 1) || is.Rows != 300 || m.Rows != 300 {
			t.Errorf("%d parts, %d rows", len(is.Parts), is.Rows)
		}
		sums[i] = m.SHA256
	}
	conformance.Equal(t, texts[0], texts[1], "the parts have other rows")
	conformance.Equal(t, sums[0], sums[1], "the sums are not of the rows")
}

func TestEmptyTableIsExported(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		m := p.mustExport(t, of(t, 0))
		conformance.True(t, m.Rows == 0 && m.State == Verified, "%+v", m)
	})
}

func TestCompleteExportIsNeverOverwritten(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		k := of(t, 10)
		first := p.mustExport(t, k)
		text, _ := p.lines(t, first.File)
		k.add(10, 1)
		second := p.mustExport(t, k)
		conformance.MustTrue(t, second.File == "t-2" && second.Rows == 11, "%+v", second)
		now, _ := p.lines(t, first.File)
		conformance.Equal(t, now, text, "the first export was changed")
		conformance.Equal(t, p.latest(t).File, "t-2", "the latest")
	})
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		foreign := map[string]string{
			"t":                 "somebody's rows, without a manifest",
			"t-2.manifest.json": "no manifest",
			"t-3.manifest.json": `{"version":1,"table":"t","target":"elsewhere","file":"t-3","state":"archiving"}`,
			"t-4.manifest.json": `{"version":1,"table":"t","target":"here","file":"../t","state":"archiving"}`,
			"t-5.manifest.json": `{"version":1,"table":"t","target":"here","file":"t-5.jsonl","format":"jsonl","state":"verified"}`,
			"t-6/rows.csv":      "somebody's",
		}
		for name, text := range foreign {
			p.place(t, name, text)
		}
		m := p.mustExport(t, of(t, 1))
		conformance.Equal(t, m.File, "t-7", "%+v", m)
		for name, text := range foreign {
			conformance.Equal(t, p.text(t, name), text, "%s", name)
		}
		other, err := p.Latest(t.Context(), "elsewhere", "t")
		conformance.True(t, err == nil && other == nil, "a table of another instance has the export %+v, %v", other, err)
	})
}

// interrupt ends an export in the middle of its scan, and returns the number of pages that a complete scan reads.
func (p *Place) interrupt(t *testing.T, k *kept) (pages int) {
	t.Helper()
	p.PartBytes = 2000
	elsewhere := open(t)
	elsewhere.PartBytes = p.PartBytes
	k.readings = 0
	elsewhere.mustExport(t, k)
	pages = k.readings
	k.readings, k.before = 0, func(reading int) error {
		if reading >= pages/2 {
			return &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
		}
		return nil
	}
	m, err := p.Export(t.Context(), k.subject())
	conformance.MustTrue(t, err != nil, "%+v", m)
	k.readings, k.before = 0, nil
	return pages
}

func TestInterruptedExportOfAChangedTableIsRedone(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		k := of(t, 300)
		p.interrupt(t, k)
		must(t, tabletest.Do(k.SDK, tabletest.Delete("t", tabletest.Key("id", int64(0)))))
		m := p.mustExport(t, k)
		conformance.True(t, m.File == "t" && m.Rows == 299, "%+v", m)
		k.add(1000, 1)
		p.interrupt(t, k)
		k.makeAgain(3)
		m = p.mustExport(t, k)
		conformance.True(t, m.File == "t-2" && m.Rows == 3, "%+v", m)
	})
}

func (k *kept) makeAgain(rows int) {
	k.t.Helper()
	must(k.t, k.Admin.Drop("t"))
	must(k.t, k.Admin.Create("t", []table.KeyColumn{{Name: "id", Type: table.Integer}},
		table.Definition{TimeToLive: -1, MaxVersions: 2, MaxDeviation: 1e9}))
	k.add(0, rows)
}

func TestExportWithADamagedJournalIsRedone(t *testing.T) {
	for what, spoil := range map[string]func(string){
		"a journal": func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, ".tsimport-archive.jsonl"), []byte("{}\n"), 0o600))
		},
		"a part": func(dir string) { must(t, os.Remove(filepath.Join(dir, "archive-00001-00001.jsonl.zst"))) },
	} {
		p, k := open(t), of(t, 300)
		p.interrupt(t, k)
		spoil(filepath.Join(p.dir, "t"))
		m := p.mustExport(t, k)
		conformance.True(t, m.File == "t" && m.Rows == 300, "%s: %+v", what, m)
	}
}

func (m *Manifest) name() string { return manifestName(m.Table, m.number) }

// Both tables are empty, but the archive describes a different one.
func TestExportOfAnEarlierTableDoesNotCount(t *testing.T) {
	p, k := open(t), of(t, 0)
	text := strings.Replace(p.text(t, p.mustExport(t, k).name()), `"verified"`, `"archiving"`, 1)
	p.place(t, "t.manifest.json", text)
	k.makeAgain(0)
	m := p.mustExport(t, k)
	conformance.Equal(t, m.File, "t-2", "%+v", m)
}

func TestVerifyingFindsLaterChanges(t *testing.T) {
	const part, whole = "t/archive-00001-00001.jsonl.zst", "t/" + exact.ManifestName
	damage := func(name string, change func([]byte) []byte) func(*testing.T, *Place, *kept) {
		return func(t *testing.T, p *Place, _ *kept) { p.place(t, name, string(change([]byte(p.text(t, name))))) }
	}
	remove := func(names ...string) func(*testing.T, *Place, *kept) {
		return func(t *testing.T, p *Place, _ *kept) {
			for _, name := range names {
				must(t, p.store.Delete(t.Context(), name))
			}
		}
	}
	for what, v := range map[string]struct {
		spoil   func(t *testing.T, p *Place, k *kept)
		changed bool
	}{
		"a flipped bit":  {damage(part, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), false},
		"a cut end":      {damage(part, func(b []byte) []byte { return b[:len(b)-1] }), false},
		"bytes more":     {damage(part, func(b []byte) []byte { return append(b, b...) }), false},
		"a missing part": {remove(part), false},
		"an edited manifest": {damage(whole,
			func(b []byte) []byte { return bytes.Replace(b, []byte(`"rows": 10`), []byte(`"rows": 11`), 1) }), false},
		"a missing manifest": {remove(whole), false},
		"a missing archive":  {remove(part, whole), false},
		"another archive": {func(t *testing.T, p *Place, k *kept) {
			k.add(10, 1)
			p.mustExport(t, k)
			for _, name := range []string{part, whole} {
				p.place(t, name, p.text(t, "t-2"+name[1:]))
			}
		}, false},
		"a row more": {func(_ *testing.T, _ *Place, k *kept) { k.add(10, 1) }, true},
		"a row less": {func(t *testing.T, _ *Place, k *kept) {
			must(t, tabletest.Do(k.SDK, tabletest.Delete("t", tabletest.Key("id", int64(9)))))
		}, true},
		"another version": {func(t *testing.T, _ *Place, k *kept) {
			must(t, tabletest.Do(k.SDK, tabletest.Update("t", tabletest.Key("id", int64(9)), tabletest.Cells{"b": "line\nend"},
				stamp+1)))
		}, true},
		"nothing different": {func(*testing.T, *Place, *kept) {}, false},
	} {
		t.Run(what, func(t *testing.T) {
			everywhere(t, func(t *testing.T, p *Place) {
				k := of(t, 10)
				m := p.mustExport(t, k)
				v.spoil(t, p, k)
				err := p.Verify(t.Context(), m, k.subject())
				changed, damaged := new(ChangedError), new(DamagedError)
				switch {
				case what == "nothing different":
					conformance.Equal(t, err, nil, "error")
				case v.changed:
					conformance.True(t, errors.As(err, &changed) && strings.Contains(err.Error(), "stop writing"), "%v", err)
				case !errors.As(err, &damaged) || strings.Contains(err.Error(), "\n"):
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestDropMarkIsRemovedWhenTheTableIsFound(t *testing.T) {
	everywhere(t, func(t *testing.T, p *Place) {
		k := of(t, 10)
		must(t, p.MarkDropped(t.Context(), p.mustExport(t, k)))
		last := p.latest(t)
		conformance.True(t, last.State == Dropped && last.DroppedAt != nil && last.Complete(), "%+v", last)
		err := p.Verify(t.Context(), last, k.subject())
		conformance.True(t, err == nil && last.State == Verified && last.DroppedAt == nil, "%+v, %v", last, err)
	})
}

func TestFolderIsLockedForOneProcess(t *testing.T) {
	first := open(t)
	second := conformance.Try(At(t.Context(), first.dir, jobdir.Options{})).Must(t)
	conformance.Refused(t, second.Lock(t.Context()), "in use", "error")
	must(t, first.Close())
	must(t, second.Lock(t.Context()))
	must(t, second.Close())
}

func TestProcessWithoutItsLeaseWritesNothing(t *testing.T) {
	storetest.New(t, "bucket")
	p := at(t, "s3://bucket/kept")
	k := of(t, 3)
	m := p.mustExport(t, k)
	before := p.text(t, "t.manifest.json")
	must(t, p.lease.Release())
	conformance.Refused(t, p.MarkDropped(t.Context(), m), "", "an export was marked")
	k.add(3, 1)
	conformance.Refused(t, conformance.ErrorOf(p.Export(t.Context(), k.subject())), "", "a table was exported")
	if got := p.files(t); got != "t.manifest.json t/archive-00001-00001.jsonl.zst t/manifest.json" ||
		p.text(t, "t.manifest.json") != before {
		t.Error(got)
	}
}

func TestStoreThatIgnoresConditionsIsRefused(t *testing.T) {
	s := storetest.New(t, "bucket")
	s.Unconditional = true
	p := conformance.Try(At(t.Context(), "s3://bucket/kept", jobdir.Options{})).Must(t)
	conformance.Refused(t, p.Lock(t.Context()), "", "it was locked")
}

func TestUnusableFolderIsAnError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	unlocked := func(dir string) *Place { return conformance.Try(At(t.Context(), dir, jobdir.Options{})).Must(t) }
	conformance.True(t, unlocked(file).Lock(t.Context()) != nil, "a file was opened as a folder")
	conformance.True(t, unlocked(filepath.Join(file, "below")).Lock(t.Context()) != nil, "a folder below a file opens")
	must(t, os.MkdirAll(filepath.Join(dir, "odd", lockName), 0o755))
	conformance.Refused(t, unlocked(filepath.Join(dir, "odd")).Lock(t.Context()), "lock archive", "a folder as lock")
	last, err := unlocked(filepath.Join(dir, "none")).Latest(t.Context(), "here", "t")
	conformance.True(t, last == nil && err == nil, "a missing folder: %+v, %v", last, err)
	conformance.Refused(t, conformance.ErrorOf(unlocked(file).Latest(t.Context(), "here", "t")), "", "looked into a file")
	k := of(t, 1)
	blocked := at(t, filepath.Join(dir, "blocked"))
	must(t, os.MkdirAll(filepath.Join(blocked.dir, "t.manifest.json.part"), 0o755))
	_, err = blocked.Export(t.Context(), k.subject())
	conformance.Refused(t, err, "write manifest of table t", "error")
	blocked = at(t, filepath.Join(dir, "blocked-too"))
	blocked.place(t, "t.manifest.json", `{"version":1,"table":"t","target":"here","file":"t","state":"archiving"}`)
	must(t, os.Symlink(file, filepath.Join(blocked.dir, "t")))
	_, err = blocked.Export(t.Context(), k.subject())
	conformance.True(t, err != nil, "a table was exported into a file")
	folder := at(t, filepath.Join(dir, "folder"))
	must(t, os.MkdirAll(filepath.Join(folder.dir, "t.manifest.json"), 0o755))
	conformance.Refused(t, conformance.ErrorOf(folder.Latest(t.Context(), "here", "t")), "", "a folder read as a manifest")
}

// TestLinksInPlaceOfPartsAreNotFollowed places links where a table's archive and its manifest are written.
func TestLinksInPlaceOfPartsAreNotFollowed(t *testing.T) {
	p := open(t)
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(p.dir, manifestName("t", 1)+".part")))
	must(t, os.Symlink(victim, filepath.Join(p.dir, "t"))) // must be skipped
	m := p.mustExport(t, of(t, 3))
	conformance.MustTrue(t, m.Rows == 3 && m.File == "t-2", "%+v", m)
	text, err := os.ReadFile(victim)
	conformance.Equal(t, string(text), "precious", "the file behind the links, %v", err)
}

// failing is a store whose nth call fails, before or after it takes effect. Calls for leases succeed, to avoid waits.
type failing struct {
	jobdir.Store
	n, at int
	after bool
}

var errStore = errors.New("the store does not answer")

func (f *failing) act(name string, do func() error) error {
	if strings.Contains(name, "lease.") || strings.Contains(name, "probe") {
		return do()
	}
	f.n++
	if f.n == f.at && !f.after {
		return errStore
	}
	err := do()
	if f.n == f.at {
		err = errors.Join(err, errStore)
	}
	return err
}

func (f *failing) Put(ctx context.Context, name string, body []byte) error {
	return f.act(name, func() error { return f.Store.Put(ctx, name, body) })
}

func (f *failing) PutAbsent(ctx context.Context, name string, body []byte) error {
	return f.act(name, func() error { return f.Store.PutAbsent(ctx, name, body) })
}

func (f *failing) Get(ctx context.Context, name string) (body []byte, err error) {
	err = f.act(name, func() (err error) { body, err = f.Store.Get(ctx, name); return err })
	return body, err
}

func (f *failing) List(ctx context.Context, prefix string) (names []string, err error) {
	err = f.act(prefix, func() (err error) { names, err = f.Store.List(ctx, prefix); return err })
	return names, err
}

func (f *failing) Delete(ctx context.Context, name string) error {
	return f.act(name, func() error { return f.Store.Delete(ctx, name) })
}

// TestExportIsFinishedAfterAnyStoreFault checks that an export is complete only after it was compared and has all rows.
func TestExportIsFinishedAfterAnyStoreFault(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			k, rows := of(t, 5), 5
			k.before = func(reading int) error {
				if reading == 2 {
					rows = 6
					k.add(5, 1)
				}
				return nil
			}
			f := &failing{Store: storetest.NewMemory(jobdir.ErrExists), at: n, after: after}
			p := &Place{store: f}
			must(t, p.Lock(t.Context()))
			f.n = 0
			_, err := p.Export(t.Context(), k.subject())
			must(t, p.Close())
			if f.n < n {
				must(t, err)
				conformance.True(t, n >= 20, "an export has only %d acts", n)
				break
			}
			damaged := new(DamagedError)
			conformance.True(t, !errors.As(err, &damaged), "act %d, after %v: %v", n, after, err)
			if last := p.latest(t); last != nil {
				if text, _ := p.lines(t, last.File); strings.Count(text, "\n") != rows || int(last.Rows) != rows {
					t.Errorf("act %d, after %v: %+v", n, after, last)
				}
			}
			f.at, k.before = 0, nil
			must(t, p.Lock(t.Context()))
			m := p.mustExport(t, k)
			must(t, p.Verify(t.Context(), m, k.subject()))
			text, _ := p.lines(t, m.File)
			conformance.True(t, strings.Count(text, "\n") == rows && int(m.Rows) == rows, "act %d, after %v: %+v", n, after, m)
			must(t, p.Close())
		}
	}
}

func TestReplacedTableIsNotExported(t *testing.T) {
	p, k := open(t), of(t, 3)
	s := k.subject()
	k.before = func(reading int) error {
		if reading == 1 {
			k.makeAgain(3)
		}
		return nil
	}
	_, err := p.Export(t.Context(), s)
	conformance.True(t, errors.As(err, new(*client.ReplacedError)), "%v", err)
}
