package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/table"
)

// planned loads and returns the schema as name:type, key columns first; "!" marks an inferred type.
func planned(t *testing.T, cfg Config) []string {
	t.Helper()
	cfg.DryRun = true
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Schema {
		text := c.Name + ":" + c.Type
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

func TestColumnsAreChosenNamedAndTyped(t *testing.T) {
	const text = "id,i,d,s,b,e\n1,5,1.5,007,true,\n2,6,2.5,8,false,\n"
	for name, tt := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"as they are":  {func(c *Config) {}, []string{"id:integer!", "i:integer!", "d:double!", "s:string!", "b:boolean!", "e:string!"}},
		"only some":    {func(c *Config) { c.Columns.Only = []string{"s", "i"} }, []string{"id:integer!", "i:integer!", "s:string!"}},
		"only the key": {func(c *Config) { c.Columns.Only = []string{} }, []string{"id:integer!"}},
		"excluded":     {func(c *Config) { c.Columns.Exclude = []string{"e", "b", "d"} }, []string{"id:integer!", "i:integer!", "s:string!"}},
		"renamed": {func(c *Config) {
			c.Columns.Rename = map[string]string{"id": "key", "s": "text"}
			c.Columns.Only = []string{"s"}
			c.Target.Key = []table.KeyColumn{{Name: "key"}}
		}, []string{"key:integer!<id", "text:string!<s"}},
		"typed": {func(c *Config) {
			c.Columns.Only = []string{"s", "i"}
			c.Columns.Types = map[string]Type{"s": {Type: table.Integer}, "i": {Type: table.String}, "id": {Type: table.String}}
		}, []string{"id:string", "i:string", "s:integer"}},
		"two keys in the order given": {func(c *Config) {
			c.Columns.Only = []string{"b"}
			c.Target.Key = []table.KeyColumn{{Name: "s"}, {Name: "id", Type: table.String}}
		}, []string{"s:string!", "id:string", "b:boolean!"}},
		"a double cannot be a key":      {func(c *Config) { c.Columns.Only = []string{}; c.Target.Key = []table.KeyColumn{{Name: "d"}} }, []string{"d:string!"}},
		"a delete has key columns only": {func(c *Config) { c.Write.Mode = table.Delete }, []string{"id:integer!"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.file("in.csv", text))
			cfg.Target.Key = []table.KeyColumn{{Name: "id"}}
			tt.change(&cfg)
			if diff := cmp.Diff(tt.want, planned(t, cfg)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongUseIsRefusedByName(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no input":             {func(c *Config) { c.Inputs = nil }, "no input"},
		"no table":             {func(c *Config) { c.Target.Table = "" }, "--table"},
		"bad table name":       {func(c *Config) { c.Target.Table = "a-b" }, `"a-b"`},
		"missing file":         {func(c *Config) { c.Inputs = []string{"none.csv"} }, "none.csv"},
		"no key":               {func(c *Config) { c.Target.Key = nil }, "--pk"},
		"no --create":          {func(c *Config) { c.Target.Create = false }, "--create"},
		"key not in the file":  {func(c *Config) { c.Target.Key[0].Name = "nope" }, `"nope"`},
		"key twice":            {func(c *Config) { c.Target.Key = append(c.Target.Key, c.Target.Key[0]) }, "twice"},
		"five keys":            {func(c *Config) { c.Target.Key = make([]table.KeyColumn, 5) }, "5 key columns"},
		"unknown in --columns": {func(c *Config) { c.Columns.Only = []string{"zz"} }, `--columns names column "zz"`},
		"unknown in --exclude": {func(c *Config) { c.Columns.Exclude = []string{"zz"} }, `--exclude names column "zz"`},
		"unknown in --rename":  {func(c *Config) { c.Columns.Rename = map[string]string{"zz": "y"} }, `--rename names column "zz"`},
		"unknown in --type":    {func(c *Config) { c.Columns.Types = map[string]Type{"zz": {}} }, `--type names column "zz"`},
		"two of one name":      {func(c *Config) { c.Columns.Rename = map[string]string{"n": "id"} }, `both be called "id"`},
		"a double key": {func(c *Config) {
			c.Target.Key[0].Type = 0
			c.Columns.Types = map[string]Type{"id": {Type: table.Double}}
		}, "cannot be double"},
		"key type twice":             {func(c *Config) { c.Columns.Types = map[string]Type{"id": {Type: table.Integer}} }, "--type id=integer"},
		"on-null without update":     {func(c *Config) { c.Write.DeleteNull = true }, "--mode update"},
		"update of nothing":          {func(c *Config) { c.Write.Mode = table.Update; c.Columns.Only = []string{} }, "--mode update"},
		"a name the service refuses": {func(c *Config) { c.Columns.Rename = map[string]string{"n": "#n"} }, "#n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.file("in.csv", "id,n\na,1\n"))
			tt.change(&cfg)
			r, err := Run(context.Background(), cfg)
			if !isUsage(err) || r != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a usage error with %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("the error has more than one line")
			}
		})
	}
}

func TestAnExistingTableGivesTheKey(t *testing.T) {
	w := newWorld(t)
	w.load(w.config(w.file("in.csv", "id,n\n1,1\n")))
	cfg := w.config(w.file("more.csv", "n,id\n5,2\n"))
	cfg.Target.Key, cfg.Target.Create = nil, false
	w.load(cfg)
	w.wantRows(contents{"1": {"n": "1"}, "2": {"n": "5"}})

	cfg.Inputs = []string{w.file("keyless.csv", "n,x\n5,2\n")}
	if _, err := Run(context.Background(), cfg); !isUsage(err) || !strings.Contains(err.Error(), `"id"`) {
		t.Errorf("a file without the key column: %v", err)
	}
	cfg.Inputs = []string{w.file("other.csv", "n,id\n5,2\n")}
	cfg.Target.Key = []table.KeyColumn{{Name: "n"}}
	if _, err := Run(context.Background(), cfg); !isUsage(err) || !strings.Contains(err.Error(), "primary key id:string") {
		t.Errorf("another key: %v", err)
	}
}

func TestAnExistingTablesTypesChangeNoValueEither(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\n7,1\n8,2\n"))
	cfg.Target.Key[0].Type = table.Integer
	w.load(cfg)
	cfg.Inputs = []string{w.file("more.csv", "id,n\n007,3\n+8,4\n9,5\n")}
	cfg.Target.Key = nil
	if r := w.load(cfg); r.Rejected != 2 || r.Written != 1 {
		t.Errorf("%+v", r)
	}
	w.wantRows(contents{"7": {"n": "1"}, "8": {"n": "2"}, "9": {"n": "5"}})
	cfg.Columns.Types = map[string]Type{"id": {Type: table.Integer}}
	if r := w.load(cfg); r.Written != 3 {
		t.Errorf("with --type: %+v", r)
	}
}

func TestEveryInputIsSampled(t *testing.T) {
	w := newWorld(t)
	var inputs []string
	for i := range 30 {
		inputs = append(inputs, w.file(fmt.Sprintf("%d.csv", i), fmt.Sprintf("id,amount\n%d,5\n", i)))
	}
	inputs = append(inputs, w.file("last.csv", "id,amount\nx,much\n"))
	if r := w.load(w.config(inputs...)); r.Written != 31 {
		t.Errorf("%+v", r)
	}
}

func TestAValueThatTheSampleDidNotShowIsRejectedNotChanged(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	b.WriteString("id,n\n")
	for range 10 << 20 / 7 { // more than the sample
		b.WriteString("a,1234\n")
	}
	b.WriteString("b,007\nc,8\n")
	r := w.load(w.config(w.file("in.csv", b.String())))
	if r.Rejected != 1 || r.ExitCode != ExitRejects {
		t.Errorf("%d rejected, exit %d", r.Rejected, r.ExitCode)
	}
	w.wantRows(contents{"a": {"n": "1234"}, "c": {"n": "8"}})
}

func TestLimitsAreCheckedBeforeSending(t *testing.T) {
	w := newWorld(t)
	wide := func(n int) string {
		var header, row strings.Builder
		header.WriteString("id")
		row.WriteString("k")
		for i := range n {
			header.WriteString(",c" + strings.Repeat("x", i%5) + string(rune('a'+i%26)) + strings.Repeat("y", i/26))
			row.WriteString(",1")
		}
		return header.String() + "\n" + row.String() + "\n"
	}
	big := func(n int) string { return "id,v\nk," + strings.Repeat("v", n) + "\n" }
	key := func(n int) string { return "id,v\n" + strings.Repeat("k", n) + ",1\n" }
	for name, tt := range map[string]struct{ text, code string }{
		"1,024 columns":        {wide(table.MaxColumns), ""},
		"1,025 columns":        {wide(table.MaxColumns + 1), table.CodeTooManyColumns},
		"a value of 2 MiB":     {big(table.MaxValueBytes), ""},
		"a byte more":          {big(table.MaxValueBytes + 1), table.CodeValueTooLong},
		"a key of 1 KiB":       {key(table.MaxKeyBytes), ""},
		"a key byte more":      {key(table.MaxKeyBytes + 1), table.CodeKeyTooLong},
		"4 MB in a row":        {"id,a,b,c\nk," + strings.Repeat("a", 2<<20-6) + "," + strings.Repeat("b", 2<<20) + ",\n", ""},
		"a byte more in a row": {"id,a,b,c\nk," + strings.Repeat("a", 2<<20-6) + "," + strings.Repeat("b", 2<<20) + ",c\n", table.CodeRowTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			cfg := w.config(w.file("in.csv", tt.text))
			cfg.RunDir = t.TempDir()
			r := w.load(cfg)
			reasons := strings.Join(lines(t, cfg.RunDir+"/rejects.jsonl"), "\n")
			if tt.code == "" && (r.Written != 1 || reasons != "") {
				t.Errorf("%d written; %s", r.Written, reasons)
			}
			if tt.code != "" && (r.Rejected != 1 || !strings.Contains(reasons, tt.code)) {
				t.Errorf("%d rejected: %s; want %s", r.Rejected, reasons, tt.code)
			}
		})
	}
}
