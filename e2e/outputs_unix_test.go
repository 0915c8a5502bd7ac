//go:build e2e && unix

package e2e

import (
	"errors"
	"example.com/tsimport/internal/conformance"
	"os"
	"strings"
	"testing"
)

// fileWriters lists commands that write to the path OUT. Commands with + refuse an existing file, and commands with =
// need a file that can be read again.
var fileWriters = []string{
	"export --table t --format csv --fresh -o OUT", "export --table t --format parquet -o OUT",
	"gen student-cards --rows 10 -o OUT", "verify in.csv --table t --metrics-file OUT",
	"export --table t -o - --cpu-profile OUT", "export --table t -o - --allocations-profile OUT",
	"bench write --rows 10 --store b --samples OUT", "bench write --rows 10 --store b --benchfmt OUT",
	"+convert datax job.json -o OUT",
	"=load in.csv --table numbered --pk id --pk n:auto --returned-keys OUT --run-dir run",
}

const dataxJob = `{"job":{"content":[{"reader":{"name":"txtfilereader","parameter":{"path":["/data/in.csv"],"skipHeader":true,"fieldDelimiter":",",
"column":[{"index":0,"type":"string"},{"index":1,"type":"string"}]}},"writer":{"name":"otswriter","parameter":{"endpoint":"http://127.0.0.1:1",
"instanceName":"i","accessId":"a","accessKey":"b","table":"t","primaryKey":[{"name":"id","type":"string"}],"column":[{"name":"v","type":"string"}],
"writeMode":"PutRow"}}}]}}`

func TestAllCommandsTreatOutputPathsAlike(t *testing.T) {
	t.Parallel()
	for _, command := range fileWriters {
		kind := command[:1]
		command = strings.TrimLeft(command, "+=")
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			dir, at := p.dir, p.path
			p.write("in.csv", "id,v\n1,a\n2,b\n3,c\n4,d\n")
			p.write("job.json", dataxJob)
			p.run(0, strings.Fields("load in.csv --table t --pk id")...)
			run := func(out, around string) (string, int) {
				return shell(t, dir, strings.Replace(around, "CMD", `"$T" `+strings.Replace(command, "OUT", out, 1), 1))
			}
			must(t, os.Mkdir(at("folder"), 0o700))
			must(t, errors.Join(os.Symlink("nothing", at("dangling")), os.Symlink("target", at("link"))))
			for _, refused := range []string{"folder", "dangling"} {
				folders := strings.Contains(command, "--format csv") || strings.Contains(command, "--format parquet")
				if refused == "folder" && folders {
					continue // exports put files into a folder
				}
				out, code := run(refused, "CMD")
				conformance.True(t, code == 2 && strings.Contains(out, refused), "%s: exit code %d\n%s", refused, code, out)
			}
			conformance.Refused(t, conformance.ErrorOf(os.Lstat(at("nothing"))), "", "a link to nothing was followed")
			p.write("target", "")
			out, code := run("link", "CMD")
			text := p.read("target")
			info, err := os.Lstat(at("link"))
			conformance.True(t, err == nil && info.Mode()&os.ModeSymlink != 0, "the link is replaced: %v", err)
			if kind == "+" {
				conformance.True(t, code == 2 && text == "", "a file that is there: exit code %d, %q\n%s", code, text, out)
			} else if code != 0 || text == "" {
				t.Errorf("the target of a link: exit code %d, %q\n%s", code, text, out)
			}
			out, code = run("/dev/fd/3", "(printf before >&3; CMD; r=$?; printf after >&3; exit $r) 3>file")
			text = p.read("file")
			if kind == "=" {
				conformance.True(t, code == 2 && strings.Contains(out, "not a file"), "a descriptor: exit code %d\n%s", code, out)
			} else if code != 0 || !strings.HasPrefix(text, "before") || !strings.HasSuffix(text, "after") || len(text) < 20 {
				t.Errorf("a descriptor: exit code %d, %q\n%s", code, text, out)
			}
		})
	}
}

func TestUnwrittenOutputFailsCommand(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	p.write("in.csv", "id,v\n1,a\n")
	p.run(0, strings.Fields("load in.csv --table t --pk id")...)
	for _, line := range []string{
		`table list >/dev/full`, `table list --json >/dev/full`, `--help >/dev/full`, `load --help >/dev/full`,
		`--version >/dev/full`, `man >/dev/full`, `inspect in.csv >/dev/full`, `explain --pk id:integer >/dev/full`,
		`errors >/dev/full`, `completion bash >/dev/full`, `runs >/dev/full`, `export --table t >/dev/full`,
		`export --table t -o /dev/full`, `gen student-cards --rows 10 -o /dev/full`, `export --table t >&-`,
		`export --table t -o - >&-`, `gen student-cards --rows 10 >&-`, `verify in.csv --table t >/dev/full`,
		`load in.csv --table t --json >/dev/full`, `advise in.csv >/dev/full`, `check in.csv --pk id --json >/dev/full`,
	} {
		out, code := shell(t, p.dir, `"$T" `+line)
		conformance.True(t, code != 0 && (strings.Contains(out, "no space left") || strings.Contains(out, "is closed")),
			"%s: exit code %d\n%s", line, code, out)
	}
	// Python and Node open the null device like this, and so does Go if stdout is closed.
	out, code := shell(t, p.dir,
		`set -e; for c in "load in.csv --table t --json" "table list" --version; do "$T" $c 1<>/dev/null; "$T" $c >&-; done; "$T" export --table t >/dev/null`)
	conformance.True(t, code == 0, "a stdout that keeps nothing: exit code %d\n%s", code, out)
}
