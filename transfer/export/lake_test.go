package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	format "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/tablescan"
)

// lake configures an export of the table t to small files, in a folder or an object store.
func (w *world) lake(t *testing.T, place, of string) ArchiveConfig {
	t.Helper()
	base, layout, err := ParsePlace(place, of)
	must(t, err)
	c := ArchiveConfig{Scan: tablescan.Config{Client: w.SDK, Table: w.table}, Target: "test", PartBytes: 16_000,
		Readers: 1, Lake: layout}
	if !jobdir.IsAddress(base) {
		c.Dir = base
		return c
	}
	c.Store = conformance.Try(jobdir.Open(context.Background(), base, jobdir.Options{})).Must(t)
	return c
}

// lookShort makes exports sample so few rows that later rows have columns that the sample lacks.
func lookShort(t *testing.T) {
	before := lookedRangeBytes
	lookedRangeBytes = 1
	t.Cleanup(func() { lookedRangeBytes = before })
}

// lakeIn reads a place's files as "name=value", after the values of folders, and checks them against the manifest.
func lakeIn(t *testing.T, c *ArchiveConfig) (rows []string, m *format.LakeManifest) {
	t.Helper()
	store := c.Store
	if store == nil {
		store = conformance.Try(jobdir.Open(t.Context(), c.Dir, jobdir.Options{})).Must(t)
	}
	must(t, json.Unmarshal(conformance.Try(store.Get(t.Context(), format.LakeManifestName)).Must(t), &m))
	found := conformance.Try(store.List(t.Context(), "")).Must(t)
	found = slices.DeleteFunc(found, func(name string) bool {
		return name == format.LakeManifestName || strings.Contains(name, "/lease.") || strings.Contains(name, "/probe/")
	})
	var listed []string
	columns := ""
	bytes, count := int64(0), int64(0)
	for _, f := range m.Files {
		listed = append(listed, f.Name)
		body := conformance.Try(store.Get(t.Context(), f.Name)).Must(t)
		of, header := fileRows(t, f.Name, body)
		if int64(len(body)) != f.Bytes || int64(len(of)) != f.Rows || fmt.Sprintf("%x", sha256.Sum256(body)) != f.SHA256 {
			t.Errorf("%s has %d bytes and %d rows, and the manifest says %+v", f.Name, len(body), len(of), f)
		}
		if columns == "" {
			columns = header
		}
		conformance.Equal(t, header, columns, "columns of %s", f.Name)
		rows = append(rows, of...)
		bytes, count = bytes+f.Bytes, count+f.Rows
	}
	conformance.True(t, m.Bytes == bytes && m.Rows == count, "the manifest says %d bytes, %d rows", m.Bytes, m.Rows)
	slices.Sort(found)
	conformance.Equal(t, slices.Equal(found, listed), true, "there are %q, and the manifest lists %q", found, listed)
	slices.Sort(rows)
	return rows, m
}

func fileRows(t *testing.T, name string, body []byte) (rows []string, header string) {
	row := func(names []string, value func(i int) (string, bool)) {
		s := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), ".")
		for i, name := range names {
			if v, there := value(i); there {
				s += fmt.Sprintf(" %s=%s", name, v)
			}
		}
		rows = append(rows, strings.TrimSpace(s))
	}
	if strings.HasSuffix(name, ".parquet") {
		file := conformance.Try(parquet.OpenFile(bytes.NewReader(body), int64(len(body)))).Must(t)
		var names []string
		for _, c := range file.Root().Columns() {
			names = append(names, c.Name())
			header += fmt.Sprintf("%s %v %v,", c.Name(), c.Type(), c.Optional())
		}
		for _, g := range file.RowGroups() {
			in, all := g.Rows(), make([]parquet.Row, g.NumRows())
			n, err := in.ReadRows(all)
			conformance.MustTrue(t, n == len(all), "%v %v", n, err)
			for _, values := range all {
				row(names, func(i int) (string, bool) { return values[i].String(), !values[i].IsNull() })
			}
			must(t, in.Close())
		}
		return rows, header
	}
	var in io.Reader = bytes.NewReader(body)
	var err error
	if strings.HasSuffix(name, ".gz") {
		in, err = gzip.NewReader(in)
	} else if strings.HasSuffix(name, ".zst") {
		in, err = zstd.NewReader(in)
	}
	must(t, err)
	lines := conformance.Try(csv.NewReader(in).ReadAll()).Must(t)
	for _, line := range lines[1:] {
		row(lines[0], func(i int) (string, bool) { return line[i], line[i] != "" })
	}
	return rows, strings.Join(lines[0], ",")
}

