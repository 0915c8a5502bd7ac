package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/convert"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { conformance.Main(m) }

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// ask returns a request to load inputs into a new table t with the string key id, in a store that does not exist yet.
func ask(inputs ...string) *Request {
	return &Request{
		Inputs: inputs, Memory: 1 << 30,
		Target: Target{Name: "test", Table: "t", Create: true, Absent: true,
			Key:    []table.KeyColumn{{Name: "id", Type: table.String}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1}},
	}
}

func makes(t *testing.T, r *Request, admin *client.Admin) *Plan {
	t.Helper()
	p := conformance.Try(Make(t.Context(), r, admin)).Must(t)
	t.Cleanup(p.Close)
	return p
}

// refused makes a plan that must fail with a usage error of one line.
func refused(t *testing.T, r *Request, admin *client.Admin, want string) {
	t.Helper()
	p, err := Make(t.Context(), r, admin)
	if !errors.As(err, new(*UsageError)) || p != nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a usage error with %s", err, want)
		return
	}
	conformance.True(t, !strings.Contains(err.Error(), "\n"), "the error has more than one line")
}

// planned returns the planned schema as name:type, key columns first. "!" marks an inferred type.
func planned(t *testing.T, r *Request) []string {
	t.Helper()
	var got []string
	for _, c := range makes(t, r, nil).Schema.Columns {
		text := c.Name + ":" + c.Type.String()
		if c.Inferred {
			text += "!"
		}
		if c.Source != c.Name {
			text += "<" + c.Source
		}
		got = append(got, text)
	}
	return got
}

func store(t *testing.T, key ...table.KeyColumn) *client.Admin {
	t.Helper()
	admin := tabletest.Open(t, server.Options{}).Admin
	must(t, admin.Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1000}))
	return admin
}

func TestColumnsAreChosenNamedAndTyped(t *testing.T) {
	const text = "id,i,d,s,b,e\n1,5,1.5,007,true,\n2,6,2.5,8,false,\n"
	for name, tt := range map[string]struct {
		change func(*Request)
		want   []string
	}{
		"as they are": {func(r *Request) {}, []string{"id:integer!", "i:integer!", "d:double!", "s:string!", "b:boolean!",
			"e:string!"}},
		"only some": {func(r *Request) { r.Columns.Only = []string{"s", "i"} },
			[]string{"id:integer!", "i:integer!", "s:string!"}},
		"only the key": {func(r *Request) { r.Columns.Only = []string{} }, []string{"id:integer!"}},
		"excluded": {func(r *Request) { r.Columns.Exclude = []string{"e", "b", "d"} },
			[]string{"id:integer!", "i:integer!", "s:string!"}},
		"renamed": {func(r *Request) {
			r.Columns.Rename = map[string]string{"id": "key", "s": "text"}
			r.Columns.Only = []string{"s"}
			r.Target.Key = []table.KeyColumn{{Name: "key"}}
		}, []string{"key:integer!<id", "text:string!<s"}},
		"typed": {func(r *Request) {
			r.Columns.Only = []string{"s", "i"}
			r.Columns.Types = map[string]Type{"s": {Type: table.Integer}, "i": {Type: table.String}, "id": {Type: table.String}}
		}, []string{"id:string", "i:string", "s:integer"}},
		"two keys in the order given": {func(r *Request) {
			r.Columns.Only = []string{"b"}
			r.Target.Key = []table.KeyColumn{{Name: "s"}, {Name: "id", Type: table.String}}
		}, []string{"s:string!", "id:string", "b:boolean!"}},
		"a double cannot be a key": {
			func(r *Request) { r.Columns.Only = []string{}; r.Target.Key = []table.KeyColumn{{Name: "d"}} },
			[]string{"d:string!"}},
		"a dump without rows": {func(r *Request) {
			r.Inputs = []string{file(t, "in.sql", "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.t (\n    id "+
				"bigint NOT NULL\n);\n\nCOPY public.t (id) FROM stdin;\n\\.\n\n--\n-- PostgreSQL database dump complete\n--\n")}
			r.Read.Named.Table = "t"
		}, []string{"id:integer!"}},
		"a delete has key columns only": {func(r *Request) { r.Mode = table.Delete }, []string{"id:integer!"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(file(t, "in.csv", text))
			r.Target.Key = []table.KeyColumn{{Name: "id"}}
			tt.change(r)
			conformance.Equal(t, gocmp.Diff(tt.want, planned(t, r)), "", "(-want +got)")
		})
	}
}

