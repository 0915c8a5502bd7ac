package commands

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/urfave/cli/v2"

	"example.com/tsimport"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/open"
)

// Runs and workers repeat a stored request, so each option in it must have the value that was typed.
func TestStoredCommandKeepsTypedValues(t *testing.T) {
	conformance.NotForRaces(t)
	values := map[options.Kind]string{
		options.Plain: "text", options.Whole: "0", options.Number: "2.5", options.Size: "3MiB", options.Duration: "90s",
		options.Texts: "a", options.List: `a,"b,c"`,
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
				continue // options of a job, not of its loads
			}
			must(t, given(t, options.Having(command), flags, append(args, "--", "in.csv"), func(c *call) error {
				kept := conformance.Try(options.ReadCommand(written(c.given))).Must(t)
				again := new(invocation).again(t.Context(), kept, nil, nil, nil)
				for _, p := range options.OfCommand(command) {
					is, want := fmt.Sprint(p.Value(again.given)), valueOf(c, p)
					if want != nil && is != fmt.Sprint(want) || is != fmt.Sprint(p.Value(c.of)) || p.Default == "" &&
						again.given.IsSet(p.Name) != c.IsSet(p.Name) {
						t.Errorf("%s %s: --%s is %v (%v), want %v (%v)", command, strings.Join(args, " "), p.Name, is,
							again.given.IsSet(p.Name), want, c.IsSet(p.Name))
					}
				}
				conformance.Equal(t, again.NArg(), 1, "%s: arguments", command)
				conformance.Equal(t, again.Args().First(), "in.csv", "%s: first argument", command)
				return nil
			}))
		}
	}
}

// valueOf returns the value that the flag package has for an option, or nil if it stores the option as text.
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

// An explicit empty value takes precedence over the values of the retried run and the environment.
func TestExplicitZeroIsNotOverridden(t *testing.T) {
	of := func(command string, given ...string) *options.Command {
		c := &options.Command{Name: command}
		for _, text := range given {
			name, value, _ := strings.Cut(text, "=")
			must(t, options.For(command, name).Set(c, []string{value}))
		}
		return conformance.Try(options.ReadCommand(written(c))).Must(t)
	}
	c := of("load", "trim=false", "version-column=", "columns=")
	c.After(of("load", "trim=true", "version-column=n", "columns=a,b", "flatten=true", "verify=false"))
	conformance.True(t, !c.Trim && c.VersionColumn == "" && len(c.Columns) == 0 && c.Flatten && c.IsSet("verify"),
		"%+v", c)
	for name, value := range map[string]string{"DRY_RUN": "true", "STORE": "there", "ENDPOINT": "http://h",
		"INSTANCE": "i", "PROFILE": "p"} {
		t.Setenv("TSIMPORT_"+name, value)
	}
	for given, want := range map[string]string{"dry-run=false": "false there http://h i p", "store=here": "true here   ",
		"endpoint=http://x": "true  http://x i p", "profile=q": "true   i q"} {
		c := of("load", given)
		must(t, takeEnvironment(c))
		got := fmt.Sprint(c.DryRun, " ", c.Store, " ", c.Endpoint, " ", c.Instance, " ", c.Profile)
		conformance.Equal(t, got, want, "%s", given)
	}
}

func TestVersionNamesTheBuild(t *testing.T) {
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
		columns := []plan.InspectedColumn{{Name: "id", Type: kind}}
		return plan.Inspection{Path: path, Format: "csv", Rows: 10, Exact: true, Error: why, Columns: columns}
	}
	found := []plan.Inspection{
		file("a.csv", "integer", ""), file("b.csv", "string", ""), file("c.csv", "integer", ""),
		file("d.csv", "integer", "cut off"), file("e.csv", "integer", "cut off"), file("f.csv", "integer", ""),
	}
	found[5].Together = []plan.Decision{{What: "column id", As: "integer in 5 files"}}
	for whole, blocks := range map[bool]int{false: 4, true: 6} {
		var out strings.Builder
		must(t, printInspections(&out, found, whole))
		text := out.String()
		conformance.Equal(t, strings.Count("\n"+text, "\nfile "), blocks, "whole %v: blocks:\n%s", whole, text)
		conformance.True(t, strings.Contains(text, "2 files more") != whole && strings.Contains(text, "30\n") != whole,
			"whole %v:\n%s", whole, text)
		conformance.True(t, strings.Count(text, "cut off") == 2 && strings.Contains(text, "the files together\ndiffer in"),
			"whole %v: an error or the difference is missing:\n%s", whole, text)
	}
}

