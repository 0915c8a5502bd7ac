package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

var numberedKey = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}

// askNumbered asks for a new table that numbers its rows.
func askNumbered(inputs ...string) *Request {
	r := ask(inputs...)
	r.Target.Key = numberedKey
	return r
}

func TestAColumnThatTheServiceNumbersNeedsNoInput(t *testing.T) {
	in := file(t, "in.csv", "user,v\na,1\n")
	r := askNumbered(in)
	if diff := cmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p := makes(t, r, nil)
	if p.Schema.Numbered != 1 || p.Mark != DefaultMarkColumn || len(p.Schema.Ordering()) != 1 {
		t.Errorf("%+v, marks in %q", p.Schema, p.Mark)
	}
	r.MarkColumn = "m"
	conformance.Equal(t, makes(t, r, nil).Mark, "m", "marks")
	r.MarkColumn, r.AtLeastOnce = "", true
	if p := makes(t, r, nil); p.Mark != "" || !strings.Contains(strings.Join(p.Warnings, "\n"), "twice") {
		t.Errorf("marks in %q, warnings %q", p.Mark, p.Warnings)
	}
}

func TestATableThatNumbersItsRowsIsRecognised(t *testing.T) {
	admin := store(t, numberedKey...)
	in := file(t, "in.csv", "user,v\na,1\n")
	r := ask(in)
	r.Target.Absent, r.Target.Key = false, nil
	if p := makes(t, r, admin); p.Schema.Numbered != 1 || p.Create {
		t.Errorf("%+v", p.Schema)
	}
	r.Target.Key = numberedKey
	if p := makes(t, r, admin); p.Schema.Numbered != 1 {
		t.Errorf("%+v", p.Schema)
	}
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

func TestAnInputColumnOfTheNumbersNameIsLeftOutOrChangesRows(t *testing.T) {
	in := file(t, "in.csv", "user,seq,v\na,5,1\n")
	r := askNumbered(in)
	refused(t, r, nil, "--exclude seq")
	r.Columns.Exclude = []string{"seq"}
	if diff := cmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Columns.Exclude, r.Condition = nil, table.ExpectExist
	if p := makes(t, r, nil); p.Schema.Numbered != 0 || p.Mark != "" || p.Schema.Columns[1].Source != "seq" {
		t.Errorf("%+v", p.Schema)
	}
	r.Condition, r.Mode = table.Ignore, table.Delete
	if p := makes(t, r, nil); p.Schema.Numbered != 0 {
		t.Errorf("%+v", p.Schema)
	}
}

func TestWhatTheServiceWouldNotNumberIsRefused(t *testing.T) {
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
		"leave one of them out":    func(r *Request) { r.AtLeastOnce, r.LookFirst = true, true },
		"the first column cannot be auto": func(r *Request) {
			r.Target.Key = []table.KeyColumn{{Name: "seq", Type: table.Integer, Auto: true}}
		},
		"one auto column at most": func(r *Request) {
			r.Target.Key = append(r.Target.Key[:2:2], table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		},
	} {
		r := askNumbered(in)
		set(r)
		refused(t, r, nil, want)
	}
}

func TestTheJobInMarksIsThatOfTheSameLoadOnly(t *testing.T) {
	in, other := file(t, "in.csv", "user,v\na,1\n"), file(t, "other.csv", "user,v\na,1\n")
	job := makes(t, askNumbered(in), nil).Job()
	if again := makes(t, askNumbered(in), nil).Job(); again != job || len(job) != 12 {
		t.Errorf("%q, then %q", job, again)
	}
	for name, set := range map[string]func(*Request){
		"table":    func(r *Request) { r.Target.Table = "t2" },
		"instance": func(r *Request) { r.Target.Client.Instance = "i2" },
		"input":    func(r *Request) { r.Inputs = []string{other} },
		"columns":  func(r *Request) { r.Columns.Exclude = []string{"v"} },
		"type":     func(r *Request) { r.Columns.Types = map[string]Type{"v": {Type: table.String}} },
	} {
		r := askNumbered(in)
		set(r)
		if makes(t, r, nil).Job() == job {
			t.Errorf("another %s makes the same job", name)
		}
	}
}

func TestSeveralVersionsNeedAModeThatKeepsThem(t *testing.T) {
	in := file(t, "in.csv", "id,at,v\na,1,1\n")
	r := ask(in)
	r.Target.Define.MaxVersions = 3
	r.Read.Convert.VersionColumn = "at"
	refused(t, r, nil, "give --mode update")
	r.Mode = table.Update
	if p := makes(t, r, nil); !p.Restamp {
		t.Error("cells of rows without a version get no timestamp")
	}
	r.Read.Convert.VersionColumn, r.Mode = "", table.Put
	if p := makes(t, r, nil); p.Restamp {
		t.Error("a put is stamped")
	}
	r.Mode, r.Target.Define.MaxVersions = table.Update, 1
	if p := makes(t, r, nil); p.Restamp {
		t.Error("an update is stamped where one version is kept")
	}
}