func TestInvalidRequestsAreRefusedByName(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"no input":       {func(r *Request) { r.Inputs = nil }, "no input"},
		"no table":       {func(r *Request) { r.Target.Table = "" }, "--table"},
		"bad table name": {func(r *Request) { r.Target.Table = "a-b" }, `"a-b"`},
		"data as a header": {func(r *Request) { r.Inputs = []string{file(t, "in.csv", "1,2006-02-15\n2,2006-02-16\n")} },
			"--no-header"},
		"missing file": {func(r *Request) { r.Inputs = []string{"none.csv"} }, "none.csv"},
		"ragged records only": {func(r *Request) {
			r.Inputs, r.Target.Key[0].Type = []string{file(t, "in.csv", "id,n\n1,2,3\n4,5,6\n")}, table.Null
		}, "has a value (the first: RaggedRecord: 3 fields, the header has 2), so its type is unknown; give --pk id:TYPE"},
		"bad records only": {func(r *Request) {
			folder := filepath.Join(t.TempDir(), "n=8")
			in := file(t, "in.csv", "id,n\n1,7\n2,7\n")
			must(t, errors.Join(os.Mkdir(folder, 0o755), os.Rename(in, filepath.Join(folder, "in.csv"))))
			r.Inputs, r.Target.Key[0].Type, r.Read.Find.PathColumns = []string{folder}, table.Null, true
		}, "the first: FolderDiffers"},
		"no key":              {func(r *Request) { r.Target.Key = nil }, "--pk"},
		"no --create":         {func(r *Request) { r.Target.Create = false }, "--create"},
		"key not in the file": {func(r *Request) { r.Target.Key[0].Name = "nope" }, `"nope"`},
		"keys in one --pk":    {func(r *Request) { r.Target.Key[0].Name = "id,n" }, "repeat --pk"},
		"key twice":           {func(r *Request) { r.Target.Key = append(r.Target.Key, r.Target.Key[0]) }, "twice"},
		"five keys":           {func(r *Request) { r.Target.Key = make([]table.KeyColumn, 5) }, "5 key columns"},
		"in --columns":        {func(r *Request) { r.Columns.Only = []string{"zz"} }, `--columns names column "zz"`},
		"in --exclude":        {func(r *Request) { r.Columns.Exclude = []string{"zz"} }, `--exclude names column "zz"`},
		"in --rename": {func(r *Request) { r.Columns.Rename = map[string]string{"zz": "y"} },
			`--rename names column "zz"`},
		"in --type":    {func(r *Request) { r.Columns.Types = map[string]Type{"zz": {}} }, `--type names column "zz"`},
		"a name twice": {func(r *Request) { r.Columns.Rename = map[string]string{"n": "id"} }, `both be called "id"`},
		"a double key": {func(r *Request) {
			r.Target.Key[0].Type = 0
			r.Columns.Types = map[string]Type{"id": {Type: table.Double}}
		}, "cannot be double"},
		"key type twice": {func(r *Request) { r.Columns.Types = map[string]Type{"id": {Type: table.Integer}} },
			"--type id=integer"},
		"on-null without update": {func(r *Request) { r.DeleteNull = true }, "--mode update"},
		"empty update": {func(r *Request) { r.Mode = table.Update; r.Columns.Only = []string{} },
			"--mode update"},
		"a name the service refuses": {func(r *Request) { r.Columns.Rename = map[string]string{"n": "#n"} }, "#n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(file(t, "in.csv", "id,n\na,1\n"))
			tt.change(r)
			refused(t, r, nil, tt.want)
		})
	}
}