func tableRows(n int, folder func(i int) string) (rows []string) {
	for i := range n {
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s p=%d k=k%05d", folder(i), i/perKey, i)+fmt.Sprintf(" n=%d", i)))
		c := fmt.Sprintf(" c%d=x,y", i*5/n)
		rows[i] = strings.Replace(rows[i], " n=", c+" n=", 1)
	}
	return rows
}

// inOrder sorts the attributes of rows in the order of columns.
func inOrder(rows []string, columns []format.FileColumn) []string {
	for i, row := range rows {
		fields := strings.Fields(row)
		at := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "k=") }) + 1
		slices.SortStableFunc(fields[at:], func(a, b string) int {
			place := func(f string) int {
				name, _, _ := strings.Cut(f, "=")
				return slices.IndexFunc(columns, func(c format.FileColumn) bool { return c.Name == name })
			}
			return place(a) - place(b)
		})
		rows[i] = strings.Join(fields, " ")
	}
	slices.Sort(rows)
	return rows
}

func noFolder(int) string { return "" }

// TestLakeContinuesAfterAnyStep kills an export at each step. The same command must then write every row once.
func TestLakeContinuesAfterAnyStep(t *testing.T) {
	conformance.NotForRaces(t)
	lookShort(t)
	const rows = 900
	w := newWorld(t, rows)
	must(t, w.Sim().Simulate(w.table.Name, server.Simulation{Config: sim.Config{Partitions: 2, PartitionUnits: 1e9}}))
	store := storetest.New(t, "bucket")
	halves := func(i int) string { return "g=" + []string{noValue, "%2F"}[i%2] }
	for _, of := range []struct {
		format, folders string
		folder          func(int) string
	}{{"parquet", "", noFolder}, {"csv.zst", `g={n % 2 == 0 ? nil : "/"}/`, halves}} {
		for _, place := range []string{"", "s3://bucket/lake/"} {
			if place == "" && of.folders != "" {
				continue // many small files are slow
			}
			t.Run(of.format+" "+place, func(t *testing.T) {
				steps := map[string]bool{}
				for kill := 1; ; kill++ {
					at := place
					if place == "" {
						at = t.TempDir() + "/lake/"
					}
					for _, key := range store.Keys() {
						store.Remove(key)
					}
					c := w.lake(t, at+of.folders, of.format)
					n, name := 0, ""
					c.step = func(step string) error {
						if n++; n >= kill {
							name = step
							return errKilled
						}
						return nil
					}
					_, err := ToArchive(t.Context(), c)
					steps[name] = true
					if n >= kill {
						conformance.MustEqual(t, errors.Is(err, errKilled), true, "killed after %q: %v", name, err)
						if place == "" && format.Is(c.Dir) == (name == "manifest written") { // an incomplete archive is not loaded
							t.Errorf("killed after %q: it is said to be an archive that is not whole: %v", name, format.Is(c.Dir))
						}
						c.step = nil
						_, err = ToArchive(t.Context(), c)
						if occupied := new(format.OccupiedError); name == "manifest written" && errors.As(err, &occupied) {
							continue // the lake was complete
						}
					}
					must(t, err)
					got, m := lakeIn(t, &c)
					want := inOrder(tableRows(rows, of.folder), m.Columns)
					conformance.MustTrue(t, slices.Equal(got, want),
						"killed after %q it has %d rows, want %d, or others: %.200q, want %.200q", name, len(got), len(want), got, want)
					if n < kill {
						break
					}
				}
				for _, name := range []string{"journal begun", "files announced", "file put", "files noted", "file rewritten",
					"rewriting noted", "before the manifest", "manifest written"} {
					conformance.Equal(t, steps[name], true, "it was never killed after %q", name)
				}
			})
		}
	}
}

