package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"github.com/parquet-go/parquet-go"
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
	return conformance.Try(try(t, r, admin)).Must(t)
}

var update = flag.Bool("update", false, "write the golden file of plans anew, which needs all tests")

var golden, _ = filepath.Abs("testdata/plans.txt") // tests change the working folder

// wanted has the lines of the golden file: a test, and what a plan of it decides and says, or why there is none.
var wanted = sync.OnceValue(func() map[string]bool {
	var text []byte
	if !*update {
		text, _ = os.ReadFile(golden) // without it, no plan is as wanted
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		all[line] = true
	}
	return all
})

// unstable matches folders of tests, which have other names each time, and empty fields.
var unstable = regexp.MustCompile(`[^ "'=(\[]*/\d\d\d/| \w+:(false|<nil>|null)`)

// try makes a plan, and looks it up in the golden file.
func try(t *testing.T, r *Request, admin *client.Admin) (*Plan, error) {
	t.Helper()
	r.Read.Parsers = 2 // splits depend on it
	p, err := Make(t.Context(), r, admin)
	text := fmt.Sprint(err)
	if err == nil {
		t.Cleanup(p.Close)
		facts, err := p.Facts()
		facts = slices.DeleteFunc(facts, func(f progress.Fact) bool {
			return f.Input || slices.Contains([]string{"", "0", "false", "null", "auto"}, f.Value)
		})
		columns := slices.Clone(p.Schema.Columns[:min(8, len(p.Schema.Columns))])
		for i := range columns {
			columns[i].Time = nil // facts show it
		}
		var fields, sources, bounds []string
		for _, b := range p.Bounds {
			bounds = append(bounds, cmp.Or(string(b.Bytes), fmt.Sprint(b.Int)))
		}
		for _, f := range p.Fields[:min(8, len(p.Fields))] {
			fields = append(fields, f.Source)
		}
		for _, s := range p.Sources[:min(3, len(p.Sources))] {
			h := p.Headers[s.Header]
			columns := s.About().Columns
			sources = append(sources, fmt.Sprintf("%q %s %s %d %q", h.Text[:min(99, len(h.Text))], h.Kind, h.Dir,
				s.About().Pieces, columns[:min(8, len(columns))]))
		}
		text = fmt.Sprintf("key %v, columns %+v, fields %q, bounds %q, %d bytes, %d sources %v, warnings %q, %q, %q, "+
			"decisions %+v, notes %q, computed, create, distinct, parallel, empty, wide, restamp: %v, facts %v, %v, mark %q, "+
			"units %v", p.Schema.Key, columns, fields, bounds, p.Bytes, len(p.Sources), sources, p.Warnings, p.Changed,
			p.Unread, p.Decisions, p.Notes, []bool{p.Makers != nil, p.Create, p.Distinct, p.Parallel, p.Empty, p.Wide,
				p.Restamp}, facts, err, p.Mark, p.Units())
	}
	agrees(t, text)
	return p, err
}

// agrees looks up a text in the golden file.
func agrees(t *testing.T, text string) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	line := fmt.Sprintf("%s: %.2000s\n", name, unstable.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), ""))
	if wanted()[line] = wanted()[line] || *update; *update {
		must(t, os.WriteFile(golden, []byte(strings.Join(slices.Sorted(maps.Keys(wanted())), "")), 0o644))
	}
	conformance.Equal(t, wanted()[line], true, "%s has no line %s", golden, line)
}

// refused makes a plan that must fail with a usage error of one line.
func refused(t *testing.T, r *Request, admin *client.Admin, want string) {
	t.Helper()
	p, err := try(t, r, admin)
	if !errors.As(err, new(*UsageError)) || p != nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a usage error with %s", err, want)
		return
	}
	conformance.True(t, !strings.Contains(err.Error(), "\n"), "the error has more than one line")
}

func store(t *testing.T, key ...table.KeyColumn) *client.Admin {
	t.Helper()
	admin := tabletest.Open(t, server.Options{}).Admin
	must(t, admin.Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1000}))
	return admin
}

