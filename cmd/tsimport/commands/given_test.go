package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestFlagsGivenTwiceAndAddressesForPathsAreRefused(t *testing.T) {
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
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(args)...), &stdout, &stderr)
		if got := stderr.String(); code != 2 || !strings.HasPrefix(got, "tsimport: "+want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, got, want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("something was written: %v, %v", left, err)
	}
}

func TestRepeatableFlagsMayBeRepeated(t *testing.T) {
	app := newApp(new(bytes.Buffer), newDisplay(new(bytes.Buffer)), nil, nil)
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
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestFlagsForPathsAreKnownByTheirHelp keeps the rule that tells them.
func TestFlagsForPathsAreKnownByTheirHelp(t *testing.T) {
	app := newApp(new(bytes.Buffer), newDisplay(new(bytes.Buffer)), nil, nil)
	var walk func(string, []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		for _, c := range commands {
			for _, f := range c.Flags {
				name := f.Names()[0]
				for _, part := range []string{"-dir", "-file", "-profile", "output", "store", "policy", "keep", "samples", "tls-"} {
					s, text := f.(*cli.StringFlag)
					if text && c.Name+" "+name != "export output" && name != "job-dir" && name != "files-by" && name != "profile" && strings.Contains("-"+name, part) && !isPath(s) {
						t.Errorf("%s %s --%s: its help names no `FILE`, `DIR` or `FOLDER`", parent, c.Name, name)
					}
				}
			}
			walk(parent+" "+c.Name, c.Subcommands)
		}
	}
	walk("tsimport", app.Commands)
}
