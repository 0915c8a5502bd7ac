package plan

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Increments are refused if they could be applied twice, out of order or inexactly.
func TestIncrementsThatCannotBeExactAreRefused(t *testing.T) {
	const text = "id,n,d\na,1,1.5\n"
	for want, set := range map[string]func(*Request){
		"leave --condition out":         func(r *Request) { r.Condition = table.ExpectExist },
		"leave --order none out":        func(r *Request) { r.Order = OrderNone },
		"leave --version-column out":    func(r *Request) { r.Read.Convert.VersionColumn = "n" },
		"a load into several tables":    func(r *Request) { r.Target.Table = "t_{text(id)}" },
		"--at-least-once is only for":   func(r *Request) { r.AtLeastOnce = true },
		"--look-first is only for":      func(r *Request) { r.LookFirst = true },
		"--returned-keys is only for":   func(r *Request) { r.Returned = true },
		"column d is double":            func(*Request) {},
		"--on-null delete needs":        func(r *Request) { r.DeleteNull = true },
		"--mark-column n:":              func(r *Request) { r.MarkColumn, r.Columns.Exclude = "n", []string{"d"} },
		"at least one attribute column": func(r *Request) { r.Columns.Exclude = []string{"n", "d"} },
		"column n is string":            func(r *Request) { r.Columns.Types = map[string]Type{"n": {Type: table.String}} },
		"has the auto-increment key column": func(r *Request) {
			r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "seq", Type: table.Integer, Auto: true})
		},
	} {
		r := ask(file(t, "in.csv", text))
		r.Mode = table.Increment
		set(r)
		refused(t, r, nil, want)
	}
	r := ask(file(t, "in.csv", text))
	r.Mode, r.Columns.Exclude = table.Increment, []string{"d"}
	conformance.True(t, makes(t, r, nil).Mark != "", "rows that are added to have no mark of the records that were added")
}

func TestSecretsOfAddressesAreNotShown(t *testing.T) {
	r := &Request{Inputs: []string{"a.csv", "https://ann:pass@host/x.csv?token=abc&page=2"}}
	agrees(t, fmt.Sprintf("%q", r.ShownInputs()))
}

func TestTemplateAsFileName(t *testing.T) {
	for _, name := range []string{"orders", "t_{month(at)}", "{text(a)}", `t_{format_time(at, "2006/01")}`} {
		agrees(t, name+": "+FileName(name))
	}
}

func policyOf(t *testing.T, last string) *lifecycle.Policy {
	return conformance.Try(lifecycle.Parse("p", []byte("period: month\nclasses:\n- {up_to: 1}\n- "+last+"\n"))).Must(t)
}

func TestUnsuitablePolicyIsRefused(t *testing.T) {
	for want, set := range map[string]func(*Request){
		"has no period":             func(r *Request) { r.Target.Table = "t" },
		"--age-policy":              func(r *Request) { r.Target.Table = "t_{text(id)}" },
		"--age-policy: ":            func(r *Request) { r.Target.Table = "t_{day(at)}" },
		"--mode delete writes none": func(r *Request) { r.Mode = table.Delete },
		"--table":                   func(r *Request) { r.Target.Table, r.Target.Policy = "t_{month(at}", nil },
		"--table t_{month(no)}":     func(r *Request) { r.Target.Table, r.Target.Policy = "t_{month(no)}", nil },
		"in an object store":        func(r *Request) { r.Target.Policy = policyOf(t, "{archive: 'OSS://bucket/old'}") },
		"omits no rows by age":      func(r *Request) { r.Target.Policy = policyOf(t, "{drop: true}") },
	} {
		r := ask(file(t, "in.csv", "id,at\na,2024-05-06\n"))
		r.Target.Table, r.Target.Policy = "t_{month(at)}", policyOf(t, "{archive: /old}")
		set(r)
		refused(t, r, nil, want)
	}
}

// The counts of a load that only archives look useful, although nothing goes to a table.
func TestLoadThatOnlyArchivesWarns(t *testing.T) {
	for _, rows := range []string{"a,2020-05-06\nb,2020-07-01\n", "a,2020-05-06\n", "a,2020-05-06\nb,2024-06-30\n",
		"a,never\n"} {
		r := ask(file(t, "in.csv", "id,at\n"+rows))
		r.Target.Table, r.Target.Policy = "t_{month(at)}", policyOf(t, "{archive: /old}")
		r.Target.PolicyNow = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
		makes(t, r, nil)
	}
}

// keyed is a source whose rows have an old key.
type keyed struct {
	source.Source
	about source.About
}

func (k keyed) About() source.About { return k.about }

func TestColumnsOfOldAndNewKeysHaveDistinctNames(t *testing.T) {
	unique := []source.KeyColumn{{Name: "room", Kind: record.String}, {Name: "id", Kind: record.Integer}}
	p := &Plan{Wide: true, Sources: []*Source{{Source: keyed{about: source.About{Unique: unique}}}},
		Schema: &table.Schema{Numbered: 1}}
	for _, key := range [][]string{{"room", "id"}, {"old_id", "id"}} {
		p.Schema.Key = nil
		for _, name := range key {
			p.Schema.Key = append(p.Schema.Key, table.KeyColumn{Name: name})
		}
		agrees(t, fmt.Sprintf("%q", p.ReturnedHeader()))
	}
	p.Wide = false
	got := p.ReturnedHeader()
	conformance.True(t, len(got) == 4 && p.OldKey() == nil, "rows of files have no old key: %q", got)
}