func TestColumnsAreChosenNamedAndTyped(t *testing.T) {
	for _, change := range []func(*Request){
		func(r *Request) {},
		func(r *Request) { r.Columns.Only = []string{"s", "i"} },
		func(r *Request) { r.Columns.Only = []string{} },
		func(r *Request) { r.Columns.Exclude = []string{"e", "b", "d"} },
		func(r *Request) {
			r.Columns.Rename, r.Columns.Only = map[string]string{"id": "key", "s": "text"}, []string{"s"}
			r.Target.Key = []table.KeyColumn{{Name: "key"}}
		},
		func(r *Request) {
			r.Columns.Only = []string{"s", "i"}
			r.Columns.Types = map[string]Type{"s": {Type: table.Integer}, "i": {Type: table.String}, "id": {Type: table.String}}
		},
		func(r *Request) { // two keys in the order given
			r.Columns.Only = []string{"b"}
			r.Target.Key = []table.KeyColumn{{Name: "s"}, {Name: "id", Type: table.String}}
		},
		func(r *Request) { r.Columns.Only, r.Target.Key = []string{}, []table.KeyColumn{{Name: "d"}} }, // not a double
		func(r *Request) {
			r.Inputs = []string{file(t, "in.sql", "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.t (\n    id "+
				"bigint NOT NULL\n);\n\nCOPY public.t (id) FROM stdin;\n\\.\n\n--\n-- PostgreSQL database dump complete\n--\n")}
			r.Read.Named.Table = "t"
		},
		func(r *Request) { r.Mode = table.Delete },
	} {
		r := ask(file(t, "in.csv", "id,i,d,s,b,e\n1,5,1.5,007,true,\n2,6,2.5,8,false,\n"))
		r.Target.Key = []table.KeyColumn{{Name: "id"}}
		change(r)
		makes(t, r, nil)
	}
}

func TestInvalidRequestsAreRefusedByName(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"no input":         func(r *Request) { r.Inputs = nil },
		"no table":         func(r *Request) { r.Target.Table = "" },
		"bad table name":   func(r *Request) { r.Target.Table = "a-b" },
		"data as a header": func(r *Request) { r.Inputs = []string{file(t, "in.csv", "1,2006-02-15\n2,2006-02-16\n")} },
		"missing file":     func(r *Request) { r.Inputs = []string{"none.csv"} },
		"ragged records only": func(r *Request) {
			r.Inputs, r.Target.Key[0].Type = []string{file(t, "in.csv", "id,n\n1,2,3\n4,5,6\n")}, table.Null
		},
		"no value of the key": func(r *Request) {
			r.Inputs, r.Target.Key[0].Type = []string{file(t, "in.csv", "id,n\n,1\n")}, table.Null
		},
		"bad records only": func(r *Request) {
			folder := filepath.Join(t.TempDir(), "n=8")
			in := file(t, "in.csv", "id,n\n1,7\n2,7\n")
			must(t, errors.Join(os.Mkdir(folder, 0o755), os.Rename(in, filepath.Join(folder, "in.csv"))))
			r.Inputs, r.Target.Key[0].Type, r.Read.Find.PathColumns = []string{folder}, table.Null, true
		},
		"no key":              func(r *Request) { r.Target.Key = nil },
		"no --create":         func(r *Request) { r.Target.Create = false },
		"key not in the file": func(r *Request) { r.Target.Key[0].Name = "nope" },
		"keys in one --pk":    func(r *Request) { r.Target.Key[0].Name = "id,n" },
		"key twice":           func(r *Request) { r.Target.Key = append(r.Target.Key, r.Target.Key[0]) },
		"five keys":           func(r *Request) { r.Target.Key = make([]table.KeyColumn, 5) },
		"in --columns":        func(r *Request) { r.Columns.Only = []string{"zz"} },
		"in --exclude":        func(r *Request) { r.Columns.Exclude = []string{"zz"} },
		"in --rename":         func(r *Request) { r.Columns.Rename = map[string]string{"zz": "y"} },
		"in --type":           func(r *Request) { r.Columns.Types = map[string]Type{"zz": {}} },
		"a name twice":        func(r *Request) { r.Columns.Rename = map[string]string{"n": "id"} },
		"a double key": func(r *Request) {
			r.Target.Key[0].Type = 0
			r.Columns.Types = map[string]Type{"id": {Type: table.Double}}
		},
		"key type twice":             func(r *Request) { r.Columns.Types = map[string]Type{"id": {Type: table.Integer}} },
		"on-null without update":     func(r *Request) { r.DeleteNull = true },
		"empty update":               func(r *Request) { r.Mode = table.Update; r.Columns.Only = []string{} },
		"a name the service refuses": func(r *Request) { r.Columns.Rename = map[string]string{"n": "#n"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(file(t, "in.csv", "id,n\na,1\n"))
			change(r)
			refused(t, r, nil, "")
		})
	}
}

func TestAcceptedRaggedRecordsCountForTypes(t *testing.T) {
	for _, tt := range []struct {
		text   string
		ragged convert.Ragged
	}{{"id,v\n1,a,\n2,b,\n", convert.TruncateRagged}, {"id,v\n1,1.5,\n2,7\n", convert.TruncateRagged},
		{"id,v,w\n1,1.5\n2,x\n3,7,z\n", convert.PadRagged}, {"id,v,w\n1,1.5\n2,x\n", convert.PadRagged},
		{"id,v\nx,1.5,\n2,7\n", convert.RejectRagged}} {
		r := ask(file(t, "in.csv", tt.text))
		r.Target.Key, r.Read.Convert.Ragged = []table.KeyColumn{{Name: "id"}}, tt.ragged
		makes(t, r, nil)
	}
}