// Programs must be able to set every load option that changes rows or their target.
func TestEveryLoadOptionIsAFieldOrCommandOnly(t *testing.T) {
	alone := map[string]bool{}
	for _, name := range []string{
		"profile", "store", "sync", "json", "quiet", "status", "cpu-profile", "allocations-profile", "metrics-file",
		"timeout", "job-dir", "plan", "workers",
	} {
		alone[name] = true
	}
	for _, o := range options.Of(options.Load | options.Ending) {
		has := o.InRequest()
		conformance.True(t, has != alone[o.Name], "%s is a field of a request: %v", o.Name, has)
	}
}

func TestLibraryCopyEqualsCommandCopy(t *testing.T) {
	e := enginetest.Start(t)
	for name, value := range map[string]string{"ENDPOINT": e.URL, "INSTANCE": e.Instance, "ACCESS_KEY_ID": e.AccessKeyID,
		"ACCESS_KEY_SECRET": e.AccessKeySecret} {
		t.Setenv("TABLESTORE_"+name, value)
	}
	command := commandsIn(t)
	cell := func(value, at string) string { return `{"C":"s","V":"` + value + `","TS":` + at + "}" }
	row := func(id string, cells ...string) string {
		return `{"Wide":true,"PK":{"Values":[{"C":"id","V":` + id + `,"IsInt":true}]},"Attr":{"Values":[` +
			strings.Join(cells, ",") + "]}}\n"
	}
	scanned := func(s tsimport.Scan) tsimport.CopyRequest { return tsimport.CopyRequest{Scan: s} }
	const first, second, third = "1700000000000", "1700000001000", "1700000002000"
	put(t, "a.jsonl", row("1", cell("c", third), cell("b", second), cell("a", first))+row("2", cell("x", first))+row("3",
		cell("y", third), cell("z", second)))
	command(0, "table", "create", "t", "--pk", "id:integer", "--max-versions", "3", "--max-deviation", "999999999")
	command(0, "load", "a.jsonl", "-t", "t", "-q")
	for name, tt := range map[string]struct {
		flags   []string
		request tsimport.CopyRequest
		cells   int // cells with timestamps
	}{
		"all":    {cells: 6},
		"newest": {flags: []string{"--versions", "1"}, request: scanned(tsimport.Scan{Versions: "1"}), cells: 3},
		"new":    {flags: []string{"--since", second}, request: scanned(tsimport.Scan{Since: second}), cells: 4},
		"range": {flags: []string{"--from-key", "2", "--to-key", "3"},
			request: scanned(tsimport.Scan{FromKey: "2", ToKey: "3"}), cells: 1},
		"where":    {flags: []string{"--where", "id > 1"}, request: scanned(tsimport.Scan{Where: "id > 1"}), cells: 3},
		"filtered": {flags: []string{"--filter", `s == "x"`}, request: scanned(tsimport.Scan{Filter: `s == "x"`}), cells: 1},
		"another": {
			flags: []string{"--pk", "hash:string=md5(id)", "--pk", "id", "--rename", "s=text"},
			request: tsimport.CopyRequest{Mapping: tsimport.Mapping{PK: []string{"hash:string=md5(id)", "id"},
				Rename: map[string]string{"s": "text"}}}, cells: 6,
		},
	} {
		command(0, append([]string{"copy", "t", "command_" + name, "--create", "-q"}, tt.flags...)...)
		r := tt.request
		r.From, r.Table, r.Create, r.RunDir = "t", "library_"+name, true, "run of "+name
		s := conformance.Try(tsimport.Copy(t.Context(), r)).Must(t)
		rows := func(of string) string {
			table := of + "_" + name
			return ends(t, 0, "export --format jsonl --typed -q -t "+table) + ends(t, 0, "table describe "+table)
		}
		want := strings.ReplaceAll(rows("command"), "command_", "library_")
		next, err := time.Parse(time.RFC3339Nano, s.NextSince)
		if ago := time.Since(next); err != nil || ago < time.Minute || ago > 2*time.Minute {
			t.Errorf("%s: the next copy is to be of what is new since %q", name, s.NextSince)
		}
		got := rows("library")
		conformance.True(t, got == want && strings.Count(got, `"TS"`) == tt.cells && s.Written != 0 && s.Written == s.Read,
			"%s: %+v\n%s\nwant\n%s", name, s, got, want)
	}
}

