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

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/convert"
)

func TestMain(m *testing.M) { conformance.Main(m) }

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// ask asks for the inputs in a new table t with the string key id, in a store that does not exist yet.
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

// refused makes a plan that must end with a usage error of one line.
func refused(t *testing.T, r *Request, admin *client.Admin, want string) {
	t.Helper()
	p, err := Make(t.Context(), r, admin)
	if !errors.As(err, new(*UsageError)) || p != nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a usage error with %s", err, want)
		return
	}
	conformance.True(t, !strings.Contains(err.Error(), "\n"), "the error has more than one line")
}

// planned returns the planned schema as name:type, key columns first; "!" marks an inferred type.
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

func TestWrongUseIsRefusedByName(t *testing.T) {
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

func TestAnExistingTableGivesTheKey(t *testing.T) {
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	r := ask(file(t, "more.csv", "n,id\n5,2\n"))
	r.Target.Key, r.Target.Create, r.Target.Absent = nil, false, false
	p := makes(t, r, admin)
	want := []table.KeyColumn{{Name: "id", Type: table.String}}
	conformance.True(t, gocmp.Equal(p.Schema.Key, want) && !p.Create, "key %v, create %v", p.Schema.Key, p.Create)
	// The key column is first regardless of its place in the file, and its type is kept exactly.
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

func TestATableCreatedMeanwhileMustHaveTheSameKey(t *testing.T) {
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
	// Each record is about a kilobyte and becomes about 110.
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
