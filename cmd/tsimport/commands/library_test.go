package commands

import (
	"strings"
	"testing"
	"time"

	"example.com/tsimport"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/pipeline/options"
)

// Of the options of a load, the fields of a request are all that change rows or where they go: a program can ask for what the command
// can.
func TestEveryOptionOfALoadIsAFieldOrOfTheCommandAlone(t *testing.T) {
	alone := map[string]bool{}
	for _, name := range []string{
		"profile", "store", "sync", "json", "quiet", "status", "cpu-profile", "allocations-profile", "metrics-file", "timeout",
		"job-dir", "workers",
	} {
		alone[name] = true
	}
	for _, o := range options.Of(options.Load | options.Ending) {
		if has := o.InRequest(); has == alone[o.Name] {
			t.Errorf("%s is a field of a request: %v", o.Name, has)
		}
	}
}

func TestTheLibraryCopiesATableAsTheCommandDoes(t *testing.T) {
	e := enginetest.Start(t)
	for name, value := range map[string]string{"ENDPOINT": e.URL, "INSTANCE": e.Instance, "ACCESS_KEY_ID": e.AccessKeyID, "ACCESS_KEY_SECRET": e.AccessKeySecret} {
		t.Setenv("TABLESTORE_"+name, value)
	}
	command := commandsIn(t)
	cell := func(value, at string) string { return `{"C":"s","V":"` + value + `","TS":` + at + "}" }
	row := func(id string, cells ...string) string {
		return `{"Wide":true,"PK":{"Values":[{"C":"id","V":` + id + `,"IsInt":true}]},"Attr":{"Values":[` + strings.Join(cells, ",") + "]}}\n"
	}
	const first, second, third = "1700000000000", "1700000001000", "1700000002000"
	put(t, "a.jsonl", row("1", cell("c", third), cell("b", second), cell("a", first))+row("2", cell("x", first))+row("3", cell("y", third), cell("z", second)))
	command(0, "table", "create", "t", "--pk", "id:integer", "--max-versions", "3", "--max-deviation", "999999999")
	command(0, "load", "a.jsonl", "-t", "t", "-q")
	for name, tt := range map[string]struct {
		flags   []string
		request tsimport.CopyRequest
		cells   int // by timestamp
	}{
		"all":      {cells: 6},
		"newest":   {flags: []string{"--versions", "1"}, request: tsimport.CopyRequest{Scan: tsimport.Scan{Versions: "1"}}, cells: 3},
		"new":      {flags: []string{"--since", second}, request: tsimport.CopyRequest{Scan: tsimport.Scan{Since: second}}, cells: 4},
		"range":    {flags: []string{"--from-key", "2", "--to-key", "3"}, request: tsimport.CopyRequest{Scan: tsimport.Scan{FromKey: "2", ToKey: "3"}}, cells: 1},
		"where":    {flags: []string{"--where", "id > 1"}, request: tsimport.CopyRequest{Scan: tsimport.Scan{Where: "id > 1"}}, cells: 3},
		"filtered": {flags: []string{"--filter", `s == "x"`}, request: tsimport.CopyRequest{Scan: tsimport.Scan{Filter: `s == "x"`}}, cells: 1},
		"another": {
			flags:   []string{"--pk", "hash:string=md5(id)", "--pk", "id", "--rename", "s=text"},
			request: tsimport.CopyRequest{Mapping: tsimport.Mapping{PK: []string{"hash:string=md5(id)", "id"}, Rename: map[string]string{"s": "text"}}}, cells: 6,
		},
	} {
		command(0, append([]string{"copy", "t", "command_" + name, "--create", "-q"}, tt.flags...)...)
		r := tt.request
		r.From, r.Table, r.Create, r.RunDir = "t", "library_"+name, true, "run of "+name
		s, err := tsimport.Copy(t.Context(), r)
		must(t, err)
		rows := func(of string) string {
			return command(0, "export", "-t", of+"_"+name, "--format", "jsonl", "--typed", "-q") + command(0, "table", "describe", of+"_"+name)
		}
		want := strings.ReplaceAll(rows("command"), "command_", "library_")
		next, err := time.Parse(time.RFC3339Nano, s.NextSince)
		if said := err == nil && next.Before(time.Now()); said != (r.Since != "") {
			t.Errorf("%s: the next copy is to be of what is new since %q", name, s.NextSince)
		}
		if got := rows("library"); got != want || strings.Count(got, `"TS"`) != tt.cells || s.Written == 0 || s.Written != s.Read {
			t.Errorf("%s: %+v\n%s\nwant\n%s", name, s, got, want)
		}
	}
}
