package commands

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// night is one night of a load that comes again: what is delivered, what is done, and what it leaves.
type night struct {
	deliver map[string]string // by name; "" withdraws, "touch" gives a new time, "empty" is without a byte
	flags   string
	code    int
	says    string // parts, by |
	rows    string // keys of the table; "" does not look
	bad     string // names of files that are set aside
}

func (n *night) run(t *testing.T, tsimport func(int, ...string) string, load string) {
	t.Helper()
	for name, text := range n.deliver {
		switch text {
		case "":
			must(t, os.Remove(name))
		case "empty":
			put(t, name, "")
		case "touch":
			must(t, os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)))
		default:
			put(t, name, text)
		}
	}
	flags := strings.Fields(n.flags)
	said := ""
	if len(flags) > 0 && !strings.HasPrefix(flags[0], "-") {
		said = tsimport(n.code, flags...) // another command
	} else {
		said = tsimport(n.code, append(strings.Fields(load), flags...)...)
	}
	holds(t, said, strings.Split(n.says, "|")...)
	if n.rows != "" {
		var keys []string
		for line := range strings.Lines(tsimport(0, "export", "--table", "t", "--columns", "n", "--format", "csv", "-q")) {
			fields := strings.Split(strings.TrimSpace(line), ",")
			keys = append(keys, fields[0]+","+fields[len(fields)-1]) // without its number
		}
		if got := strings.Join(slices.Sorted(slices.Values(keys[1:])), " "); got != n.rows {
			t.Errorf("%s %s: the table has %q, want %q", load, n.flags, got, n.rows)
		}
	}
	if bad := tsimport(0, "files", "--table", "t", "--state", "bad"); strings.Count(bad, "\n") != len(strings.Fields(n.bad)) {
		t.Errorf("%s %s: set aside are %q, want %q", load, n.flags, bad, n.bad)
	} else {
		holds(t, bad, strings.Fields(n.bad)...)
	}
}

// cutGzip is a compressed file of which the end is missing.
func cutGzip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte("id,n\n8,8\n9,9\n"))
	must(t, errors.Join(err, w.Close()))
	return b.String()[:b.Len()-6]
}