var must = conformance.Must

func given(t *testing.T, of options.Commands, flags []cli.Flag, args []string, do func(c *call) error) error {
	t.Helper()
	read := func(l *line) error {
		in := new(invocation)
		must(t, in.takeEnvironment(l))
		c, err := in.typed(l, of)
		if err != nil {
			return err
		}
		return do(c)
	}
	ignore := func(*cli.Context, error) {}
	app := &cli.App{Flags: flags, Action: read, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: ignore}
	return app.Run(append([]string{"tsimport"}, args...))
}

// says reports whether an error is one line that contains want, or nil if want is "".
func says(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n")
}

func TestSharesAndPercentagesAreParsedExactly(t *testing.T) {
	for text, want := range map[string]float64{"1%": 0.01, "0.01": 0.01, "100%": 0, "1": 0, "0.5": 0.5} {
		got, err := parseShare(text)
		conformance.True(t, err == nil && got == want, "share %q: %v, %v, want %v", text, got, err, want)
	}
	for _, bad := range []string{"", "0", "0%", "-1%", "101%", "1.01", "NaN", "x", "%"} {
		got, err := parseShare(bad)
		conformance.True(t, err != nil, "share %q is mistaken for %v", bad, got)
	}
	for text, want := range map[string]float64{"0%": 0, "1%": 0.01, "99.5%": 0.995} {
		got, err := parseThrottled(text)
		conformance.True(t, err == nil && got == want, "throttled %q: %v, %v, want %v", text, got, err, want)
	}
	for _, bad := range []string{"", "1", "100%", "-1%", "NaN%", "%"} {
		got, err := parseThrottled(bad)
		conformance.True(t, err != nil, "throttled %q is mistaken for %v", bad, got)
	}
}

func TestSimulationFlagsAreParsedOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "0s 0s 0", "10s": "10s 1s 0", "10s:2s": "10s 2s 0", "10s:2s:32": "10s 2s 32", "x": "--splits", "0s": "--splits",
		"10s:x": "--splits", "10s:1s:x": "--splits", "10s:1s:2:3": "--splits", "-1s": "--splits",
	} {
		s, err := parseSplits(text)
		got := fmt.Sprint(s.Every, s.Unavailable, s.MaxPartitions)
		conformance.True(t, err == nil && got == want || strings.HasPrefix(want, "--") && err != nil && says(err, want),
			"splits %q: %+v, %v", text, s, err)
	}
	for text, want := range map[string]string{"": "0 0s", "6": "6 500ms", "6:2s": "6 2s", "x": "--moves", "6:": "--moves",
		"6:x": "--moves"} {
		m, err := parseMoves(text)
		got := fmt.Sprint(m.PerMinute, m.Unavailable)
		conformance.True(t, err == nil && got == want || strings.HasPrefix(want, "--") && err != nil && says(err, want),
			"moves %q: %+v, %v", text, m, err)
	}
	slow, err := parseSlow([]string{"7:0.1", "0:2"})
	conformance.True(t, err == nil && len(slow) == 2 && slow[7] == 0.1 && slow[0] == 2, "slow: %v, %v", slow, err)
	for _, bad := range []string{"7", "x:1", "7:x", ""} {
		slow, err := parseSlow([]string{bad})
		conformance.True(t, says(err, "--slow"), "slow %q: %v, %v", bad, slow, err)
	}
}

func TestTableKeysAreParsedOrRefused(t *testing.T) {
	for text, want := range map[string]string{"id:double": "string, integer or binary", "id:text": "want string, integer",
		":string": "without a name", "": "without a name", "id": "give the type too",
		"id:auto": "cannot be auto", "id:string=upper(a)": "a table has no expressions"} {
		var said bytes.Buffer
		store := filepath.Join(t.TempDir(), "store")
		code := Run([]string{"tsimport", "table", "create", "t", "--store", store, "--pk", text}, io.Discard, &said)
		conformance.True(t, code == exitcode.Usage && strings.Contains(said.String(), want),
			"--pk %q: exit code %d, %s; want %q", text, code, &said, want)
	}
}

func TestColumnFlagsAreParsedOrRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--type a=integer": "", "--type a=timestamp": "", "--type a=binary(hex)": "", "--type a": "want name=type",
		"--type =integer": "want name=type", "--type a=text": "--type a=text", "--type a=timestamp(": "--type a=timestamp(",
		"--rename a=b --rename a=c": "given twice", "--rename a=": "want old=new", "--rename =b": "want old=new",
		"--types x": "want table, strict or infer",
	} {
		err := given(t, options.Load, flagsOf(options.Load), strings.Fields(args), func(c *call) error {
			columns, err := options.Columns(&c.given.Request)
			if err != nil {
				return err
			}
			a := columns.Types["a"]
			if strings.HasSuffix(args, "integer") != (a.Type == table.Integer && a.Time == nil) ||
				strings.Contains(args, "timestamp") != (a.Time != nil) ||
				strings.HasSuffix(args, "(hex)") != (a.Type == table.Binary && a.Hex) {
				return fmt.Errorf("the type is %+v", a)
			}
			return nil
		})
		conformance.Equal(t, says(err, want), true, "%s: %v, want %q", args, err, want)
	}
}

func TestDialectFlagsAreParsedOrRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                                       "",
		`--delimiter ; --quote ' --escape \`:     "",
		`--delimiter \x01 --quote none`:          "",
		"--dialect auto":                         "",
		"--dialect auto --delimiter ;":           "leave out either --dialect or --delimiter",
		"--dialect oracle":                       "want auto, mysql",
		"--delimiter ,, --quote ab":              "--quote",
		`--delimiter \q`:                         "--delimiter",
		"--quote é":                              "single-byte",
		`--record-end \q`:                        "--record-end",
		`--delimiter " --quote "`:                "--delimiter, --quote",
		"--names a,b":                            "--names needs --no-header",
		"--no-header --names a,b":                "",
		"--skip-lines -1":                        "0 or more",
		"--skip-lines 3":                         "",
		"--dialect mysql --escape none":          "",
		"--format xml":                           "--format",
		`--no-header --names a,"b`:               "--names",
		"--dialect postgres-csv --delimiter \\t": "",
	} {
		err := given(t, options.Looking, flagsOf(options.Looking), strings.Fields(args), func(c *call) error {
			r, err := parseRead(c)
			if err != nil {
				return err
			}
			d := r.Dialect
			got := fmt.Sprintf("%q %q %q %v %d %v", d.Delimiter, string(d.Quote), string(d.Escape), r.Sniff,
				r.HeaderLine, r.Names)
			if want, ok := map[string]string{
				`--delimiter ; --quote ' --escape \`:     `";" "'" "\\" false 1 []`,
				`--delimiter \x01 --quote none`:          `"\x01" "\x00" "\x00" false 1 []`,
				"--dialect auto":                         `"" "\x00" "\x00" true 1 []`,
				"--no-header --names a,b":                `"" "\x00" "\x00" false 1 [a b]`,
				"--skip-lines 3":                         `"" "\x00" "\x00" false 4 []`,
				"--dialect mysql --escape none":          `"\t" "\x00" "\x00" false 1 []`,
				"--dialect postgres-csv --delimiter \\t": `"\t" "\"" "\x00" false 1 []`,
			}[args]; ok && got != want {
				return fmt.Errorf("read as %s, want %s", got, want)
			}
			return nil
		})
		conformance.Equal(t, says(err, want), true, "%s: %v, want %q", args, err, want)
	}
}

func TestOrderAndSyncFlagsAreParsedOrRefused(t *testing.T) {
	noSync, err := parseSync("none")
	conformance.True(t, err == nil && noSync, "%v %v", noSync, err)
	noSync, err = parseSync("always")
	conformance.True(t, err == nil && !noSync, "%v %v", noSync, err)
	_, err = parseSync("sometimes")
	conformance.True(t, says(err, "want always or none"), "%v", err)
}

func TestBuiltInKeyIsNotOfferedToOtherMachines(t *testing.T) {
	for address, refused := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false,
		"0.0.0.0:0": true, ":0": true, "192.0.2.1:80": true, "no address": false} {
		err := checkPublicKey(address, server.Options{AccessKeySecret: server.DefaultAccessKeySecret})
		conformance.Equal(t, (err != nil), refused, "%s with the built-in key: %v", address, err)
		err = checkPublicKey(address, server.Options{AccessKeySecret: "own"})
		conformance.True(t, err == nil, "%s with a key of its own: %v", address, err)
	}
}

func TestSecretIsTheFirstLineOfItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]string{
		"s3cret": "s3cret", "s3cret\r\nmore\n": "s3cret", strings.Repeat("x", maxSecretBytes): strings.Repeat("x",
			maxSecretBytes),
		"": "refused", "\ns3cret\n": "refused", strings.Repeat("x", maxSecretBytes+1): "refused",
	} {
		put(t, name, text)
		got, err := readSecret(name)
		if (err != nil) != (want == "refused") || err == nil && got != want || err != nil && text != "" &&
			strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("%.20q: %.20q, %v", text, got, err)
		}
	}
	_, err := readSecret(name + "missing")
	conformance.True(t, says(err, "--access-key-secret-file"), "%v", err)
}

func TestIncompleteAccessKeyIsRefused(t *testing.T) {
	c := new(invocation).again(t.Context(), new(options.Command), io.Discard, nil, newDisplay(io.Discard))
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		for _, half := range []string{"_ACCESS_KEY_ID", "_ACCESS_KEY_SECRET"} {
			for _, n := range []string{"TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_ACCESS_KEY_ID",
				"ALIBABA_CLOUD_ACCESS_KEY_SECRET"} {
				t.Setenv(n, "")
			}
			t.Setenv(family+half, "x")
			_, err := findCredentials(c)
			conformance.True(t, says(err, "only one of them is set"), "%s%s: %v", family, half, err)
		}
	}
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", "id")
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "secret")
	ended, end := context.WithCancel(t.Context())
	c.Context = ended
	end() // a signal arrives at this moment
	p, err := findCredentials(c)
	if err != nil || p.GetCredentials().GetAccessKeyID() != "id" || p.GetCredentials().GetAccessKeySecret() != "secret" {
		t.Error(p, err)
	}
}

func TestPlainHTTPToAnotherMachineWarns(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://x.example": "", "http://localhost:80": "", "http://127.0.0.2": "", "http://[::1]:80": "",
		"http://[::ffff:127.0.0.1]": "", "http://x.example": "rows are not encrypted",
		"http://t.cn-hangzhou.ots.aliyuncs.com": "rows are not encrypted", "http://192.0.2.1": "rows are not encrypted",
	} {
		for token, more := range map[string]string{"": want, "t": strings.Replace(want, "rows are not",
			"neither rows nor the security token are", 1)} {
			var b bytes.Buffer
			key := &common.DefaultCredentialsProvider{AccessKeyID: "a", AccessKeySecret: "b", SecurityToken: token}
			warnOfPlainHTTP(newDisplay(&b), endpoint, key)
			if more != "" {
				more = "warning: the endpoint " + endpoint + " is http: " + more
			}
			if got := b.String(); (got == "") != (more == "") || !strings.Contains(got, more) {
				t.Errorf("%s, token %q: %q", endpoint, token, got)
			}
		}
	}
}

func TestEachLineOfASampleIsAKey(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	for text, want := range map[string]string{"a\r\nb\n\nc": "a b c", "": "no partition-key values",
		"\n\r\n": "no partition-key values"} {
		put(t, name, text)
		lines, err := readLines(name)
		conformance.True(t, (err != nil || strings.Join(lines, " ") == want) && (err == nil || says(err, want)),
			"%q: %q, %v", text, lines, err)
	}
	conformance.Is(t, conformance.ErrorOf(readLines(name+"missing")), os.ErrNotExist, "error")
}

func TestAddressInListIsRefusedLikeArgument(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{"kafka://h/t", "gs://b/o.csv", "postgre://h/d", "jdbc:mysql://h/d",
		"postgres://h/d?table=t"} {
		put(t, "list", "# inputs\n"+address+"\n")
		want := "it names no files" // tables and files cannot be combined
		if err := open.Check(address, "t"); err != nil {
			want = err.Error()
		}
		for _, line := range []string{"load -t t --pk id --create", "check -t t --pk id", "inspect"} {
			said := ends(t, 2, line+" @list", "list line 2: ")
			holds(t, strings.ReplaceAll(said, "TARGET", "t"), strings.ReplaceAll(want, "TARGET", "t"))
		}
	}
}

func TestWorkersFlagNeedsAJobDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id\n1\n")
	for flags, want := range map[string]string{"--workers 3": "or give --job-dir too", "--plan": "or give --job-dir too",
		"--workers 0": "--workers 0: want 1 to 4096", "--workers 0 --job-dir d": "--workers 0: want 1 to 4096"} {
		ends(t, 2, "load in.csv -t t --pk id -q "+flags, want)
	}
	t.Setenv("TSIMPORT_WORKERS", "3") // applies to all loads of a shell
	ends(t, 0, "load in.csv -t t --pk id -q")
}

func TestMain(m *testing.M) { conformance.Main(m) }
