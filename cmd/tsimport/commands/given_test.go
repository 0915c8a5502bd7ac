package commands

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/conformance"
)

func TestFlagsThatAreGivenWronglyAreRefusedInOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"load a.csv --table q1 --table q2":                  "--table is given twice, with q1 and q2, and takes one value; see tsimport load --help",
		"load --table q1 a.csv -t=q2":                       "-t is given twice, with q1 and q2",
		"load a.csv --order none --order=last-wins":         "--order is given twice",
		"load a.csv --max-errors 5 --max-errors 5":          "--max-errors is given twice",
		"load a.csv --quiet=true --quiet=false":             "--quiet is given twice",
		"load a.csv --run-dir oss://bucket/x":               "--run-dir oss://bucket/x: want a path on this machine",
		"load a.csv --returned-keys https://u:p@host/k":     "--returned-keys https://xxxxx@host/k: want a path",
		"load a.csv --store file:///tmp/x":                  "--store file:///tmp/x: want a path",
		"load a.csv --age-policy oss://bucket/p.yaml":       "--age-policy oss://bucket/p.yaml: want a path",
		"load --retry-rejects oss://bucket/run":             "--retry-rejects oss://bucket/run: want a path",
		"export --table t -o oss://bucket/x.csv":            "-o oss://bucket/x.csv: want a path",
		"export --table t -o oss:/bucket/x.csv":             "-o oss:/bucket/x.csv: want a path",
		"gen student-cards --rows 1 --output oss://b/c.csv": "--output oss://b/c.csv: want a path",
		"bench write --samples oss://b/s":                   "--samples oss://b/s: want a path",
		"serve --store oss://b/s":                           "--store oss://b/s: want a path",
		"table create t --pk a:string --ttl 86400 --ttl -1": "--ttl is given twice, with 86400 and -1",
		"age --table t --policy a --policy b":               "--policy is given twice",
		// A flag is named as it was typed.
		"load a --max-wcu 1k":      `--max-wcu "1k": want a number in digits, such as 1000 or 0.5; see tsimport load --help`,
		"load a --concurrency 1,0": `--concurrency "1,0": want a whole number in digits only, such as 1000; see tsimport load --help`,
		"load a --retry-for 5":     `--retry-for "5": want a duration with a unit, such as 500ms, 30s or 15m; see tsimport load --help`,
		"load a -q=7":              `-q "7": it takes no value; see tsimport load --help`,
		"table list --nope":        `flag provided but not defined: -nope; see tsimport table list --help`,
		"--nope":                   `flag provided but not defined: -nope; see tsimport --help`,
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(args)...), &stdout, &stderr)
		if got := stderr.String(); code != 2 || !strings.HasPrefix(got, "tsimport: "+want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, got, want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("something was written: %v, %v", left, err)
	}
}

func TestEveryCommandSaysTheSameOfAnAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	job := "version: 1\nloads:\n  a: {from: 'gs://b/k', table: t, store: s}\n"
	if err := os.WriteFile("job.yaml", []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	const way, copied = "gs:// is not read here: write s3://b/k, ", "ots:// is not read here: tsimport copy ots://shop/orders "
	for args, want := range map[string]string{
		"load gs://b/k --table t --store s": way, "inspect gs://b/k": way, "advise gs://b/k": way, "check gs://b/k --pk id": way, "tables gs://b/k": way,
		"verify gs://b/k --table t": way, "sync gs://b/k --table t": way, "copy gs://b/k t": way, "run job.yaml --plan": way,
		"load ots://shop/orders --table t --endpoint http://127.0.0.1:1 --instance i": copied + "t --endpoint=http://127.0.0.1:1 --instance=i --create ",
		"load ots://shop/orders --create --store ./s":                                 copied + "TARGET --store=./s --create ", "inspect ots://shop/orders": copied + "TARGET --create ", "advise ots://shop/orders": copied, "check ots://shop/orders": copied, "tables ots://shop/orders": copied,
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(args)...), &stdout, &stderr)
		if got := stdout.String() + stderr.String(); code != 2 || !strings.Contains(got, want) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, got, want)
		}
	}
}

func TestRepeatableFlagsMayBeRepeated(t *testing.T) {
	app := newApp(new(bytes.Buffer), &invocation{show: newDisplay(new(bytes.Buffer))})
	for _, args := range []string{
		"load a.csv -q -q --pk a --pk b --type a=string --type b=string --exclude x --exclude y --null - --null NULL --rename a=b --set c=d",
		"load a.csv --table t -- --table t",
		"serve --slow 1:0.5 --slow 2:0.5 --fault-kinds a --fault-kinds b",
		`load a.csv --run-dir C:\runs\x --store C:/store`,
		"nonsense --table a --table b",
	} {
		sorted, err := flagsFirst(app, append([]string{"tsimport"}, strings.Fields(args)...))
		if err == nil {
			err = checkGiven(app, sorted)
		}
		conformance.Equal(t, err, nil, "%s", args)
	}
}

// TestFlagsForPathsAreKnownByTheirHelp keeps the rule that tells them.
func TestFlagsForPathsAreKnownByTheirHelp(t *testing.T) {
	others := []string{"export output", "job-dir", "files-by", "profile"}
	eachFlag(func(command string, f cli.Flag) {
		s, text := f.(*cli.StringFlag)
		name := f.Names()[0]
		if !text || slices.Contains(others, name) || slices.Contains(others, command+" "+name) || isPath(s.Usage) {
			return
		}
		for _, part := range []string{"-dir", "-file", "-profile", "output", "store", "policy", "keep", "samples", "tls-"} {
			if strings.Contains("-"+name, part) {
				t.Errorf("%s --%s: its help names no `FILE`, `DIR` or `FOLDER`", command, name)
			}
		}
	})
}

// TestNoFlagHasTwoDefaults looks at the line of each flag in --help.
func TestNoFlagHasTwoDefaults(t *testing.T) {
	flags := 0
	eachFlag(func(command string, f cli.Flag) {
		flags++
		if text := f.String(); strings.Count(text, "(default") > 1 || strings.Contains(text, "(default: false)") {
			t.Errorf("%s: %s", command, text)
		}
	})
	if flags < 300 {
		t.Errorf("only %d flags were looked at", flags)
	}
}

// eachFlag calls do for every flag of every command.
func eachFlag(do func(command string, f cli.Flag)) {
	var walk func(parent string, commands []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		for _, c := range commands {
			command := strings.TrimPrefix(parent+" "+c.Name, " ")
			for _, f := range c.Flags {
				do(command, f)
			}
			walk(command, c.Subcommands)
		}
	}
	walk("", newApp(io.Discard, &invocation{show: newDisplay(io.Discard)}).Commands)
}