// A cell older than the table's time to live would expire as soon as it is written.
func TestTimestampsOlderThanTTLAreRefused(t *testing.T) {
	for _, live := range []int{-1, 86400, 5 * 86400} {
		define := table.Definition{TimeToLive: live, MaxVersions: 1, MaxDeviation: 3 * 86400}
		for _, p := range []*Plan{{Request: &Request{}, table: &client.Table{Definition: define}},
			{Request: &Request{Target: Target{Define: define}}}} { // a table that is there, and a new one
			now := time.UnixMilli(1e12)
			p.Request.Service = func() (earliest, latest time.Time) { return now, now }
			from, to := p.Window()()
			agrees(t, fmt.Sprintf("ttl %d: %v before, %v after", live, now.Sub(time.UnixMilli(from)), time.UnixMilli(to).Sub(now)))
		}
	}
}

// wide returns a CSV file of the given columns besides id, in which each record has that many values.
func wide(columns, values int) string {
	var b strings.Builder
	b.WriteString("id")
	for i := range columns {
		fmt.Fprintf(&b, ",c%d", i)
	}
	for row := range 3 {
		fmt.Fprintf(&b, "\n%d", row)
		for i := range columns {
			b.WriteByte(',')
			if i < values {
				b.WriteByte('7')
			}
		}
	}
	return b.String() + "\n"
}

func TestInputsWithoutLoadableRowAreRefusedEarly(t *testing.T) {
	for _, columns := range []int{1025, 20_000} {
		refused(t, ask(file(t, "a.csv", wide(columns, columns))), nil,
			fmt.Sprintf("has %d columns besides the primary key, but a row has at most 1024", columns))
	}
	makes(t, ask(file(t, "a.csv", wide(1024, 1024))), nil)
	makes(t, ask(file(t, "a.csv", wide(3000, 1024))), nil) // each record lacks most of the columns
	refused(t, ask(file(t, "a.csv", wide(3000, 1025))), nil, "--columns")

	refused(t, ask(file(t, "a.csv", wide(20_000, 1))), nil, "has 20000 columns") // no row can have such a header

	r := ask(file(t, "a.csv", wide(20_000, 20_000)))
	r.Columns.Only = []string{"c5", "c19999"}
	conformance.Equal(t, len(makes(t, r, nil).Schema.Columns), 3, "columns")

	var line strings.Builder
	line.WriteString(`{"id":"a"`)
	for i := range 2000 {
		fmt.Fprintf(&line, `,"m%d":1`, i)
	}
	refused(t, ask(file(t, "a.jsonl", line.String()+"}\n")), nil, "2000 columns")
}

// A page of 24 MB is too large even to sample its types.
func TestOversizedPagesAreRefusedBeforeTableCreation(t *testing.T) {
	type row struct {
		ID   int64  `parquet:"id"`
		Text string `parquet:"text,zstd"`
	}
	var b bytes.Buffer
	rows := make([]row, 2400)
	for i := range rows {
		rows[i] = row{int64(i), strings.Repeat("t", 10_000)}
	}
	must(t, parquet.Write(&b, rows, parquet.PageBufferSize(64<<20), parquet.DataPageStatistics(false)))
	in := file(t, "a.parquet", b.String())
	for _, c := range []struct {
		memory  int64
		columns []string
		refused bool
	}{{48 << 20, nil, true}, {48 << 20, []string{"id"}, false}, {128 << 20, nil, false}} {
		r := ask(in)
		r.Memory, r.Columns.Only = c.memory, c.columns
		_, err := try(t, r, nil)
		refused := errors.Is(err, source.ErrMemory) && strings.Contains(err.Error(), "give more with --memory")
		conformance.True(t, refused == c.refused && (refused || err == nil), "%d MiB, %q: %v", c.memory>>20, c.columns, err)
	}
}

func TestDecisionsShowContradictions(t *testing.T) {
	makes(t, ask(file(t, "a.csv", "id,v\n1,x\n"), file(t, "b.csv", "id,v\n2,x\n"), file(t, "c.jsonl",
		`{"id":3,"v":"x"}`+"\n")), nil)
	makes(t, ask(file(t, "a.csv", "id,v,w\n1,23.0,8.76712776820554e-05\n2,68.60,1.5\n")), nil)
}

func TestTypedColumnsTakeTextsThatSurviveRoundTrip(t *testing.T) {
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, `{"id":%d,"n":%d,"f":2.5,"s":"x","b":true,"mix":%d}`+"\n", i, i, i)
	}
	lines.WriteString(`{"id":"1000","n":1,"f":2.5,"s":"x","b":false,"mix":"x"}` + "\n")
	typed, texts := file(t, "a.jsonl", lines.String()), file(t, "b.csv", "id,n,f,s,b,mix\n2001,7,10.50,8,true,5\n")
	for _, order := range [][]string{{typed, texts}, {texts, typed}} {
		r := ask(order...)
		r.Target.Key[0].Type = table.Null
		makes(t, r, nil)
	}
}

func TestTypeTagsInAnyInputApplyToAll(t *testing.T) {
	plain := file(t, "a.jsonl", `{"id":"x","v":1}`+"\n")
	tagged := file(t, "b.jsonl", `{"id":"y","v":2}`+"\n"+
		`{"id":{"$oid":"5d505646cf6d4fe581014ab2"},"v":{"$numberLong":"3"}}`+"\n")
	csv := file(t, "c.csv", "id,v\nz,4\n")
	for _, order := range [][]string{{plain, tagged, csv}, {csv, tagged, plain}, {plain, csv, "-", tagged}} {
		r := ask(order...)
		r.Read.Stdin = strings.NewReader(`{"id":"s","v":5}` + "\n")
		makes(t, r, nil)
	}
	r := ask(plain, tagged)
	r.Read.Format = reader.JSONLines
	makes(t, r, nil)
}
