package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/pipeline/options"
)

var must = conformance.Must

var small = &Vocabulary{
	Commands: map[string][]*options.Option{
		Load: {{Name: "table"}, {Name: "pk", Kind: options.Texts}, {Name: "create", Kind: options.Switch},
			{Name: "max-errors"}, {Name: "ttl", Kind: options.Whole}, {Name: "retry-for", Kind: options.Duration},
			{Name: "columns", Kind: options.List},
			{Name: "rename", Kind: options.Renamings}, {Name: "null", Kind: options.Texts},
			{Name: "memory", Scope: options.OfJob}, {Name: "max-wcu", Kind: options.Number, Scope: options.OfBoth},
			{Name: "store"}, {Name: "endpoint"}, {Name: "mode"}},
		Sync:   {{Name: "table"}, {Name: "delete", Kind: options.Switch}, {Name: "store"}, {Name: "endpoint"}},
		Copy:   {{Name: "table"}, {Name: "since"}, {Name: "store"}, {Name: "endpoint"}},
		Export: {{Name: "table"}, {Name: "output"}, {Name: "store"}, {Name: "endpoint"}},
	},
	Target:  []string{"store", "endpoint"},
	Refused: map[string]string{"fresh": "give tsimport run --fresh"},
}

const head = "version: 1\nloads:\n"

func noVariables(string) (string, bool) { return "", false }

// inputsOf returns a finder that behaves like a file system with these names. Patterns have one star.
func inputsOf(names ...string) Finder {
	return func(_ context.Context, _ *Single, pattern string) (found []Found, err error) {
		before, after, _ := strings.Cut(pattern, "*")
		for _, n := range names {
			if strings.HasPrefix(n, before) && strings.HasSuffix(n, after[strings.LastIndexByte(after, '*')+1:]) {
				one := Found{Name: n}
				if _, table, ok := strings.Cut(n, "table="); ok {
					one.Table, _ = url.QueryUnescape(table)
				}
				found = append(found, one)
			}
		}
		return found, nil
	}
}

func prepare(text string, names ...string) (*File, error) {
	f, err := Parse("job.yaml", []byte(text), small)
	if err != nil {
		return nil, err
	}
	e, err := f.Expand(context.Background(), noVariables, inputsOf(names...))
	if err != nil {
		return nil, err
	}
	return e, e.Check()
}

func TestLoadKeysBecomeArguments(t *testing.T) {
	f, err := prepare(`
version: 1
parallel: 3
target: {store: ./s}
defaults: {create: true, memory: 1GiB, max-errors: 0.1%, max-wcu: 100, columns: [a, "b,c"]}
loads:
  orders:
    from: [orders/*.csv, more.csv]
    pk: ["h=md5(id,4)", "id:integer"]
    rename: {"a=b": c}
    null: ["-", "NULL"]
  "{table}":
    from: "dump/shop.{table}.*.csv.gz"
    max-errors: null
    columns: x
  last: {after: [orders, "{table}"], table: daily, from: [r.csv], max-wcu: 5, retry-for: 90s, ttl: 86400}
  keep: {command: copy, from: "ots://p@i/t"}
  same: {command: sync, from: [a.csv], delete: true}
  out: {command: export, table: orders, output: o.csv, after: last}
`, "dump/shop.items.0.csv.gz", "dump/shop.users.0.csv.gz", "dump/shop.users.1.csv.gz")
	must(t, err)
	var got []string
	for i := range f.Loads {
		l := &f.Loads[i]
		got = append(got, l.Name+": "+strings.Join(l.Arguments(), " ")+" <- "+strings.Join(l.After, " "))
	}
	want := []string{
		`orders: load --store=./s --create=true --max-errors=0.1% --columns=a,"b,c" --pk=h=md5(id,4) --pk=id:integer --rename="a=b"=c --null=- --null=NULL --table=orders -- orders/*.csv more.csv <- `,
		`items: load --store=./s --create=true --columns=x --table=items -- dump/shop.items.*.csv.gz <- `,
		`users: load --store=./s --create=true --columns=x --table=users -- dump/shop.users.*.csv.gz <- `,
		`last: load --store=./s --create=true --max-errors=0.1% --columns=a,"b,c" --table=daily --max-wcu=5 --retry-for=90s --ttl=86400 -- r.csv <- orders items users`,
		`keep: copy --store=./s -- ots://p@i/t keep <- `,
		`same: sync --store=./s --delete=true --table=same -- a.csv <- `,
		`out: export --store=./s --table=orders --output=o.csv <- last`,
	}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
	conformance.True(t, f.Parallel == 3 && len(f.Common) == 2 && f.Common[0].Key == "memory" &&
		f.Common[1].Key == "max-wcu", "%d at a time, common %v", f.Parallel, f.Common)
}

func TestJobErrorIsOneLineWithItsPosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "job.yaml: the file is empty"},
		{"version: 1\n", "job.yaml:1: loads are missing"},
		{"version: 2\nloads: {a: {}}", `job.yaml:1: version "2"; this tsimport reads version 1`},
		{"loads: {a: {}}", "job.yaml:1: version is missing"},
		{"version: 1\nload: {}",
			`job.yaml:2: unknown key "load"; a job has version, target, defaults, loads, parallel; did you mean loads?`},
		{"version: 1\nparallel: 0\nloads: {a: {from: x}}", "job.yaml:2: parallel: want the number of loads"},
		{"version: 1\nloads: [a]", "job.yaml:2: loads: want keys with values, not a list"},
		{"version: 1\nloads: {}", "job.yaml:2: loads is empty"},
		{"a: [", "not YAML"},
		{"- a", "job.yaml:1: a job: want keys with values, not a list"},
		{"version: 1\n---\nversion: 1", "second document"},
		{head + "  a: {from: x, pk: &p [id]}\n  b: {from: y, pk: *p}",
			"job.yaml:3: &p: anchors are not supported; put common settings into defaults"},
		{head + "  a: &a [x, x]\n  b: &b [*a, *a, *a]\n  c: [*b, *b, *b]\n", "job.yaml:3: &a: anchors are not supported"},
		{head + "  a: {from: x, max-eror: 5}",
			`job.yaml:3: unknown key "max-eror" in load a; keys are the names of flags; did you mean max-errors?`},
		{head + "  a: {from: x, ttx: 5}", `did you mean ttl?`},
		{head + "  a: {from: x, fresh: true}", "job.yaml:3: fresh: give tsimport run --fresh"},
		{head + "  a: {from: x, access-key-secret: abc}", "a job file cannot have access keys"},
		{head + "  a: {from: x, since: abc}", "job.yaml:3: since: tsimport load has no flag --since"},
		{head + "  a: {from: x, memory: 1GiB}",
			"job.yaml:3: memory: applies to the whole job; put it into defaults"},
		{head + "  a: {from: x, create: yes}", `job.yaml:3: create: want true or false, not "yes"`},
		{head + "  a: {from: x, create: \"true\"}", "create: want true or false"},
		{head + "  a: {from: x, ttl: soon}", `ttl: want a whole number in digits only, such as 1000, not "soon"`},
		{head + "  a: {from: x, ttl: 1.5}", "ttl: want a whole number in digits"},
		{head + "  a: {from: x, retry-for: 90}",
			"retry-for: want a duration with a unit, such as 500ms, 30s or 15m, not \"90\""},
		{head + "  a: {from: x, max-errors: [1]}", "max-errors: want a string, not a list"},
		{head + "  a: {from: x, max-errors: true}", "max-errors: want a string"},
		{head + "  a: {from: x, pk: {id: integer}}", "pk: want a list of strings, not keys with values"},
		{head + "  a: {from: x, pk: [[id]]}", "pk: want a string, not a list"},
		{head + "  a: {from: x, from: y}", `"from" is given twice, first on line 3`},
		{head + "  a: {from: x}\n  a: {from: y}", `job.yaml:4: "a" is given twice, first on line 3`},
		{head + "  a: {from: x}\n  A: {from: y}", "load a differs only in case"},
		{head + "  job.json: {from: x}", "the job's folder has a file of this name"},
		{head + "  a/b: {from: x}", `load "a/b": a name has letters`},
		{head + "  a: {}", "load a: from is missing"},
		{head + "  a: 5", "load a: want keys with values"},
		{head + "  a: {from: \"-\"}", "standard input cannot be read again"},
		{head + "  a: {from: [\"-\", x], mode: changes}", "read only changes from it"},
		{head + "  a: {from: \"-\", mode: changes}\n  b: {from: \"-\"}",
			"job.yaml:4: load b: from: standard input cannot be read again"},
		{head + "  a: {from: \"-\", mode: changes}\n  b: {from: \"-\", mode: changes}",
			"load a: 2 loads read standard input concurrently; set parallel: 2, or more"},
		{head +
			"  a: {from: \"-\", mode: changes}\n  b: {from: x, after: [a]}\n  c: {from: \"-\", mode: changes, after: [b]}",
			"load c: it shares standard input with load a, so it cannot run after that load"},
		{head + "  a: {from: \"-\", mode: changes, table: t}\n  b: {from: \"-\", mode: changes, table: t}",
			"as after or a common table requires"},
		{head + "  a: {command: lod, from: x}", `command "lod": want load, copy, sync, export; did you mean load?`},
		{head + "  a: {command: export}", "output is missing"},
		{head + "  a: {command: copy, from: [x, y]}", "a copy reads one table"},
		{head + "  a: {from: x, after: [b]}", `load a: after: there is no load "b"`},
		{head + "  a: {from: x, after: [b]}\n  b: {from: x, after: [c]}\n  c: {from: x, after: [a]}",
			"after: the loads wait for each other: a after b after c after a"},
		{head + "  a: {from: x, pk: [id], table: t}\n  b: {from: y, pk: [no], table: t}",
			"job.yaml:4: load b: table t has the key no here, and id in load a"},
		{head + "  a: {command: export, output: o}\n  b: {command: export, output: o}", "load a also writes the output o"},
		{head + "  \"{t}\": {from: \"none/{t}.csv\"}", "load {t}: no input has a name such as none/{t}.csv"},
		{head + "  \"{t}\": {from: x.csv}", "from does not contain {t}"},
		{head + "  \"{t}\": {from: \"d/{t}.csv\"}", "the part for {t} may only have letters"},
		{head + "  \"{t}\": {from: \"e/{t}_*.csv\"}", "from matches e/a_b_c.csv with a or a_b as {t}"},
		{head + "  \"{t}\": {from: \"f/{t}.csv\"}\n  b: {from: z}", "two loads have this name"},
		{head + "  \"{t}{u}\": {from: \"f/{t}.csv\"}", "want at most one part in braces"},
		{head + "  a: {from: \"${x y}\"}", "is not a variable; want ${NAME} or ${NAME:-default}"},
		{head + "  a: {from: \"https://u:pw@host/x.csv\"}",
			"from: contains a secret in plain text; put it into an environment variable"},
		{head + "  a: {from: \"https://h/x.csv?Signature=abcdefabcdef1234\"}", "contains a secret in plain text"},
		{head + "  a: {from: \"https://u:${PW:-pw}@host/x.csv\"}", "contains a secret in plain text"},
		{"version: 1\ntarget: {stor: x}\nloads: {a: {from: x}}",
			"job.yaml:2: unknown key \"stor\" in target; keys are the names of flags; did you mean store?"},
		{"version: 1\ndefaults: {table: x}\nloads: {a: {from: x}}", "table: not allowed in defaults"},
	} {
		_, err := prepare(c.text, "d/a.b.csv", "e/a_b_c.csv", "f/b.csv")
		conformance.True(t, err != nil && strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "\n"),
			"%s\n%v, want %s", c.text, err, c.want)
	}
}