// A put of a killed export that takes effect late must not replace a file, even an empty one.
func TestLateFileOfAKilledExportReplacesNothing(t *testing.T) {
	w := newWorld(t, 600)
	storetest.New(t, "bucket")
	for _, of := range []string{"parquet", "csv"} {
		c := w.lake(t, "s3://bucket/"+of+"/g={n % 2}/", of)
		n := 0
		c.step = func(step string) error {
			if step == "files announced" {
				if n++; n == 2 {
					return errKilled
				}
			}
			return nil
		}
		if _, err := ToArchive(t.Context(), c); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		c.step = nil
		var err error
		c.Scan.Where, err = keyexpr.CompileWhere("n < 0") // as if the rows had been deleted
		must(t, err)
		must(t, conformance.ErrorOf(ToArchive(t.Context(), c)))
		_, m := lakeIn(t, &c)
		for _, late := range []string{"g=0/part-00001-00002." + of, "g=1/part-00001-00002." + of} {
			at := slices.IndexFunc(m.Files, func(f format.LakeFile) bool { return f.Name == late })
			err := c.Store.PutAbsent(t.Context(), late, []byte("rows that are gone"))
			conformance.True(t, errors.Is(err, jobdir.ErrExists) && at >= 0 && m.Files[at].Rows == 0,
				"%s: %v, %+v", late, err, m.Files)
		}
	}
}

func TestLakeIsCompleteDespiteStoreFaults(t *testing.T) {
	lookShort(t)
	const rows = 1500
	w := newWorld(t, rows)
	for i := range 6 {
		c := w.lake(t, t.TempDir(), "parquet")
		store, err := jobdir.Open(t.Context(), c.Dir, jobdir.Options{})
		must(t, err)
		f := &flaky{Store: store, after: i%2 == 1, nth: 1 + i/2, asked: map[string]int{}}
		c.Store = f
		ended := 0
		for _, err = ToArchive(t.Context(), c); err != nil && ended < 50; _, err = ToArchive(t.Context(), c) {
			if ended++; errors.As(err, new(*format.OccupiedError)) {
				break // the lake is complete; a call after the manifest was put has failed
			}
			conformance.Is(t, err, errStore, "after %v", f.asked)
		}
		left := conformance.Try(store.List(t.Context(), ".tsimport-archive/entry-")).Must(t)
		for _, name := range left {
			must(t, store.Delete(t.Context(), name))
		}
		c.Store = store
		if got, m := lakeIn(t, &c); !slices.Equal(got, inOrder(tableRows(rows, noFolder), m.Columns)) {
			t.Errorf("after %d errors it has %d rows, or others", ended, len(got))
		}
		conformance.True(t, f.asked["put part-N-N.parquet"] >= 2 && f.asked["replace part-N-N.parquet"] != 0 &&
			ended >= 4-f.nth, "%v failed, %d of them ended the export", f.asked, ended)
	}
}

