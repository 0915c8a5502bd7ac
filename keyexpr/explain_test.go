package keyexpr

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/table"
)

// design compiles the columns of a key, each as --pk gives it.
func design(t *testing.T, env Env, columns ...string) Design {
	t.Helper()
	d := Design{Inputs: env.Columns}
	for _, text := range columns {
		col, err := ParseColumn(text)
		must(t, err)
		p, err := CompileColumn(col, env)
		must(t, err)
		d.Columns, d.Programs = append(d.Columns, col), append(d.Programs, p)
	}
	return d
}

// records are what the published designs are about: logs and time series, and trade records.
var records = []Input{{"host", table.String}, {"event", table.String}, {"time", table.Integer}, {"seller", table.String}, {"buyer", table.String}, {"order", table.Integer}}

func TestThePublishedDesignsComeOutAndAreExplained(t *testing.T) {
	env := Env{Columns: records, SaltColumns: []string{"order"}}
	values := []table.Value{str("web1"), str("login"), num(1617242400), str("s7"), str("b9"), num(42)}
	for _, tt := range []struct {
		key, want []string
		ranges    map[string]string
	}{
		{[]string{"host", "event", "time"}, []string{"web1", "login", "1617242400"},
			map[string]string{"host": "yes", "event": "with a prefix", "time": "with a prefix"}},
		{[]string{"host", "event", "time=desc(time)"}, []string{"web1", "login", "9223372035237533407"},
			map[string]string{"host": "yes", "event": "with a prefix", "time": "with a prefix"}},
		{[]string{`bucket=format_time(time, "2006010215", "s")`, "time", "host", "event"}, []string{"2021040102", "1617242400", "web1", "login"},
			map[string]string{"time": "yes", "host": "with a prefix", "event": "with a prefix"}},
		{[]string{`bucket=bucket(time - time % 3600, 7)`, "time", "host"}, []string{"4", "1617242400", "web1"},
			map[string]string{"time": "many", "host": "with a prefix"}},
		{[]string{"seller", "time", "order"}, []string{"s7", "1617242400", "42"},
			map[string]string{"seller": "yes", "time": "with a prefix", "order": "with a prefix"}},
		{[]string{"buyer", "time", "order"}, []string{"b9", "1617242400", "42"},
			map[string]string{"buyer": "yes", "time": "with a prefix", "order": "with a prefix"}},
		{[]string{"order=md5(order,4) + text(order)"}, []string{"a1d042"}, map[string]string{"order": "no"}},
		{[]string{"order=md5(order,2) + pad(order, 12)"}, []string{"a1000000000042"}, map[string]string{"order": "many"}},
		{[]string{"salt=salt(16)", "order"}, []string{"15", "42"}, map[string]string{"order": "many"}},
	} {
		x := Explain(design(t, env, tt.key...), [][]table.Value{values}, nil)
		if !slices.Equal(x.Examples[0].Key, tt.want) {
			t.Errorf("%q: %+v, want %q", tt.key, x.Examples[0], tt.want)
		}
		ranges := map[string]string{}
		for _, r := range x.Ranges {
			ranges[r.Column] = r.Use
		}
		for column, use := range tt.ranges {
			if ranges[column] != use || len(ranges) != len(tt.ranges) {
				t.Errorf("%q: ranges %v, want %v", tt.key, ranges, tt.ranges)
				break
			}
		}
	}
}

func TestAnExplanationSaysWhatAReaderNeeds(t *testing.T) {
	env := Env{Columns: inputs, Separator: '!', ReadFile: func(string) ([]byte, error) { return []byte("Zoë,z\nZoe,z\nx,1\n"), nil }}
	x := Explain(design(t, env, `k=splice(auto, md5(CardID,2), pad(DeviceID,6), lookup(Name, "codes.csv"))`, "Score"),
		[][]table.Value{row(nil), row(map[string]table.Value{"DeviceID": num(-1)})}, nil)
	text := x.Text()
	for _, want := range []string{
		`k (string) = splice(auto, md5(CardID,2)`,
		`joined with "!": the first 2 hexadecimal digits of the md5 of CardID, DeviceID as 6 decimal digits with leading zeros, the code of Name in codes.csv`,
		`"!".join([(hashlib.md5(str(CardID).encode()).hexdigest())[:2], str(DeviceID).zfill(6), codes("codes.csv")[Name]])`,
		`codes = lambda name: dict(csv.reader(`,
		"Rows are sorted by the value of md5(CardID, 2), which preserves no column's order; within that by DeviceID",
		"GetRange over DeviceID: many: in up to 256 ranges",
		"GetRange over CardID: no",
		"rejected: WrongType: column Score",
		"OutOfRange: column k: pad(DeviceID, 6): -1 is negative",
		`takes "!"`,
		"the keys depend on codes.csv",
		"2 names in codes.csv have a code that another name has",
		"a random prefix instead",
		"a primary-key column cannot be a double",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	data, err := json.Marshal(x)
	must(t, err)
	var fields map[string]any
	must(t, json.Unmarshal(data, &fields))
	for _, name := range []string{"key", "order", "ranges", "examples", "notes", "files"} {
		if fields[name] == nil {
			t.Errorf("no field %q in %s", name, data)
		}
	}
}

func TestAFormulaInPythonIsLeftOutWhereThereIsNone(t *testing.T) {
	x := Explain(design(t, Env{Columns: inputs}, `k=trim(Name) + pad(CardID, 9)`), nil, nil)
	if x.Key[0].Python != "" || !strings.Contains(x.Key[0].Recipe, "trim(Name)") {
		t.Errorf("%+v", x.Key[0])
	}
}

func TestColumnsWithPythonKeywordsAsNamesAreNotVariables(t *testing.T) {
	env := Env{Columns: []Input{{"str", table.Integer}, {"class", table.String}, {"v", table.String}, {"a$", table.String}}}
	x := Explain(design(t, env, `k=splice(",", pad(str, 3), class, v) + a$`), nil, nil)
	if want := `(",".join([str(row["str"]).zfill(3), row["class"], v]) + row["a$"])`; x.Key[0].Python != want {
		t.Errorf("%s, want %s", x.Key[0].Python, want)
	}
}