func TestAcceptedRaggedRecordsCountForTypes(t *testing.T) {
	for _, tt := range []struct {
		text   string
		ragged convert.Ragged
		want   []string
	}{
		{"id,v\n1,a,\n2,b,\n", convert.TruncateRagged, []string{"id:integer!", "v:string!"}},
		{"id,v\n1,1.5,\n2,7\n", convert.TruncateRagged, []string{"id:integer!", "v:double!"}},
		{"id,v,w\n1,1.5\n2,x\n3,7,z\n", convert.PadRagged, []string{"id:integer!", "v:string!", "w:string!"}},
		{"id,v,w\n1,1.5\n2,x\n", convert.PadRagged, []string{"id:integer!", "v:string!", "w:string!"}},
		{"id,v\nx,1.5,\n2,7\n", convert.RejectRagged, []string{"id:integer!", "v:integer!"}},
	} {
		r := ask(file(t, "in.csv", tt.text))
		r.Target.Key, r.Read.Convert.Ragged = []table.KeyColumn{{Name: "id"}}, tt.ragged
		conformance.Equal(t, gocmp.Diff(tt.want, planned(t, r)), "", "%q: (-want +got)", tt.text)
	}
}

func TestExistingTableGivesKey(t *testing.T) {
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	r := ask(file(t, "more.csv", "n,id\n5,2\n"))
	r.Target.Key, r.Target.Create, r.Target.Absent = nil, false, false
	p := makes(t, r, admin)
	want := []table.KeyColumn{{Name: "id", Type: table.String}}
	conformance.True(t, gocmp.Equal(p.Schema.Key, want) && !p.Create, "key %v, create %v", p.Schema.Key, p.Create)
	// The key column is first, wherever it is in the file, and its type is exactly the table's.
	c := p.Schema.Columns[0]
	conformance.True(t, c.Source == "id" && c.Type == table.String && c.Exact && !c.Inferred, "%+v", c)
	from, to := p.Window()()
	conformance.True(t, to-from == 2*1000*1000, "from %d to %d, want 1,000 seconds before and after now", from, to)

	r.Inputs = []string{file(t, "keyless.csv", "n,x\n5,2\n")}
	refused(t, r, admin, `"id"`)
	r.Inputs = []string{file(t, "other.csv", "n,id\n5,2\n")}
	r.Target.Key = []table.KeyColumn{{Name: "n"}}
	refused(t, r, admin, "primary key id:string")
}

func TestTableCreatedMeanwhileMustHaveSameKey(t *testing.T) {
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	p := makes(t, ask(file(t, "in.csv", "id,n\na,1\n")), nil)
	conformance.MustEqual(t, p.Create, true, "the plan does not make the table")
	_, made, _, err := p.MakeTable(admin)
	conformance.True(t, !made && err == nil, "with the same key: made %v, %v", made, err)
	r := ask(file(t, "in.csv", "id,n\na,1\n"))
	r.Target.Key[0].Type = table.Binary
	_, made, _, err = makes(t, r, nil).MakeTable(admin)
	conformance.True(t, !made && err != nil && strings.Contains(err.Error(), "primary key id:string"),
		"with another key: made %v, %v", made, err)
}

func TestEveryInputIsSampled(t *testing.T) {
	var inputs []string
	for i := range 30 {
		inputs = append(inputs, file(t, fmt.Sprintf("%d.csv", i), fmt.Sprintf("id,amount\n%d,5\n", i)))
	}
	inputs = append(inputs, file(t, "last.csv", "id,amount\nx,much\n"))
	conformance.Equal(t, gocmp.Diff([]string{"id:string", "amount:string!"}, planned(t, ask(inputs...))), "", "-want +got")
}