func TestLakeIsNotContinuedInAnotherFormat(t *testing.T) {
	w := newWorld(t, 600)
	dir := t.TempDir()
	c := w.lake(t, dir, "csv")
	n := 0
	c.step = func(step string) error {
		if n++; step == "files noted" {
			return errKilled
		}
		return nil
	}
	_, err := ToArchive(t.Context(), c)
	conformance.MustTrue(t, errors.Is(err, errKilled), "%v", err)
	for place, change := range map[string]func(c *ArchiveConfig){
		"--format":          func(c *ArchiveConfig) { c.Lake.Format = "parquet" },
		"the folders of -o": func(c *ArchiveConfig) { c.Lake = w.lake(t, "x/g={n % 2}/", "csv").Lake },
		"--columns":         func(c *ArchiveConfig) { c.Scan.Columns, c.Holds.Columns = []string{"n"}, []string{"n"} },
		"other files":       func(c *ArchiveConfig) { c.Lake = nil },
	} {
		other := w.lake(t, dir, "csv")
		change(&other)
		conformance.Refused(t, conformance.ErrorOf(ToArchive(t.Context(), other)), place, "%s", place)
	}
	must(t, os.WriteFile(filepath.Join(dir, "part-00001-00001.csv"), []byte("cut"), 0o600))
	c.step = nil
	if _, err := ToArchive(t.Context(), c); !errors.As(err, new(*format.UnusableError)) {
		t.Errorf("with a part that is not as it was written: %v", err)
	}
	c.Fresh = true
	_, err = ToArchive(t.Context(), c)
	must(t, err)
	got, m := lakeIn(t, &c)
	conformance.Same(t, got, inOrder(tableRows(600, noFolder), m.Columns), "it has other rows")
	_, err = ToArchive(t.Context(), c)
	conformance.True(t, errors.As(err, new(*format.OccupiedError)), "over a whole one: %v", err)
}

// TestModifiedFileIsNotRewritten replaces a file in the store before columns are added to it.
func TestModifiedFileIsNotRewritten(t *testing.T) {
	lookShort(t)
	w := newWorld(t, 1500)
	for _, of := range []string{"parquet", "csv"} {
		c := w.lake(t, t.TempDir(), of)
		c.Store = conformance.Try(jobdir.Open(t.Context(), c.Dir, jobdir.Options{})).Must(t)
		interrupted := func(most int) (noted int) {
			c.Fresh = true
			c.step = func(step string) error {
				if step == "files noted" {
					noted++
				}
				if noted == most || step == "file rewritten" {
					return errKilled
				}
				return nil
			}
			_, err := ToArchive(t.Context(), c)
			conformance.MustTrue(t, errors.Is(err, errKilled), "%v", err)
			return noted
		}
		interrupted(interrupted(1000)) // stop after the last file is written, before any is rewritten
		c.step, c.Fresh = nil, false
		other := conformance.Try(c.Store.Get(t.Context(), "part-00001-00003."+of)).Must(t)
		must(t, c.Store.Put(t.Context(), "part-00001-00002."+of, other))
		_, err := ToArchive(t.Context(), c)
		conformance.True(t, err != nil &&
			strings.Contains(err.Error(), "part-00001-00002."+of+", which has fewer columns than others: "), "%s: %v", of, err)
	}
}

func TestConcurrentLakeExportsWriteOneLake(t *testing.T) {
	w := newWorld(t, 600)
	c := w.lake(t, t.TempDir(), "csv")
	var second error
	c.step = func(step string) error {
		if step == "file put" && second == nil {
			_, second = ToArchive(t.Context(), w.lake(t, c.Dir, "csv"))
		}
		return nil
	}
	must(t, conformance.ErrorOf(ToArchive(t.Context(), c)))
	conformance.Equal(t, errors.As(second, new(*format.OccupiedError)), true, "the second says %v", second)
	got, m := lakeIn(t, &c)
	conformance.Same(t, got, inOrder(tableRows(600, noFolder), m.Columns), "it has other rows")
}