// TestBadFilesHoldUpNoOthers: no file that is wrong keeps others from their table, and none needs a person twice.
func TestBadFilesHoldUpNoOthers(t *testing.T) {
	const load = "load in --table t --create --pk id --only-new -q"
	const stops = "--bad-inputs stop" // at the file that is cut: the load is unfinished, and rows of the others were sent
	cut := cutGzip(t)
	const numbered = "load in --table t --create --pk id --pk seq:auto --only-new -q"
	const added = "load in --table t --create --pk id --mode increment --only-new -q"
	for name, tt := range map[string]struct {
		load   string
		nights []night
	}{
		"other columns": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n", "in/b.csv": "id,n\n2,2\n", "in/c.csv": "id,m\n3,3\n"}, "", 3, "in/c.csv: its columns are not those of in/a.csv; it lacks n; it has m", "1,1 2,2", "c.csv"},
			{nil, "", 3, "1 input is bad", "1,1 2,2", "c.csv"}, // alone it would be loaded
			{map[string]string{"in/c.csv": "id,n\n3,3\n"}, "", 0, "", "1,1 2,2 3,3", ""},
		}},
		"withdrawn": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n", "in/b.csv": "id,n\n2,2\n", "in/c.csv": "id,m\n3,3\n"}, "", 3, "", "1,1 2,2", "c.csv"},
			{map[string]string{"in/c.csv": ""}, "", 0, "", "1,1 2,2", ""},
		}},
		"the error limit does not wear off": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n", "in/b.csv": "id,n\n2,2\nx\nx\n"}, "--max-errors 1", 3, "in/b.csv: 2 of 3 rows were rejected", "1,1 2,2", "b.csv"},
			{nil, "--max-errors 1", 3, "in/b.csv", "1,1 2,2", "b.csv"},
			{nil, "--max-errors 2", 3, "2 rejected", "1,1 2,2", ""}, // by a person
			{nil, "--max-errors 1", 0, "", "", ""},
		}},
		"rows of a file past the limit are not sent over later ones": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\nx\n", "in/b.csv": "id,n\n2,2\n"}, "--max-errors 0", 3, "in/a.csv", "1,1 2,2", "a.csv"},
			{map[string]string{"in/c.csv": "id,n\n1,10\n"}, "--max-errors 0", 3, "in/a.csv: 1 of", "1,10 2,2", "a.csv"},
			{nil, "--max-errors 0", 3, "in/a.csv", "1,10 2,2", "a.csv"},
		}},
		"touched with the same content": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\nx\n", "in/b.csv": "id,m\n3,3\n", "in/c.csv": "id,n\n2,2\n", "in/d.csv": "id,n\n4,4\n"}, "--max-errors 0", 1, "2 inputs are bad", "1,1 2,2 4,4", "a.csv b.csv"},
			{map[string]string{"in/a.csv": "touch", "in/b.csv": "touch", "in/e.csv": "id,n\n1,10\n"}, "--max-errors 0", 3, "2 inputs are bad", "1,10 2,2 4,4", "a.csv b.csv"},
			{map[string]string{"in/a.csv": "id,n\n1,1\ny\n", "in/b.csv": "touch"}, "--max-errors 0", 3, "2 inputs are bad", "1,1 2,2 4,4", "a.csv b.csv"}, // other content of the same size
			{nil, "files --table t --state bad", 0, "1 night |3 nights ", "", "a.csv b.csv"},
		}},
		"a copy of a bad file": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\nx\n", "in/b.csv": "id,n\n2,2\n", "in/c.csv": "id,n\n1,1\nx\n"}, "--max-errors 0", 1, "2 inputs are bad", "1,1 2,2", "a.csv c.csv"},
			{map[string]string{"in/a.csv": ""}, "--max-errors 0", 3, "in/c.csv", "1,1 2,2", "c.csv"},
		}},
		"empty until it is written": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{map[string]string{"in/b.csv": "empty"}, "", 0, "", "1,1", ""},
			{map[string]string{"in/b.csv": "id,n\n2,2\n"}, "", 0, "", "1,1 2,2", ""},
		}},
		"two that changed": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n", "in/b.csv": "id,n\n2,2\n"}, "", 0, "", "1,1 2,2", ""},
			{map[string]string{"in/a.csv": "id,n\n1,10\n", "in/b.csv": "id,n\n2,20\n"}, "", 1, "2 inputs are bad", "1,1 2,2", "a.csv b.csv"},
			{nil, "", 3, "2 inputs are bad", "1,1 2,2", "a.csv b.csv"},
		}},
		"changed after it was taken": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{map[string]string{"in/a.csv": "id,n\n1,10\n", "in/b.csv": "id,n\n2,2\n"}, "", 3, "in/a.csv: it changed after the table had taken it", "1,1 2,2", "a.csv"},
			{nil, "--reload-changed", 0, "", "1,10 2,2", ""},
		}},
		"more than a tenth": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n", "in/b.csv": "x\n", "in/c.csv": "y\n", "in/d.csv": "id,n\n2,2\n"}, "", 1, "the flags or the place may be wrong", "1,1 2,2", "b.csv c.csv"},
			{map[string]string{"in/e.csv": "id,n\n5,5\n"}, "", 3, "2 inputs are bad", "1,1 2,2 5,5", "b.csv c.csv"},
		}},
		"all, and none was ever loaded": {load, []night{{map[string]string{"in/b.csv": "x\n"}, "", 2, `no column "id"`, "", ""}}},
		"a wrong flag is not the fault of files": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{map[string]string{"in/b.csv": "id,n\n2,2\n"}, "--version-column at", 2, "--version-column at: no input has", "1,1", ""},
		}},
		"all, and others were": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{map[string]string{"in/b.csv": "x\n"}, "", 3, "nothing is loaded, because 1 input is bad: in/b.csv", "1,1", "b.csv"},
		}},
		"replaced in an unfinished load": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut, "in/c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,20\n"}, "", 3, "b.csv.gz", "1,1 2,20 3,3 8,8 9,9", "b.csv.gz"},
		}},
		"withdrawn from an unfinished load": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut, "in/c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": ""}, "", 3, "", "1,1 2,2 3,3 8,8 9,9", "b.csv.gz"},
		}},
		"cut in an unfinished load": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut, "in/c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": "x\n", "in/b.csv.gz": ""}, "", 3, "in/a.csv", "1,1 2,2 3,3 8,8 9,9", "a.csv"},
		}},
		"touched in an unfinished load": {load, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": "touch"}, "", 3, "4 read, 4 written", "1,1 2,2 8,8 9,9", "b.csv.gz"},
		}},
		"numbers are not made twice": {numbered, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut}, stops + " --returned-keys keys.csv", 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n3,3\n4,4\n"}, "--returned-keys keys.csv", 2, "--fresh --look-first", "1,1 2,2 8,8 9,9", ""},
			{nil, "--fresh --look-first --returned-keys other.csv", 3, "", "1,1 2,2 3,3 4,4 8,8 9,9", "b.csv.gz"},
		}},
		"numbers of a bad file": {numbered, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\nx\n", "in/b.csv": "id,n\n2,2\n"}, "--max-errors 0 --returned-keys one.csv", 3, "in/a.csv", "1,1 2,2", "a.csv"},
			{map[string]string{"in/a.csv": "id,n\n1,1\n9,9\n"}, "--returned-keys two.csv", 3, "rows of it are in the table", "1,1 2,2", "a.csv"},
			{nil, "files forget --table t in/a.csv", 0, "", "1,1 2,2", ""},
			{nil, "--returned-keys three.csv", 0, "", "1,1 1,1 2,2 9,9", ""},
		}},
		"sums": {added, []night{
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n", "in/b.csv.gz": cut}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n3,3\n"}, "", 2, "--accept-changed-input", "1,1 2,2 8,8 9,9", ""},
			{nil, "--accept-changed-input", 2, "put it back", "", ""},
			{map[string]string{"in/a.csv": "id,n\n1,1\n2,2\n"}, "", 3, "b.csv.gz", "1,1 2,2 8,8 9,9", "b.csv.gz"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tsimport := commandsIn(t)
			for i := range tt.nights {
				tt.nights[i].run(t, tsimport, tt.load)
			}
		})
	}
}

func TestFlagsWithWhichNobodyCouldSayWhatWasLoadedAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id\n1\n")
	for flags, says := range map[string]string{
		"--done-marker done": "it must have {}", "--settle-files -1s": "--settle-files", "--reload-changed": "needs --only-new", "--only-new --limit 1": "--limit",
		"--only-new --verify": "--verify",
	} {
		var said bytes.Buffer
		if code := Run(append(strings.Fields("tsimport load a.csv --table t --create --pk id"), strings.Fields(flags)...), io.Discard, &said); code != 2 || !strings.Contains(said.String(), says) {
			t.Errorf("%s: exit code %d\n%s", flags, code, said.String())
		}
	}
}
