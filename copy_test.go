package tsimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

// copyOf is a copy of table s into table t of the world.
func (w *world) copyOf(t *testing.T) CopyRequest {
	return CopyRequest{
		Source: w.target(), From: "s", Target: w.target(), Table: "t",
		NewTable: NewTable{Create: true}, Rates: Rates{Settle: settle},
		Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
	}
}

// source creates table s with the given number of rows.
func (w *world) source(t *testing.T, rows int) {
	t.Helper()
	text := "id,n\n"
	for i := range rows {
		text += fmt.Sprintf("%d,%d\n", i, i)
	}
	file, run := input(t, text)
	_, err := w.load(Request{Table: "s", Mapping: Mapping{PK: []string{"id:integer"}}, NewTable: NewTable{Create: true},
		Running: Running{RunDir: run}}, file)
	must(t, err)
}

func TestCopyRejectsInvalidRequests(t *testing.T) {
	w := newWorld(t)
	r := w.copyOf(t)
	if s, err := Copy(t.Context(), r); s != nil || !errors.Is(err, ErrTableMissing) ||
		!strings.Contains(err.Error(), "the source, table s,") {
		t.Errorf("no source: %v, %+v", err, s)
	}
	w.source(t, 10)
	r.Create = false
	if s, err := Copy(t.Context(), r); s != nil || !errors.Is(err, ErrTableMissing) ||
		!strings.Contains(err.Error(), "table t ") {
		t.Errorf("no target: %v, %+v", err, s)
	}
	for text, change := range map[string]func(*CopyRequest){
		"source and target are the same table": func(r *CopyRequest) { r.Table = "s" },
		"From: table name":                     func(r *CopyRequest) { r.From = "{s}" },
		"Table: table name":                    func(r *CopyRequest) { r.Table = "" },
		"source of the copy: no instance":      func(r *CopyRequest) { r.Source.Instance = "" },
		"Mode: Copy has no such option":        func(r *CopyRequest) { r.Mode = "update" },
		"Type: Copy has no such option":        func(r *CopyRequest) { r.Type = map[string]string{"n": "string"} },
		"Verify: Copy has no such option":      func(r *CopyRequest) { r.Verify = true },
		"Where: ":                              func(r *CopyRequest) { r.Where = "n >" },
		"Filter n >: ":                         func(r *CopyRequest) { r.Filter = "n >" },
		`Versions "0"`:                         func(r *CopyRequest) { r.Versions = "0" },
		`Since "then"`:                         func(r *CopyRequest) { r.Since = "then" },
		"Exclude with Since": func(r *CopyRequest) {
			r.Since, r.Exclude = "2026-01-31T08:00:00Z", []string{"n"}
		},
		"MaxRCU -1":                func(r *CopyRequest) { r.MaxRCU = -1 },
		"FromKey: ":                func(r *CopyRequest) { r.FromKey = "x" },
		"FromKey 5 ToKey 5":        func(r *CopyRequest) { r.FromKey, r.ToKey = "5", "5" },
		"Columns: a name is empty": func(r *CopyRequest) { r.Columns = []string{""} },
		"Concurrency 5000: want":   func(r *CopyRequest) { r.Concurrency = 5000 },
	} {
		r := w.copyOf(t)
		t.Setenv("TABLESTORE_INSTANCE", "")
		change(&r)
		if s, err := Copy(t.Context(), r); s != nil || !errors.As(err, new(*UsageError)) ||
			!strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
		conformance.Refused(t, conformance.ErrorOf(os.Stat(r.RunDir)), "", "%s: it has a run folder", text)
	}
}

func TestInterruptedCopyIsResumed(t *testing.T) {
	const rows = 3000
	w := newWorld(t)
	w.source(t, rows)
	ctx, stop := context.WithCancel(context.Background())
	r := w.copyOf(t)
	r.Concurrency = 1
	requests := 0
	w.plan.Change(func(operation string) bool { return operation == "BatchWriteRow" }, func(faults.Request) faults.Fault {
		if requests++; requests <= 10 { // out of at least 15
			return faults.Fault{}
		}
		stop()
		return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
	})
	s, err := Copy(ctx, r)
	if !errors.Is(err, ErrInterrupted) || !errors.Is(err, context.Canceled) || s.Written == 0 || s.Unfinished == 0 {
		t.Fatalf("interrupted: %v, %+v", err, s)
	}
	w.plan.Change(nil, nil)
	s, err = Copy(t.Context(), r)
	got, want := w.rows(1), map[string]string{}
	for i := range rows {
		want[fmt.Sprint(i)] = fmt.Sprintf("n=int64 %d", i)
	}
	if err != nil || s.Written < rows || s.Read != s.Written || s.Unfinished != 0 || !maps.Equal(got, want) {
		t.Errorf("resumed: %v, %+v, %d rows", err, s, len(got))
	}
	text, err := os.ReadFile(filepath.Join(r.RunDir, "summary.json"))
	conformance.True(t, err == nil && strings.Contains(string(text), `"attempts": 2`), "resumed: %v\n%s", err, text)
}