func TestUnmatchedPlaceholderHasNoInput(t *testing.T) {
	_, err := prepare("version: 1\nloads:\n  \"{t}\": {from: \"none/{t}.csv\"}")
	conformance.Equal(t, errors.As(err, new(*NoInputError)), true, "%v", err)
}

func TestVariablesAreReplaced(t *testing.T) {
	f, err := Parse("job.yaml", []byte("version: 1\nloads:\n  a: {from: \"${DIR}/x.csv\", endpoint: \"${E:-http://d}\", "+
		"table: \"t${N:-0}$1\", max-errors: \"https://u:${PW}@h/\"}"), small)
	must(t, err)
	values := map[string]string{"DIR": "/data", "PW": "secret", "N": ""}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	l := conformance.Try(f.Loads[0].Resolve("job.yaml", lookup)).Must(t)
	conformance.Equal(t, strings.Join(l.Arguments(), " "),
		"load --endpoint=http://d --table=t0$1 --max-errors=https://u:secret@h/ -- /data/x.csv", "arguments")
	r := conformance.Try(NewRecord(f, nil, lookup)).Must(t)
	dir := t.TempDir()
	must(t, r.Write(dir))
	r = conformance.Try(ReadRecord(dir)).Must(t)
	must(t, r.SameVariables(lookup))
	delete(values, "DIR")
	conformance.Refused(t, r.SameVariables(lookup), "the environment variable DIR is not set since", "error")
	conformance.Refused(t, conformance.ErrorOf(f.Loads[0].Resolve("job.yaml", lookup)),
		"job.yaml:3: load a: from: environment variable DIR is not set", "without DIR")
}