func TestDataThatALakeCannotHoldIsRefusedByName(t *testing.T) {
	w := newWorld(t, 600)
	put := func(i int, cells tabletest.Cells) {
		t.Helper()
		must(t, tabletest.Do(w.SDK, tabletest.Put("t", tabletest.Key("p", int64(i), "k", "z"), cells)))
	}
	empty := func(dir string) {
		t.Helper()
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			conformance.True(t, err != nil || e.IsDir(), "%s is left", path)
			return err
		}))
	}
	refused := func(want, place, of string) {
		t.Helper()
		dir := t.TempDir()
		cannot := new(CannotHold)
		r, err := ToArchive(t.Context(), w.lake(t, dir+"/"+place, of))
		conformance.True(t, errors.As(err, &cannot) && strings.Contains(err.Error(), want) && r.Kept == 0,
			"%v, want %q", err, want)
		empty(dir)
	}
	refused(`have the same name as the column "p"`, "P={n}/", "csv")
	refused(`have the same name as the column "c4"`, "c4={n}/", "csv")
	put(80, tabletest.Cells{"mixed": int64(1)})
	put(81, tabletest.Cells{"mixed": "one"})
	refused(`column "mixed" has values of several types: integer, string`, "", "parquet")
	c := w.lake(t, t.TempDir(), "csv.gz")
	r := conformance.Try(ToArchive(t.Context(), c)).Must(t)
	if rows, m := lakeIn(t, &c); len(rows) != 602 || r.Lake.Rows != 602 ||
		!slices.ContainsFunc(m.Columns, func(c format.FileColumn) bool {
			return c.Name == "mixed" && slices.Equal(c.Types, []table.Type{table.Integer, table.String})
		}) {
		t.Errorf("%d rows of %+v", len(rows), m.Columns)
	}
}

// The files have the same empty strings, absent cells and values of all types as an export to one file.
func TestLakeFilesEqualAFileExport(t *testing.T) {
	w, _ := wideWorld(t, 2)
	c := w.lake(t, t.TempDir(), "csv")
	c.PartBytes = 64 << 20
	must(t, conformance.ErrorOf(ToArchive(t.Context(), c)))
	_, m := lakeIn(t, &c)
	text := conformance.Try(os.ReadFile(filepath.Join(c.Dir, m.Files[0].Name))).Must(t)
	one := w.config(CSV)
	one.Scan.Columns = names(m.Columns)
	if want := w.text(t, one); len(m.Files) != 1 || string(text) != want {
		t.Errorf("%d files, the first is %.300q, want %.300q", len(m.Files), text, want)
	}
}

func TestEmptyLakeHasTheTablesColumns(t *testing.T) {
	w := newWorld(t, 0)
	must(t, w.Admin.CreateDefined("d", w.table.Key, tabletest.Plain, map[string]table.Type{"amount": table.Double}))
	w.table = conformance.Try(w.Admin.Describe("d")).Must(t)
	c := w.lake(t, t.TempDir(), "parquet")
	must(t, conformance.ErrorOf(ToArchive(t.Context(), c)))
	rows, m := lakeIn(t, &c)
	conformance.True(t, len(rows) == 0 && len(m.Files) == 1 && len(m.Columns) == 1 && m.Columns[0].Name == "amount",
		"%+v", m)
}

func TestPartitionFoldersAreParsed(t *testing.T) {
	for place, want := range map[string]string{"oss://b/orders/dt={day(OrderTime)}/": "oss://b/orders/: dt",
		"dt={x}": ".: dt", "a/b/": "a/b/:", "a/y={x}/m={x > 1 ? \"/\" : y}/": "a/: y m", "a/x{y}/": "error",
		"a/={y}/": "error", "a/d={y}x/": "error", "a/d={(}/": "error", "a/d={y}/e/": "error", "a/_d={y}/": "error",
		"a/d={y}/D={y}/": "error", "a/d:={y}/": "error", "a/d={y": "error"} {
		base, l, err := ParsePlace(place, CSV)
		got := "error"
		if err == nil {
			got = base + ":"
			for _, f := range l.folders {
				got += " " + f.name
			}
		}
		conformance.True(t, got == want, "%s is %s, %v, want %s", place, got, err, want)
	}
	got := string(appendFolder(nil, []byte("a b:c/d=é\x01%{}")))
	conformance.True(t, got == "a b%3Ac%2Fd%3Dé%01%25%7B}", "%v", got)
}
