package commands

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/urfave/cli/v2"

	"tsimport"
	"tsimport/engine/server"
	"tsimport/keyexpr"
	"tsimport/pipeline"
	"tsimport/pipeline/options"
)

// notOfTheLibrary are flags of a load that the library has no field for: what the command does with a terminal and after the load,
// what Target and the arguments of LoadFiles say, and what is of archives.
var notOfTheLibrary = []string{
	"table", "endpoint", "instance", "store", "request-timeout", "sync", "verify", "retry-rejects", "json", "quiet", "status", "now",
	"cpu-profile", "allocations-profile", "drop-expired", "profile",
	"metrics-file",              // what the command says; a program has the summary
	"timeout",                   // the context's
	"query", "require-snapshot", // of databases, which LoadFiles does not read
	"rename-index", // of archives
	// Of many processes, which are commands.
	"job-dir", "workers",
}

// ofLoader are options that a Loader alone has: it spills nothing without a folder, and its columns may have timestamps of their own.
var ofLoader = []string{"temp-dir", "max-deviation"}

func TestEveryFlagOfALoadIsAFieldOfTheLibrary(t *testing.T) {
	fields := map[string]bool{}
	for _, of := range []any{tsimport.LoadOptions{}, tsimport.LoaderOptions{}} {
		typ := reflect.TypeOf(of)
		for i := range typ.NumField() {
			fields[options.FlagName(typ.Field(i).Name)] = false
		}
	}
	for _, f := range append(loadCommandFlags(), timeoutFlag()) {
		name := f.Names()[0]
		if _, ok := fields[name]; !ok && !slices.Contains(notOfTheLibrary, name) {
			t.Errorf("--%s is not an option of the library", name)
		}
		fields[name] = true
	}
	for name, flag := range fields {
		if !flag && !slices.Contains(ofLoader, name) {
			t.Errorf("the library's option %s is not a flag of load", name)
		}
	}
}

func TestDefaultsOfTheLibraryAreThoseOfTheFlags(t *testing.T) {
	for _, f := range loadFlags() {
		name := f.Names()[0]
		value := reflect.ValueOf(f).Elem().FieldByName("Value")
		if _, generic := f.(*cli.GenericFlag); generic || name == "sync" || name == "request-timeout" {
			continue
		}
		switch want, ok := options.Defaults[name]; {
		case ok && want != value.Interface():
			t.Errorf("--%s defaults to %v, the library's option to %v", name, value, want)
		case !ok && !value.IsZero():
			t.Errorf("--%s defaults to %v, the library's option to nothing", name, value)
		}
	}
}

// What the command makes of flags, the library makes of the fields that the command fills.
func TestTheLibraryUnderstandsFlagsAsTheCommandDoes(t *testing.T) {
	dir := t.TempDir()
	policy, err := filepath.Abs("../../examples/age-policy.yaml")
	must(t, err)
	if _, err := os.Stat(policy); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"",
		"--create --pk id --pk n:integer --ttl 86400 --max-versions 3",
		"--pk h:string=hash(id) --set day:string=id --set x=1",
		`--columns a,"b,c" --exclude d,"e,f" --exclude g --rename a=b --rename "x=y"=z --type a=integer --type b=binary(hex) --type c=timestamp(2006-01-02,UTC,ms)`,
		"--columns=",
		"--version-column v --mode update --condition exist --types strict --on-null delete",
		"--mode increment --mark-column m", "--returned-keys k.csv --look-first --at-least-once",
		"--limit 7 --dry-run --max-errors 0 --retry-for 3s --settle 4s", "--max-errors 1% --max-errors=-1",
		"--order none --concurrency 5 --batch-bytes 512KiB  --max-wcu 2.5 --max-rows-per-second 3.5 --max-bytes-per-second 1MiB",
		"--memory 32MiB --run-dir " + dir + "/run --fresh --accept-changed-input --max-tables 9",
		"--age-policy " + policy + " --now 2024-01-01T00:00:00Z",
		"--format csv --no-header --names a,b --encoding gbk --ragged pad --trim --null x --null y --quoted-null x --quoted-null z --empty string --quoted-empty null",
		"--skip-lines 2 --flatten --path-columns",
		`--delimiter ; --quote ' --escape \ --comment # --record-end |`, "--quote=", "--quote none --escape=", "--dialect mysql --escape=", "--dialect auto", "--dialect mysql",
		"--dialect postgres --empty null", "--dialect mysql --comment=",
		"--only-new --reload-changed --fail-if-nothing-new --files-by time --settle-files 2m --done-marker {}.done --state " + dir + "/state",
	} {
		args := append(strings.Fields(line), "--table", "t", "in.csv")
		if strings.HasPrefix(line, `--columns a,`) {
			args = append(splitQuoted(line), "--table", "t", "in.csv")
		}
		err := given(t, loadCommandFlags(), args, func(c *cli.Context) error {
			cfg, err := loadConfig(c, &invocation{})
			if err != nil {
				return err
			}
			o, err := libraryOptions(c, &cfg, new(target))
			if err != nil {
				return err
			}
			var got pipeline.Config
			ctx := options.ForCommand(context.Background(), &options.Command{Complete: func(own *pipeline.Config) {
				got = *own
				own.Inputs = nil // ends it
			}})
			to := tsimport.Target{Endpoint: "http://embedded", Instance: server.DefaultInstance, AccessKeyID: "a", AccessKeySecret: "b"}
			if _, err := tsimport.LoadFiles(ctx, to, "t", cfg.Inputs, o); err == nil {
				t.Errorf("%s: it has loaded", line)
			}
			got.Target.DefineSet, got.Target.PolicyNow = cfg.Target.DefineSet, cfg.Target.PolicyNow
			got.Resume, got.Invocation = cfg.Resume, cfg.Invocation
			if diff := cmp.Diff(cfg, got, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true }),
				cmp.FilterValues(func(a, b any) bool { return reflect.ValueOf(a).Kind() == reflect.Func }, cmp.Ignore()), cmpopts.IgnoreTypes(keyexpr.Env{})); diff != "" {
				t.Errorf("%s: the library understands (-command +library):\n%s", line, diff)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// splitQuoted splits at spaces outside quotes, which stay.
func splitQuoted(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
