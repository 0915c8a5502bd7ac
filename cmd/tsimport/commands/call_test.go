package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"example.com/tsimport"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

// A run that is resumed, a load of a job and a worker do what was asked for: each option has the value that it has when it is typed.
func TestACommandThatIsNotTypedSaysTheSame(t *testing.T) {
	values := map[options.Kind]string{
		options.Plain: "text", options.Whole: "0", options.Number: "2.5", options.Size: "3MiB", options.Duration: "90s", options.Texts: "a", options.List: `a,"b,c"`,
		options.Lists: "d", options.Renamings: `"x=y"=z`, options.Typings: "a=integer",
	}
	for _, command := range []string{job.Load, job.Copy, job.Sync, job.Export} {
		flags := flagsOf(options.Having(command))
		for _, o := range options.OfCommand(command) {
			args := []string{"--" + o.Name}
			if value := values[o.Kind]; o.Kind != options.Switch {
				switch {
				case o.Kind == options.Whole && o.Name != "examples":
					value = "7"
				case o.Values != nil:
					value = o.Values[len(o.Values)-1]
				}
				args = append(args, value)
			}
			if o.Name == "metrics-file" {
				continue // of a job, not of its loads
			}
			must(t, given(t, options.Having(command), flags, append(args, "--", "in.csv"), func(c *call) error {
				kept, err := options.ReadCommand(written(c.given))
				must(t, err)
				again := new(invocation).again(t.Context(), kept, nil, nil, nil)
				for _, p := range options.OfCommand(command) {
					is, want := fmt.Sprint(p.Value(again.given)), valueOf(c, p)
					if want != nil && is != fmt.Sprint(want) || is != fmt.Sprint(p.Value(c.of)) || p.Default == "" && again.given.IsSet(p.Name) != c.IsSet(p.Name) {
						t.Errorf("%s %s: --%s is %v (%v), want %v (%v)", command, strings.Join(args, " "), p.Name, is, again.given.IsSet(p.Name), want, c.IsSet(p.Name))
					}
				}
				conformance.Equal(t, again.NArg(), 1, "%s: arguments", command)
				conformance.Equal(t, again.Args().First(), "in.csv", "%s: first argument", command)
				return nil
			}))
		}
	}
}

// valueOf is the value of an option as the flag package has it, nil of one that it keeps as a text.
func valueOf(c *call, o *options.Option) any {
	switch o.Kind {
	case options.Plain:
		if o.ByDialect {
			return nil
		}
		return c.String(o.Name)
	case options.Switch:
		return c.Bool(o.Name)
	case options.Whole:
		return c.Int(o.Name)
	case options.Number:
		return c.Float64(o.Name)
	case options.Duration:
		return c.Duration(o.Name)
	}
	return nil
}

// What was given as nothing comes before a run whose rejects are loaded, and before the environment. Half a target takes its other half
// from there.
func TestAZeroThatIsGivenIsNotOverruled(t *testing.T) {
	of := func(command string, given ...string) *options.Command {
		c := &options.Command{Name: command}
		for _, text := range given {
			name, value, _ := strings.Cut(text, "=")
			must(t, options.For(command, name).Set(c, []string{value}))
		}
		kept, err := options.ReadCommand(written(c))
		must(t, err)
		return kept
	}
	c := of("load", "trim=false", "version-column=", "columns=")
	c.After(of("load", "trim=true", "version-column=n", "columns=a,b", "flatten=true", "verify=false"))
	if c.Trim || c.VersionColumn != "" || len(c.Columns) > 0 || !c.Flatten || !c.IsSet("verify") {
		t.Errorf("%+v", c)
	}
	for name, value := range map[string]string{"DRY_RUN": "true", "STORE": "there", "ENDPOINT": "http://h", "INSTANCE": "i", "PROFILE": "p"} {
		t.Setenv("TSIMPORT_"+name, value)
	}
	for given, want := range map[string]string{"dry-run=false": "false there http://h i p", "store=here": "true here   ", "endpoint=http://x": "true  http://x i p", "profile=q": "true   i q"} {
		c := of("load", given)
		must(t, takeEnvironment(c))
		if got := fmt.Sprint(c.DryRun, " ", c.Store, " ", c.Endpoint, " ", c.Instance, " ", c.Profile); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func TestVersionTellsWhatWasBuilt(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	devel := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}}
	clone := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"},
	}}
	for want, got := range map[string]string{
		"development (revision unknown, go1.26.8, " + platform + ")":           versionText(devel, true),
		"v1.2.3 (revision 0123456789ab, modified, go1.26.8, " + platform + ")": versionText(clone, true),
		"unknown (" + runtime.Version() + ", " + platform + ")":                versionText(nil, false),
	} {
		conformance.Equal(t, got, want, "got")
	}
}

func TestFilesOfTheSameFormatAndColumnsAreInspectedInOneBlock(t *testing.T) {
	file := func(path, kind, why string) plan.Inspection {
		return plan.Inspection{Path: path, Format: "csv", Rows: 10, Exact: true, Error: why, Columns: []plan.InspectedColumn{{Name: "id", Type: kind}}}
	}
	found := []plan.Inspection{
		file("a.csv", "integer", ""), file("b.csv", "string", ""), file("c.csv", "integer", ""), file("d.csv", "integer", "cut off"),
		file("e.csv", "integer", "cut off"), file("f.csv", "integer", ""),
	}
	found[5].Together = []plan.Decision{{What: "column id", As: "integer in 5 files"}}
	for whole, blocks := range map[bool]int{false: 4, true: 6} {
		var out strings.Builder
		must(t, printInspections(&out, found, whole))
		text := out.String()
		conformance.Equal(t, strings.Count("\n"+text, "\nfile "), blocks, "whole %v: blocks:\n%s", whole, text)
		if strings.Contains(text, "2 files more") == whole || strings.Contains(text, "30\n") == whole {
			t.Errorf("whole %v:\n%s", whole, text)
		}
		if strings.Count(text, "cut off") != 2 || !strings.Contains(text, "the files together\ndiffer in") {
			t.Errorf("whole %v: an error or the difference is missing:\n%s", whole, text)
		}
	}
}

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