// input writes an input file. It returns its path and that of the run folder to use.
func input(t *testing.T, text string) (file, run string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file, filepath.Join(dir, "run")
}

// load loads inputs into table t of the world.
func (w *world) load(r Request, inputs ...string) (*Summary, error) {
	r.From, r.Table, r.Target = inputs, cmp.Or(r.Table, "t"), w.target()
	return Load(context.Background(), r)
}

func TestLibraryLoadEqualsCommandLoad(t *testing.T) {
	w := newWorld(t)
	file, run := input(t, "id;n;left out\na;1;x\nb;many;x\na;3;x\n")
	s, err := w.load(Request{
		Text: Text{Delimiter: ";"}, NewTable: NewTable{Create: true}, Mapping: Mapping{PK: []string{"id:string"},
			Set: []string{"twice=n*2"}, Exclude: []string{"left out"}, Type: map[string]string{"n": "integer"},
			Rename: map[string]string{"n": "number"}}, Running: Running{RunDir: run},
	}, file)
	if err != nil || s.Read != 3 || s.Rejected != 1 || s.Written+s.Superseded != 2 || s.RunDir != run ||
		len(s.RejectsFiles) != 2 {
		t.Fatalf("%v, %+v", err, s)
	}
	got, want := w.rows(1), map[string]string{"a": "number=int64 3 twice=int64 6"}
	conformance.True(t, maps.Equal(got, want), "the table has %q, want %q", got, want)
}

func TestLoadErrorsAreDistinguishable(t *testing.T) {
	w := newWorld(t)
	file, run := input(t, "id,n\na,1\nb,2\n,3\n")
	t.Chdir(filepath.Dir(run)) // runs without RunDir create their folders here
	options := Request{NewTable: NewTable{Create: true}, Mapping: Mapping{PK: []string{"id:string"}},
		Running: Running{RunDir: run}, Writing: Writing{MaxErrors: "0"}, Rates: Rates{Settle: settle}}
	load := func(o Request) (*Summary, error) { return w.load(o, file) }
	s, err := load(options)
	conformance.True(t, errors.Is(err, ErrErrorLimit) && s.Rejected == 1, "error limit: %v, %+v", err, s)
	for text, o := range map[string]Request{
		`Mode "x": want put`:     {Writing: Writing{Mode: "x"}},
		"Names needs":            {Text: Text{Names: []string{"a"}}},
		"OnNull delete needs":    {Mapping: Mapping{OnNull: "delete"}},
		"BatchBytes 1":           {Rates: Rates{BatchBytes: 1 << 30}},
		"Memory":                 {Rates: Rates{Memory: 5}},
		"Rename":                 {Mapping: Mapping{Rename: map[string]string{"a": ""}}},
		`MaxErrors "x": want a`:  {Writing: Writing{MaxErrors: "x"}},
		`column "none"`:          {Mapping: Mapping{Exclude: []string{"none"}}},
		"no expression; want":    {Mapping: Mapping{Set: []string{"x"}}},
		"Concurrency 5000: want": {Rates: Rates{Concurrency: 5000}},
		"Compress \"zip\"":       {Rates: Rates{Compress: "zip"}},
		"RetryFor -1ns: want":    {Rates: Rates{RetryFor: -1}},
	} {
		var usage *UsageError
		o.Fresh = true
		if s, err := load(o); s != nil || !errors.As(err, &usage) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
	}
	if s, err := w.load(Request{Table: "missing"}, file); s != nil || !errors.Is(err, ErrTableMissing) ||
		!errors.As(err, new(*UsageError)) {
		t.Errorf("missing table: %v, %+v", err, s)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.plan.Change(nil, func(faults.Request) faults.Fault {
		stop()
		return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
	})
	options.Fresh, options.MaxErrors = true, "-1"
	options.Target, options.From, options.Table = w.target(), []string{file}, "t"
	s, err = Load(ctx, options)
	conformance.True(t, errors.Is(err, ErrInterrupted) && errors.Is(err, context.Canceled) && s.Unfinished == 2,
		"interrupted: %v, %+v", err, s)
	// The same call resumes it.
	w.plan.Change(nil, nil)
	options.Fresh = false
	s, err = load(options)
	conformance.True(t, err == nil && s.Read == 3 && s.Written == 2 && s.Rejected == 1, "resumed: %v, %+v", err, s)
	// The service refuses every request.
	w.plan.Change(func(operation string) bool { return true }, func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
	})
	conformance.Is(t, conformance.ErrorOf(load(options)), ErrPermission, "permission")
}