func TestLoadsIntoOneTableRunInSequence(t *testing.T) {
	f := conformance.Try(prepare("version: 1\nloads:\n  a: {from: x, table: t, after: [c]}\n  b: {from: x, table: t}\n  " +
		"c: {from: x, table: t}\n  d: {from: x, table: u}\n  e: {from: x, table: t, store: other}")).Must(t)
	var got []string
	for _, l := range f.Loads {
		got = append(got, l.Name+" "+strings.Join(l.After, ","))
	}
	conformance.Same(t, got, []string{"a c", "b a", "c ", "d ", "e "}, "got")
}

func TestOnlyNamedLoadsAreRun(t *testing.T) {
	before, err := Parse("job.yaml", []byte("version: 1\nloads:\n  a: {from: x}\n  b: {from: x, after: [a]}\n  \"t{n}\": "+
		"{from: \"f/{n}.csv\", after: [b]}"), small)
	must(t, err)
	for names, want := range map[string]string{"": "a b t1 t2", "b": "b", "t{n}": "t1 t2", "a t2": "a t2",
		"c": "there is no load \"c\""} {
		f, err := before.Expand(context.Background(), noVariables, inputsOf("f/1.csv", "f/2.csv"))
		if err == nil {
			err = f.Select(strings.Fields(names), before)
		}
		got := ""
		if err == nil {
			err = f.Check()
			for _, l := range f.Loads {
				got = strings.TrimSpace(got + " " + l.Name)
			}
		}
		if err != nil {
			got = err.Error()
		}
		conformance.Equal(t, strings.HasSuffix(got, want), true, "%q: %s, want %s", names, got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("version: 1\nloads:\n  a: {from: x}")
	f.Add("version: 1\nloads: &a {b: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text), small)
		if err == nil {
			_ = file.Check()
		}
		conformance.True(t, err == nil || !strings.Contains(err.Error(), "\n"), "%q", err)
	})
}

// ofShop begins the addresses of a database's tables. Some of the tables have names that no load can have.
const ofShop = "mysql://h/shop?table="

var odd = []string{ofShop + "a", ofShop + "we%60ird.na+me", ofShop + "1st", ofShop + "Items", ofShop + "items",
	ofShop + "lock", ofShop + "%C3%BCn%C3%AF", ofShop + "-x", ofShop + "we_ird.na_me"}

func TestUnloadableTableDoesNotBlockOthers(t *testing.T) {
	f := conformance.Try(prepare(head+`  "{table}": {from: "`+ofShop+`{table}", table: "{table}"}`, odd...)).Must(t)
	want := map[string]string{
		"a": "", "Items": "", "items-2": `items: another load's name differs only in case`,
		"1st": "want letters, digits and underscores, not starting with a digit", "_x": "-x: invalid load name",
		"lock-2": "lock: invalid load name", "we_ird.na_me": "not table we`ird.na me; leave it out with except: " +
			"[\"we`ird.na me\"], or add a load with another name that names it with table",
		"__n__": "not table ünï", "we_ird.na_me-2": "not table we_ird.na_me",
	}
	for _, l := range f.Loads {
		part, ok := want[l.Name]
		conformance.True(t, ok && (part == "") == (l.Refused == "") && strings.Contains(l.Refused, part),
			"load %s is refused: %q", l.Name, l.Refused)
		delete(want, l.Name)
	}
	conformance.True(t, len(want) == 0, "there are no loads %v", want)
}

func TestExceptedTablesAreLeftOut(t *testing.T) {
	const job = "version: 1\nloads:\n  \"{table}\": {from: \"mysql://h/shop?table={table}\", table: \"{table}\", " +
		"except: [\"we`ird*\", \"??n\", we_*, 1st, Items, lock, \"-x\", ünï, nothere]}\n"
	f, err := prepare(job+"  weird: {from: \"mysql://h/shop?table=we%60ird.na+me\", table: weird}", odd...)
	must(t, err)
	var names []string
	for _, l := range f.Loads {
		conformance.Equal(t, l.Refused, "", "%s is refused", l.Name)
		names = append(names, l.Name+" from "+strings.Join(l.From, ","))
	}
	conformance.Equal(t, strings.Join(names, "; "), "a from mysql://h/shop?table=a; "+
		"items from mysql://h/shop?table=items; weird from mysql://h/shop?table=we%60ird.na+me", "loads")
	for _, tt := range []struct{ job, wants string }{
		{"version: 1\nloads:\n  \"{t}\": {from: \"d/{t}.csv\", except: \"*\"}", "except leaves out every input of from"},
		{"version: 1\nloads:\n  plain: {from: d/a.csv, except: [b]}", "the name has no variable part such as {table}"},
		{"version: 1\ndefaults: {except: [b]}\nloads:\n  plain: {from: d/a.csv}", "not allowed in defaults"},
	} {
		conformance.Refused(t, conformance.ErrorOf(prepare(tt.job, "d/a.csv")), tt.wants, "%s", tt.job)
	}
	f, err = prepare("version: 1\nloads:\n  \"{t}\": {from: \"d/{t}.csv\", except: [b, tmp_*]}", "d/a.csv", "d/b.csv",
		"d/tmp_1.csv")
	conformance.True(t, err == nil && len(f.Loads) == 1 && f.Loads[0].Name == "a", "%v, %v", f, err)
}

func TestLoadNamesHaveAtMost255Bytes(t *testing.T) {
	for name, is := range map[string]bool{"": false, "a": true, "-a": false, "a.b-c_1": true, "a/b": false, "a\n": false,
		strings.Repeat("a", 255): true, strings.Repeat("a", 256): false} {
		conformance.Equal(t, IsName(name), is, "a name of %d bytes, %.10q", len(name), name)
	}
}

// recordOf makes the record of a job with loads given as NAME or NAME:PREDECESSORS.
func recordOf(parallel int, loads ...string) *Record {
	r := &Record{Parallel: parallel}
	for _, text := range loads {
		name, after, _ := strings.Cut(text, ":")
		one := Single{Name: name, Command: Load, After: strings.Fields(after)}
		r.Loads = append(r.Loads, &State{Single: one, State: Waiting})
	}
	return r
}

func states(r *Record) (all []string) {
	for _, s := range r.Loads {
		all = append(all, s.Name+" "+s.State)
	}
	return all
}

func TestLoadsRunInOrderWithinTheParallelLimit(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := recordOf(2, "a:d", "b", "c", "d", "e:a b")
		var mu sync.Mutex
		now, most := 0, 0
		var order []string
		err := r.Run(t.Context(), dir, func(_ context.Context, s *State) Outcome {
			mu.Lock()
			now++
			most = max(most, now)
			order = append(order, s.Name)
			takes := time.Duration(len(order)) * time.Second
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			now--
			mu.Unlock()
			return Outcome{Counts: Counts{Read: 2, Written: 1, Rejected: 1}, ExitCode: 3}
		}, nil)
		conformance.True(t, err == nil && most == 2 && r.ExitCode == 3 && r.State == Done && !r.Unfinished() &&
			r.Read == 10 && r.Written == 5, "%v, %d at a time, code %d, %s, %+v", err, most, r.ExitCode, r.State, r.Counts)
		at := func(name string) int { return slices.Index(order, name) }
		conformance.True(t, len(order) == 5 && at("a") >= at("d") && at("e") == 4, "order %v", order)
	})
}