func TestEmptyInputsMakeEmptyPlan(t *testing.T) {
	p := makes(t, ask(file(t, "in.csv", "id,n\n")), nil)
	conformance.True(t, p.Empty, "a header alone is mistaken for a record")
	p = makes(t, ask(file(t, "in.csv", "id,n\n"), file(t, "more.csv", "id,n\na,1\n")), nil)
	conformance.True(t, !p.Empty, "the record of the second file is overlooked")
}

func TestWideRowsMakeSmallSplits(t *testing.T) {
	var b strings.Builder
	b.WriteString("id")
	for i := range 500 {
		fmt.Fprintf(&b, ",%s%d", strings.Repeat("n", 200), i)
	}
	b.WriteString("\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%d%s\n", i, strings.Repeat(",1", 500))
	}
	size := makes(t, ask(file(t, "in.csv", b.String())), nil).Sources[0].About().Pieces
	// Each record is about one kilobyte and becomes about 110 kilobytes.
	encoded := int(size) / 1002 * 500 * (203 + 24)
	conformance.True(t, size != 0 && encoded <= 2*blockBytes, "%d bytes become a block of %d", size, encoded)
}

func TestMemoryClassesStayWithinTotal(t *testing.T) {
	for _, memory := range []int64{1 << 20, fixedMemory, 100 << 20, 1 << 30, 64 << 30} {
		s := DivideMemory(memory)
		sum := s.Lanes + s.ReadAhead + s.InFlight
		conformance.True(t, sum > 0 && sum <= memory*2/3, "of %d bytes the classes take %d", memory, sum)
		for _, lanes := range []int{1, 100, 10_000} {
			n := s.BlockLimit(lanes)
			conformance.True(t, n >= 16<<10 && n <= 1<<20, "blocks of %d bytes for %d lanes in %d bytes", n, lanes, memory)
		}
	}
}

func byNumber[N cmp.Ordered](parse func(string) (N, error)) func(a, b string) int {
	return func(a, b string) int {
		x, _ := parse(a)
		y, _ := parse(b)
		return cmp.Compare(x, y)
	}
}

func TestMinAndMaxByNumberOrBytes(t *testing.T) {
	path, numbers := filepath.Join(t.TempDir(), "in.csv"), filepath.Join(t.TempDir(), "in.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]*rapid.Generator[string]{
			rapid.StringOfN(rapid.RuneFrom([]rune("ab\x01é")), 1, 12, -1),
			rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
			rapid.Map(rapid.IntRange(-999, 999), func(n int) string { return strconv.FormatFloat(float64(n)/8, 'f', -1, 64) }),
		}).Draw(t, "kind")
		values := rapid.SliceOfN(draw, 1, 40).Draw(t, "values")
		must(t, os.WriteFile(path, []byte("a,b\n"+strings.Join(values, ",\n")+",\n"), 0o644))
		found := conformance.Try(Inspect(context.Background(), []string{path}, Read{}, true)).Must(t)
		order := strings.Compare
		switch found[0].Columns[0].Type {
		case "integer":
			order = byNumber(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
		case "double":
			order = byNumber(func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
		}
		got := found[0].Columns[0]
		conformance.MustTrue(t, order(got.Min, slices.MinFunc(values, order)) == 0 &&
			order(got.Max, slices.MaxFunc(values, order)) == 0 && found[0].Rows == int64(len(values)) &&
			found[0].Columns[1].Nulls == found[0].Rows, "%q: %+v", values, found)
		if got.Type != "integer" {
			return
		}
		var lines strings.Builder
		for _, v := range values {
			lines.WriteString(`{"a":` + v + "}\n")
		}
		must(t, os.WriteFile(numbers, []byte(lines.String()), 0o644))
		found = conformance.Try(Inspect(context.Background(), []string{numbers}, Read{}, true)).Must(t)
		if same := found[0].Columns[0]; same.Type != "integer" || same.Min != got.Min || same.Max != got.Max {
			t.Fatalf("%q in JSON: %+v", values, found)
		}
	})
}