func TestLoadSkipsFilesAlreadyLoaded(t *testing.T) {
	w := newWorld(t)
	file, _ := input(t, "id,n\na,1\n")
	dir := filepath.Dir(file)
	options := Request{
		NewTable: NewTable{Create: true}, Rates: Rates{Settle: settle},
		Mapping:   Mapping{PK: []string{"id:string"}, Type: map[string]string{"n": "integer"}},
		Recurring: Recurring{OnlyNew: true, State: filepath.Join(dir, "state"), DoneMarker: "{}.done"},
	}
	must(t, os.Mkdir(options.State, 0o700))
	load := func(run string, want int64, wantErr error) {
		t.Helper()
		o := options
		o.RunDir = filepath.Join(dir, run)
		s, err := w.load(o, filepath.Join(dir, "*.csv"))
		if !errors.Is(err, wantErr) || err == nil && s.Written != want || err != nil && wantErr == nil {
			t.Fatalf("%s: %v, %+v; want %d written, %v", run, err, s, want, wantErr)
		}
	}
	load("no marker", 0, nil)
	must(t, os.WriteFile(file+".done", nil, 0o600))
	load("new", 1, nil)
	load("known", 0, nil)
	options.FailIfNothingNew = true
	load("nothing new", 0, ErrNothingNew)
	must(t, os.WriteFile(file, []byte("id,n\na,2\nb,3\n"), 0o600))
	o := options
	o.RunDir = filepath.Join(dir, "changed")
	if s, err := w.load(o, file); err != nil || len(s.BadInputs) != 1 || filepath.Base(s.BadInputs[0].Name) != "in.csv" ||
		!strings.Contains(s.BadInputs[0].Reason, "changed") {
		t.Errorf("a changed file: %v, %v", s, err)
	}
	options.ReloadChanged = true
	load("reloaded", 2, nil)
	got, want := w.rows(1), map[string]string{"a": "n=int64 2", "b": "n=int64 3"}
	conformance.True(t, maps.Equal(got, want), "the table has %q, want %q", got, want)
	// With PathColumns, the same content in another folder yields different rows.
	for _, day := range []string{"day=1", "day=2"} {
		must(t, errors.Join(os.Mkdir(filepath.Join(dir, day), 0o700), os.WriteFile(filepath.Join(dir, day, "in.csv"),
			[]byte("id\nc\n"), 0o600)))
		o := options
		o.RunDir, o.DoneMarker, o.PathColumns, o.Type = filepath.Join(dir, "run of "+day), "", true, nil
		s, err := w.load(o, filepath.Join(dir, day))
		conformance.True(t, err == nil && s.Written == 1, "%s: %v, %+v", day, err, s)
	}
	for text, o := range map[string]Request{
		"FilesBy \"size\"":            {Recurring: Recurring{OnlyNew: true, FilesBy: "size"}},
		"ReloadChanged needs OnlyNew": {Recurring: Recurring{ReloadChanged: true}},
		"OnlyNew and Limit":           {Recurring: Recurring{OnlyNew: true}, Writing: Writing{Limit: 1}},
		"DoneMarker":                  {Recurring: Recurring{DoneMarker: "done"}},
	} {
		_, err := w.load(o, file)
		conformance.True(t, errors.As(err, new(*UsageError)) && strings.Contains(err.Error(), text), "%s: %v", text, err)
	}
}

func TestLibraryLoadsDatabaseServerTables(t *testing.T) {
	const made = "CREATE TABLE orders (id bigint PRIMARY KEY, name text)"
	const filled = "INSERT INTO orders VALUES (1, 'Ada'), (2, NULL), (-3, 'Grace')"
	load := func(t *testing.T, address string) {
		w := newWorld(t)
		s := conformance.Try(Load(t.Context(), Request{
			From: []string{address}, Table: "t", Target: w.target(),
			NewTable: NewTable{Create: true}, Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
		})).Must(t)
		rows := w.rows(1)
		conformance.True(t, s.Read == 3 && s.Written == 3 && len(rows) == 3 && rows["2"] == "" && rows["-3"] != "",
			"%+v, %q", s, rows)
	}
	t.Run("postgres", func(t *testing.T) {
		s := pgtest.Start(t)
		s.Exec(made + ";" + filled)
		load(t, s.Address("orders"))
	})
	t.Run("mysql", func(t *testing.T) {
		s := mysqltest.Start(t)
		s.Exec(made, filled)
		load(t, s.Address("orders"))
	})
}