// Loads that read standard input wait for each other, so they must begin together.
func TestLoadsOfStandardInputBeginTogether(t *testing.T) {
	for failing, want := range map[string]string{"none": "a done, b done, c done, d done, e done",
		"d": "a done, b not run, c done, d failed, e not run", "b": "a done, b failed, c done, d done, e done"} {
		f := conformance.Try(prepare("version: 1\nparallel: 2\nloads:\n  a: {from: x}\n  b: {from: \"-\", mode: changes}\n " +
			" c: {from: y}\n  d: {from: z}\n  e: {from: \"-\", mode: changes, after: [d]}")).Must(t)
		r, dir := conformance.Try(NewRecord(f, nil, noVariables)).Must(t), t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var both sync.WaitGroup
			both.Add(2)
			must(t, r.Run(t.Context(), dir, func(_ context.Context, s *State) Outcome {
				if s.ReadsStdin() {
					both.Done()
					both.Wait()
				}
				time.Sleep(time.Duration(s.Name[0]) * time.Second)
				return Outcome{ExitCode: map[bool]int{true: 1}[s.Name == failing]}
			}, nil))
		})
		conformance.Equal(t, strings.Join(states(r), ", "), want, "%s fails", failing)
	}
}

// Each load that starts must find the results of earlier ones on disk, although job.json is not rewritten.
func TestRecordSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ChangesFile), []byte(`{"of":"before","load":1,"state":{"state":"done"}}`+"\n"),
		0o600))
	r := recordOf(1, "a", "b", "c")
	r.Loads[1].From = []string{"b.csv"}
	want := map[string]string{"a": "[a running b waiting c waiting]", "b": "[a done b running c waiting]",
		"c": "[a done b failed c running]"}
	whole := ""
	err := r.Run(t.Context(), dir, func(_ context.Context, s *State) Outcome {
		text := conformance.Try(os.ReadFile(filepath.Join(dir, FolderFile))).Must(t)
		if whole == "" {
			whole = string(text)
		}
		is := conformance.Try(ReadRecord(dir)).Must(t)
		got := fmt.Sprint(states(is))
		conformance.True(t, got == want[s.Name] && is.Loads[1].From[0] == "b.csv" && is.Unfinished() &&
			string(text) == whole, "while %s runs: %q, %+v", s.Name, got, is.Loads[1])
		if s.Name == "c" {
			f := conformance.Try(os.OpenFile(filepath.Join(dir, ChangesFile), os.O_APPEND|os.O_WRONLY, 0)).Must(t)
			_, err := f.WriteString(`{"of":"` + is.Changes + `","load":2,"state":{"state":"done"}}`) // without its end
			must(t, errors.Join(err, f.Close()))
			is, err = ReadRecord(dir)
			conformance.True(t, err == nil && is.Loads[2].State == Running && is.Loads[1].Read == 7 && is.Loads[1].Error == "no",
				"a line that was cut counts: %v, %+v", err, is.Loads[1])
		}
		if s.Name == "b" {
			return Outcome{ExitCode: 1, Error: "no", Counts: Counts{Read: 7}}
		}
		return Outcome{}
	}, nil)
	is, readErr := ReadRecord(dir)
	_, statErr := os.Stat(filepath.Join(dir, ChangesFile))
	conformance.True(t, err == nil && readErr == nil && errors.Is(statErr, fs.ErrNotExist) && is.State == Failed &&
		slices.Equal(states(is), []string{"a done", "b failed", "c done"}), "%v, %v, %v, %+v", err, readErr, statErr, is)
}