func TestHeadersOfJoinedFilesDoNotAffectTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.csv")
	must(t, os.WriteFile(path, []byte("id,v\n1,a\nid,v\n2,b\n"), 0o644))
	found, err := Inspect(context.Background(), []string{path}, Read{}, true)
	conformance.True(t, err == nil && found[0].Columns[0].Type == "integer" && found[0].Rejected == 1,
		"%v: %+v", err, found)
}

var numberedKey = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}

func askNumbered(inputs ...string) *Request {
	r := ask(inputs...)
	r.Target.Key = numberedKey
	return r
}

func TestAutoIncrementColumnNeedsNoInput(t *testing.T) {
	r := askNumbered(file(t, "in.csv", "user,v\na,1\n"))
	conformance.Equal(t, gocmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)), "",
		"-want +got")
	p := makes(t, r, nil)
	conformance.True(t, p.Schema.Numbered == 1 && p.Mark == DefaultMarkColumn && len(p.Schema.Ordering()) == 1,
		"%+v, marks in %q", p.Schema, p.Mark)
	r.MarkColumn = "m"
	conformance.Equal(t, makes(t, r, nil).Mark, "m", "marks")
	r.MarkColumn, r.AtLeastOnce = "", true
	if p := makes(t, r, nil); p.Mark != "" || !strings.Contains(strings.Join(p.Warnings, "\n"), "twice") {
		t.Errorf("marks in %q, warnings %q", p.Mark, p.Warnings)
	}
}

func TestAutoIncrementTableIsRecognised(t *testing.T) {
	admin := store(t, numberedKey...)
	r := ask(file(t, "in.csv", "user,v\na,1\n"))
	r.Target.Absent, r.Target.Key = false, nil
	p := makes(t, r, admin)
	conformance.True(t, p.Schema.Numbered == 1 && !p.Create, "%+v", p.Schema)
	r.Target.Key = numberedKey
	p = makes(t, r, admin)
	conformance.Equal(t, p.Schema.Numbered, 1, "%+v", p.Schema)
	r.Target.Key = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer}}
	refused(t, r, admin, "exists with the primary key user:string, seq:auto, not user:string, seq:integer")

	plain := store(t, table.KeyColumn{Name: "user", Type: table.String})
	r.Target.Key = nil
	for flag, set := range map[string]func(*Request){
		"--at-least-once": func(r *Request) { r.AtLeastOnce = true },
		"--look-first":    func(r *Request) { r.LookFirst = true },
		"--returned-keys": func(r *Request) { r.Returned = true },
		"--mark-column":   func(r *Request) { r.MarkColumn = "m" },
	} {
		other := *r
		set(&other)
		refused(t, &other, plain, flag)
	}
}

func TestInputValuesOfNumberedColumnAreExcludedOrChangeRows(t *testing.T) {
	r := askNumbered(file(t, "in.csv", "user,seq,v\na,5,1\n"))
	refused(t, r, nil, "--exclude seq")
	r.Columns.Exclude = []string{"seq"}
	conformance.Equal(t, gocmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)), "",
		"-want +got")
	r.Columns.Exclude, r.Condition = nil, table.ExpectExist
	p := makes(t, r, nil)
	conformance.True(t, p.Schema.Numbered == 0 && p.Mark == "" && p.Schema.Columns[1].Source == "seq", "%+v", p.Schema)
	r.Condition, r.Mode = table.Ignore, table.Delete
	p = makes(t, r, nil)
	conformance.Equal(t, p.Schema.Numbered, 0, "%+v", p.Schema)
}