func TestExistingTableGivesKey(t *testing.T) {
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	r := ask(file(t, "more.csv", "n,id\n5,2\n"))
	r.Target.Key, r.Target.Create, r.Target.Absent = nil, false, false
	makes(t, r, admin)
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
	makes(t, ask(inputs...), nil)
}

func TestEmptyInputsMakeEmptyPlan(t *testing.T) {
	makes(t, ask(file(t, "in.csv", "id,n\n")), nil)
	makes(t, ask(file(t, "in.csv", "id,n\n"), file(t, "more.csv", "id,n\na,1\n")), nil)
	for _, texts := range [][]string{{"", "id,n\na,1\n", "id,n\nb,1\n"}, {"id,n\na,1\n", "", "id,n\nb,1\n"}} {
		conformance.Equal(t, len(makes(t, ask(filesIn(t, "csv", texts...)), nil).Sources), 2, "files with records")
	}
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
	for _, memory := range []int64{1 << 20, fixedMemory, 16 << 20, 64 << 20, 100 << 20, 1 << 30, 64 << 30} {
		s := DivideMemory(memory)
		sum := s.Lanes + s.ReadAhead + s.InFlight
		conformance.True(t, sum > 0 && sum <= memory*2/3, "of %d bytes the classes take %d", memory, sum)
		text := fmt.Sprintf("%d bytes, limit %d: %+v, %+v", memory, MemoryLimit(memory), s, ReadingMemory(memory))
		for _, n := range []int{1, 2, 64, 10_000} {
			text += fmt.Sprintf("; %d: blocks %d, pages %d", n, s.BlockLimit(n), s.PagesAhead(n))
		}
		agrees(t, text)
	}
}

// TestInspectionsSayWhatInputsHold compares all that inspecting inputs says, of their beginnings and of all records.
func TestInspectionsSayWhatInputsHold(t *testing.T) {
	dir := t.TempDir()
	long := "id,v\n" + strings.Repeat("1,"+strings.Repeat("w", 1021)+"\n", inspectBytes>>10+1)
	for name, text := range map[string]string{"joined.csv": "id,v\n1,a\nid,v\n2,b\n", "empty.csv": "", "long.csv": long,
		"bad.csv": "a,b\n1\n1,\xff\n2,\n,-3\n9007199254740993,x\n9007199254740992,y\n" + strings.Repeat("w", 200) + ",z\n",
		"a.jsonl": `{"a":"x","c":1.5}` + "\n" + `{"a":"y","c":2,"d":[1]}` + "\n{\n", "packed.csv.gz": packed(t, long),
		"order.jsonl": "{\"a\":9007199254740993}\n{\"a\":9007199254740992}\n{\"a\":9007199254740994}\n{\"a\":-3}\n",
		"numbers.csv": "1,2.0,07\n3,4.0,8\n3,5.00,9\n"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	lines := []string{"zzz,abcdefgh,-9007199254740993,-0.5,7", "zzz\x01,abcdefghi,9007199254740993,1e+300,-8",
		"a\x01,zzzzzzzz,-9007199254740992,0.5,7", "a,zzzzzzzzz,9007199254740992,-1e+300,9",
		"b,m,0,0.25,9007199254740992", "bbb,m,5,3.5,9007199254740993"}
	for i := range lines { // the least and the greatest values are in each place
		text := strings.Join(append(slices.Clone(lines[i:]), lines[:i]...), "\n")
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("order%d.csv", i)), []byte("t,u,i,d,n\n"+text+"\n"), 0o644))
	}
	other := Read{Options: reader.Options{NoHeader: true}, Convert: convert.Options{Ragged: convert.PadRagged}}
	t.Chdir(dir)
	for _, args := range [][]string{{"joined.csv"}, {"empty.csv"}, {"long.csv"}, {"packed.csv.gz"}, {"bad.csv"},
		{"numbers.csv"}, {"a.jsonl", "empty.csv", "bad.csv", "joined.csv"}, {"none.csv"},
		{"order0.csv"}, {"order1.csv"}, {"order2.csv"}, {"order3.csv"}, {"order4.csv"}, {"order5.csv"}, {"order.jsonl"},
		{parquetFile(t, "ms.parquet", parquet.Timestamp(parquet.Millisecond))}} {
		for i, r := range []Read{{}, other, {}} {
			found, err := Inspect(t.Context(), args, r, i == 2)
			text := conformance.Try(json.Marshal(found)).Must(t)
			agrees(t, fmt.Sprintf("%v %d: %s, %v", filepath.Base(args[0]), i, text, err))
		}
	}
	for _, parts := range []int{1, 3, 4} { // the fourth part cannot be read
		from := sourcetest.NewKeyed("rows", 50)
		from.Parts, from.OnPage = parts, func(part int, _ int64) error {
			return map[bool]error{true: errors.New("it is lost")}[part == 3]
		}
		for _, count := range []bool{false, true} {
			found, err := InspectTable(t.Context(), "rows", from, Read{}, count)
			_, refusal := InspectTable(t.Context(), "rows", noParts{from}, Read{}, count)
			agrees(t, fmt.Sprintf("%d parts: %+v, %v, %v", parts, found, err, refusal))
		}
	}
}