func TestLoadsAfterAFailedOneDoNotRun(t *testing.T) {
	dir := t.TempDir()
	r := recordOf(1, "c:b", "b:a", "a", "d", "e:d")
	codes := map[string]int{"a": 1, "d": 3}
	run := func(_ context.Context, s *State) Outcome { return Outcome{ExitCode: codes[s.Name]} }
	must(t, r.Run(t.Context(), dir, run, nil))
	got, want := states(r), []string{"c not run", "b not run", "a failed", "d done", "e done"}
	conformance.True(t, slices.Equal(got, want) && r.ExitCode == 1 && r.Unfinished(), "%q, code %d", got, r.ExitCode)
	// A second run runs only unfinished loads.
	kept := conformance.Try(ReadRecord(dir)).Must(t)
	codes["a"] = 0
	var again []string
	err := kept.Run(t.Context(), dir, func(ctx context.Context, s *State) Outcome {
		again = append(again, s.Name)
		return run(ctx, s)
	}, nil)
	conformance.True(t, err == nil && slices.Equal(again, []string{"a", "b", "c"}) && kept.ExitCode == 3 &&
		!kept.Unfinished(), "%v, %v, code %d", err, again, kept.ExitCode)
}

func TestStoppedJobStartsNoMoreLoads(t *testing.T) {
	for code, want := range map[int]struct {
		state string
		code  int
	}{143: {Stopped, 143}, 0: {Done, 1}, 3: {Done, 1}} { // exit code 3 would mean that every load ran
		ctx, stop := context.WithCancel(t.Context())
		r := recordOf(1, "a", "b")
		err := r.Run(ctx, t.TempDir(), func(context.Context, *State) Outcome {
			stop()
			return Outcome{ExitCode: code}
		}, nil)
		got := states(r)
		conformance.True(t, err == nil && slices.Equal(got, []string{"a " + want.state, "b waiting"}) && r.State == Stopped &&
			r.ExitCode == want.code, "%v, %q, %s, code %d, want %d", err, got, r.State, r.ExitCode, want.code)
	}
}