func TestUnnumberableKeysAreRefused(t *testing.T) {
	in := file(t, "in.csv", "user,v,_tsimport\na,1,2\n")
	for want, set := range map[string]func(*Request){
		"--mode update":            func(r *Request) { r.Mode = table.Update },
		"--mode delete":            func(r *Request) { r.Mode = table.Delete },
		"--condition":              func(r *Request) { r.Condition = table.ExpectNotExist },
		"--order none":             func(r *Request) { r.Order = OrderNone },
		"--mark-column _tsimport:": func(*Request) {},
		"--mark-column v:":         func(r *Request) { r.MarkColumn = "v" },
		"--mark-column user:":      func(r *Request) { r.MarkColumn = "user" },
		"leading #":                func(r *Request) { r.MarkColumn = "#" },
		"leave one out":            func(r *Request) { r.AtLeastOnce, r.LookFirst = true, true },
		"the first column cannot be auto": func(r *Request) {
			r.Target.Key = []table.KeyColumn{{Name: "seq", Type: table.Integer, Auto: true}}
		},
		"at most one auto column": func(r *Request) {
			r.Target.Key = append(r.Target.Key[:2:2], table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		},
	} {
		r := askNumbered(in)
		set(r)
		refused(t, r, nil, want)
	}
}

func TestJobInMarksIdentifiesLoad(t *testing.T) {
	in, other := file(t, "in.csv", "user,v\na,1\n"), file(t, "other.csv", "user,v\na,1\n")
	job := makes(t, askNumbered(in), nil).Job()
	again := makes(t, askNumbered(in), nil).Job()
	conformance.True(t, again == job && len(job) == 12, "%q, then %q", job, again)
	for name, set := range map[string]func(*Request){
		"table":    func(r *Request) { r.Target.Table = "t2" },
		"instance": func(r *Request) { r.Target.Client.Instance = "i2" },
		"input":    func(r *Request) { r.Inputs = []string{other} },
		"columns":  func(r *Request) { r.Columns.Exclude = []string{"v"} },
		"type":     func(r *Request) { r.Columns.Types = map[string]Type{"v": {Type: table.String}} },
	} {
		r := askNumbered(in)
		set(r)
		conformance.True(t, makes(t, r, nil).Job() != job, "another %s makes the same job", name)
	}
}

func TestSeveralVersionsNeedUpdateMode(t *testing.T) {
	r := ask(file(t, "in.csv", "id,at,v\na,1,1\n"))
	r.Target.Define.MaxVersions = 3
	r.Read.Convert.VersionColumn = "at"
	refused(t, r, nil, "give --mode update")
	r.Mode = table.Update
	p := makes(t, r, nil)
	conformance.True(t, p.Restamp, "cells of rows without a version get no timestamp")
	r.Read.Convert.VersionColumn, r.Mode = "", table.Put
	p = makes(t, r, nil)
	conformance.True(t, !p.Restamp, "a put is stamped")
	r.Mode, r.Target.Define.MaxVersions = table.Update, 1
	p = makes(t, r, nil)
	conformance.True(t, !p.Restamp, "an update is stamped where one version is kept")
}

func planWide(t *testing.T, change func(*Request)) (*Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	row := `{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true},{"C":"part","V":"a"}]},"Attr":{"Values":[{"C":"city","V":"Bern"},{"C":"n","V":5,"IsInt":true,"TS":7},{"C":"n","V":"x","TS":5}]}}` + "\n"
	must(t, os.WriteFile(path, []byte(row+row), 0o644))
	r := &Request{Inputs: []string{path}, Memory: 1 << 30,
		Target: Target{Table: "t", Create: true, Absent: true, Key: []table.KeyColumn{{Name: "id"}, {Name: "part"}}}}
	if change != nil {
		change(r)
	}
	p, err := Make(t.Context(), r, nil)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func TestSchemaOfSelfDescribingRowsIsTheirKey(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*Request)
		schema   string   // columns with their types
		fields   []string // fields that the source delivers
		warnings []string // a part of each warning
	}{
		"as it is": {nil, "id integer, part string", []string{"id", "part"}, nil},
		"a part": {func(r *Request) { r.Target.Key = r.Target.Key[:1] }, "id integer", []string{"id", "part"},
			[]string{"column part of"}},
		"an exclude": {func(r *Request) { r.Target.Key, r.Columns.Exclude = r.Target.Key[:1], []string{"part", "none"} },
			"id integer", []string{"id", "part"}, nil},
		"of a cell": {func(r *Request) { r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "n"}) },
			"id integer, part string, n integer", []string{"id", "part", "n"}, nil},
		"renamed": {func(r *Request) {
			r.Target.Key, r.Columns.Rename = append(r.Target.Key, table.KeyColumn{Name: "town"}),
				map[string]string{"city": "town"}
		}, "id integer, part string, town string", []string{"id", "part", "city"}, nil},
		"computed": {func(r *Request) {
			r.Target.Key[0] = table.KeyColumn{Name: "h"}
			r.Columns.Keys, r.Columns.Set = []keyexpr.Column{{Name: "h", Expr: `pad(id, 5) + city`}},
				[]keyexpr.Column{{Name: "late", Expr: "n > 3"}}
		}, "h string, part string, late boolean", []string{"id", "part", "city", "n"}, nil},
		"unknown": {func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: `text(cty)`}} },
			"id integer, part string, x string", []string{"id", "part", "cty"}, []string{"column cty"}},
		"versions": {func(r *Request) { r.Read.Convert.VersionColumn = "n" }, "id integer, part string",
			[]string{"id", "part", "n"}, nil},
		"a table": {func(r *Request) { r.Target.Table = "t_{city}" }, "id integer, part string",
			[]string{"id", "part", "city"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := conformance.Try(planWide(t, tt.change)).Must(t)
			var schema []string
			for _, c := range p.Schema.Columns {
				schema = append(schema, c.Name+" "+c.Type.String())
			}
			got := strings.Join(schema, ", ")
			conformance.True(t, got == tt.schema && p.Wide, "schema %s, want %s", got, tt.schema)
			conformance.Same(t, p.Sources[0].About().Columns, tt.fields, "fields")
			if len(p.Warnings) != len(tt.warnings) || len(tt.warnings) > 0 && !strings.Contains(p.Warnings[0], tt.warnings[0]) {
				t.Errorf("warnings %q, want %q", p.Warnings, tt.warnings)
			}
		})
	}
}