type noParts struct{ source.Origin }

func (noParts) Divide(context.Context) ([]byte, error) {
	return nil, errors.New("it cannot be divided")
}

var numberedKey = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}

func askNumbered(inputs ...string) *Request {
	r := ask(inputs...)
	r.Target.Key = numberedKey
	return r
}

func TestAutoIncrementTableIsRecognised(t *testing.T) {
	admin := store(t, numberedKey...)
	r := ask(file(t, "in.csv", "user,v\na,1\n"))
	r.Target.Absent, r.Target.Key = false, nil
	conformance.Equal(t, makes(t, r, admin).Schema.Numbered, 1, "numbered")
	r.Target.Key = numberedKey
	conformance.Equal(t, makes(t, r, admin).Schema.Numbered, 1, "numbered")
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
	for _, change := range []func(*Request){
		func(*Request) {}, // refused
		func(r *Request) { r.Inputs = []string{file(t, "in.csv", "user,v\na,1\n")} },
		func(r *Request) { r.Columns.Exclude, r.MarkColumn = []string{"seq"}, "m" },
		func(r *Request) { r.Columns.Exclude, r.AtLeastOnce = []string{"seq"}, true },
		func(r *Request) { r.Condition = table.ExpectExist },
		func(r *Request) { r.Mode = table.Delete },
	} {
		r := askNumbered(file(t, "in.csv", "user,seq,v\na,5,1\n"))
		change(r)
		_, _ = try(t, r, nil)
	}
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
	conformance.True(t, makes(t, askNumbered(in), nil).Job() == job && len(job) == 12, "the job is %q, then another", job)
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
	makes(t, r, nil)
	r.Read.Convert.VersionColumn, r.Mode = "", table.Put
	makes(t, r, nil)
	r.Mode, r.Target.Define.MaxVersions = table.Update, 1
	makes(t, r, nil)
}

func TestSchemaOfSelfDescribingRowsIsTheirKey(t *testing.T) {
	row := `{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true},{"C":"part","V":"a"}]},"Attr":{"Values":[{"C":"city","V":"Bern"},{"C":"n","V":5,"IsInt":true,"TS":7},{"C":"n","V":"x","TS":5}]}}` + "\n"
	path := file(t, "a.ndjson", row+row)
	for _, change := range []func(*Request){func(*Request) {},
		func(r *Request) { r.Target.Key = r.Target.Key[:1] },
		func(r *Request) { r.Target.Key, r.Columns.Exclude = r.Target.Key[:1], []string{"part", "none"} },
		func(r *Request) { r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "n"}) }, // of a cell
		func(r *Request) {
			r.Target.Key, r.Columns.Rename = append(r.Target.Key, table.KeyColumn{Name: "town"}),
				map[string]string{"city": "town"}
		},
		func(r *Request) {
			r.Target.Key[0] = table.KeyColumn{Name: "h"}
			r.Columns.Keys, r.Columns.Set = []keyexpr.Column{{Name: "h", Expr: `pad(id, 5) + city`}},
				[]keyexpr.Column{{Name: "late", Expr: "n > 3"}}
		},
		func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: `text(cty)`}} }, // unknown
		func(r *Request) { r.Read.Convert.VersionColumn = "n" },
		func(r *Request) { r.Target.Table = "t_{city}" },
		// A resumed load must treat cells as before, although the schema does not show how: the facts do.
		func(r *Request) { r.Columns.Only = []string{"n"} },
		func(r *Request) { r.Columns.Exclude = []string{"n"} },
		func(r *Request) { r.Columns.Rename = map[string]string{"n": "m"} },
		func(r *Request) { r.Columns.Types = map[string]Type{"n": {Type: table.String}} },
		// These are refused.
		func(r *Request) { r.Columns.Exclude = []string{"id"} },
		func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: "city +"}} },
		func(r *Request) { r.Columns.Rename = map[string]string{"part": "id"} },
		func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "id", Expr: "1"}} },
		func(r *Request) { r.DeleteNull = true },
	} {
		r := &Request{Inputs: []string{path}, Memory: 1 << 30,
			Target: Target{Table: "t", Create: true, Absent: true, Key: []table.KeyColumn{{Name: "id"}, {Name: "part"}}}}
		change(r)
		_, _ = try(t, r, nil) // the golden file says which are refused
	}
}