// Loads that look for new inputs must not wait until failed loads succeed.
func TestRecurringLoadsRestartBesideFailedOnes(t *testing.T) {
	nightly := []Setting{{Key: "only-new", Values: []string{"true"}}}
	for _, failed := range []bool{true, false} {
		r := recordOf(1, "new", "whole", "failed")
		for i, s := range r.Loads {
			s.Command, s.State = Load, []string{Done, Done, Failed}[i]
		}
		r.Loads[0].Settings, r.Loads[0].Written = nightly, 7
		n := r.BeginAgain(failed)
		want := []string{"new waiting", "whole done", "failed failed"}
		if failed {
			want[1] = "whole waiting"
		}
		got := states(r)
		conformance.True(t, slices.Equal(got, want) && n == strings.Count(strings.Join(got, ","), "waiting") &&
			r.Loads[0].Written == 0, "failed %v: %q, %d begun again", failed, got, n)
	}
	for _, state := range []string{Running, Stopped, Failed} { // of another load of the table
		r := recordOf(1, "new", "begun")
		for i, s := range r.Loads {
			s.Command, s.State = Load, []string{Done, state}[i]
			s.Settings = append(slices.Clone(nightly), Setting{Key: keyTable, Values: []string{"t"}})
		}
		conformance.Equal(t, r.BeginAgain(false) == 1, state == Failed, "begins before one that is %s", state)
	}
	r := recordOf(1, "a", "b")
	n := r.BeginAgain(true)
	conformance.True(t, n <= 0, "%d loads that do not come again are begun again", n)
	r.Loads[0].State, r.Loads[1].State = Failed, Done
	if r.Restart([]string{"a"}); !r.Loads[0].Fresh || r.Loads[0].State != Waiting || r.Loads[1].State != Done {
		t.Errorf("%v", states(r))
	}
	now := time.Now()
	for _, c := range []struct {
		state string
		code  int
		ago   time.Duration
		final bool
	}{{Failed, 1, time.Minute, false}, {Stopped, 143, time.Minute, false}, {Failed, 7, time.Minute, true},
		{Failed, 1, 2 * time.Hour, true}, {Running, 0, 2 * time.Hour, false}} {
		r.State, r.ExitCode, r.Ended = c.state, c.code, now.Add(-c.ago)
		conformance.Equal(t, r.final(now), c.final, "%+v", c)
	}
	next := recordOf(1, "a", "b") // the process was stopped before these loads
	err := next.Continue(r)
	conformance.True(t, err == nil && next.Loads[0].Fresh, "%v, %v", err, next.Loads[0])
}