func TestSelfDescribingRowsAreRefused(t *testing.T) {
	for says, change := range map[string]func(*Request){
		"--exclude id: the column is part of the primary key": func(r *Request) { r.Columns.Exclude = []string{"id"} },
		`expression "city +"`:       func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: "city +"}} },
		`would both be called "id"`: func(r *Request) { r.Columns.Rename = map[string]string{"part": "id"} },
		"the column is set twice":   func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "id", Expr: "1"}} },
		"--on-null delete needs":    func(r *Request) { r.DeleteNull = true },
	} {
		_, err := planWide(t, change)
		conformance.True(t, err != nil && strings.Contains(err.Error(), says), "%v, want %s", err, says)
	}
}

// A resumed load must treat cells as before, although the schema does not show how.
func TestFactsIncludeCellOptions(t *testing.T) {
	facts := func(change func(*Request)) []progress.Fact {
		p := conformance.Try(planWide(t, change)).Must(t)
		all := conformance.Try(p.Facts()).Must(t)
		return slices.DeleteFunc(all, func(f progress.Fact) bool { return f.Input })
	}
	same := facts(nil)
	for name, change := range map[string]func(*Request){
		`--columns ["n"]`:       func(r *Request) { r.Columns.Only = []string{"n"} },
		`--exclude ["n"]`:       func(r *Request) { r.Columns.Exclude = []string{"n"} },
		`--rename map["n":"m"]`: func(r *Request) { r.Columns.Rename = map[string]string{"n": "m"} },
		"--type n=string":       func(r *Request) { r.Columns.Types = map[string]Type{"n": {Type: table.String}} },
	} {
		var differ []string
		for i, f := range facts(change) {
			if f != same[i] {
				differ = append(differ, f.Name+" "+f.Value)
			}
		}
		conformance.Same(t, differ, []string{name}, "%s: the facts differ", name)
	}
}