func TestBegunLoadCannotBeChanged(t *testing.T) {
	before := recordOf(1, "a", "b", "c", "d")
	for i, s := range before.Loads {
		s.Digest, s.State = "1", []string{Done, Stopped, Waiting, Failed}[i]
	}
	before.Loads[3].ExitCode, before.Loads[3].Read = 1, 100
	now := recordOf(1, "a", "b", "c", "d")
	for _, s := range now.Loads {
		s.Digest = "1"
	}
	now.Loads[2].Digest, now.Loads[3].Digest = "2", "2" // one load has not begun, the other has failed
	err := now.Continue(before)
	conformance.True(t, err == nil && now.Loads[0].State == Done && !now.Loads[2].Changed && now.Loads[3].Changed,
		"%v, %q, %v", err, states(now), now.Loads[3])
	for i, name := range []string{"a", "b"} {
		now := recordOf(1, "a", "b", "c", "d")
		for _, s := range now.Loads {
			s.Digest = "1"
		}
		now.Loads[i].Digest = "2"
		conformance.Refused(t, now.Continue(before), "load "+name+" was changed", "error")
	}
	begun := map[string]string{}
	for _, keys := range []string{"max-errors: 1", "max-errors: 9", "max-wcu: 5", "pk: [id]", "endpoint: x"} {
		f, err := Parse("job.yaml", []byte("version: 1\nloads: {a: {from: x.csv, table: t, "+keys+"}}"), small)
		must(t, err)
		begun[keys] = conformance.Try(NewRecord(f, nil, os.LookupEnv)).Must(t).Loads[0].Digest
	}
	one := begun["max-errors: 1"]
	conformance.True(t, one == begun["max-errors: 9"] && one == begun["max-wcu: 5"] && one != begun["pk: [id]"] &&
		one != begun["endpoint: x"],
		"a begun load may have another limit of errors or speed, but no other key: %v", begun)
	conformance.Refused(t, recordOf(1).Continue(before), "load b was begun but is no longer in the job", "error")
}

func TestLoadDurationIsThatOfTheLastAttempt(t *testing.T) {
	monday := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	tuesday := monday.Add(24 * time.Hour)
	for _, c := range []struct {
		resumed, ended time.Time
		want           time.Duration
	}{{time.Time{}, monday.Add(time.Minute), time.Minute}, {tuesday, tuesday.Add(time.Second), time.Second}} {
		conformance.Equal(t, (&State{Started: monday, Resumed: c.resumed, Ended: c.ended}).Took(), c.want, "took")
	}
}

// The results of a job of another version cannot be read, so its loads might run twice.
func TestJobOfAnotherVersionIsNotRestarted(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "20260101T000000.000Z-job")
	must(t, os.Mkdir(folder, 0o700))
	for state, refused := range map[string]bool{Running: true, Failed: true, Done: false, Replaced: false} {
		must(t, progress.Write(filepath.Join(folder, FolderFile), 0o600, Version+1, Record{Identity: "one", State: state}))
		_, _, err := Find(root, "one")
		conformance.True(t, (err != nil) == refused && (!refused ||
			strings.Contains(err.Error(), "by a newer version of tsimport")),
			"%s: %v", state, err)
		_, _, err = Find(root, "other")
		conformance.True(t, err == nil, "%s: another job is refused: %v", state, err)
	}
}
