package commands

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// in maps names of files in the folder in to their content.
type in map[string]string

// night is one night of a recurring load, with the files delivered before, the flags, and the expected results.
type night struct {
	deliver in // "" removes a file, "touch" gives it a new time, "empty" makes it empty
	flags   string
	code    int
	says    string // parts of the output, separated by |
	rows    string // keys and values of the table; "" is not checked
	bad     string // names of files set aside
}

func (n *night) run(t *testing.T, tsimport func(int, ...string) string, load string) {
	t.Helper()
	for name, text := range n.deliver {
		name = "in/" + name
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
			keys = append(keys, fields[0]+","+fields[len(fields)-1]) // without generated numbers
		}
		conformance.Equal(t, strings.Join(slices.Sorted(slices.Values(keys[1:])), " "), n.rows, "%s %s: rows", load, n.flags)
	}
	bad, want := tsimport(0, "files", "--table", "t", "--state", "bad"), strings.Fields(n.bad)
	conformance.Equal(t, strings.Count(bad, "\n"), len(want), "%s %s: files set aside, of %q", load, n.flags, n.bad)
	holds(t, bad, want...)
}

func cutGzip(t *testing.T) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte("id,n\n8,8\n9,9\n"))
	must(t, errors.Join(err, w.Close()))
	return b.String()[:b.Len()-6]
}

// TestBadFilesDoNotBlockOthers checks that other files are loaded, and that the user need not look at a bad file twice.
func TestBadFilesDoNotBlockOthers(t *testing.T) {
	conformance.NotForRaces(t)
	const load = "load in --table t --create --pk id --only-new -q"
	const stops = "--bad-inputs stop" // stops at the cut file: the load is unfinished, and rows of the others were sent
	cut := cutGzip(t)
	const numbered = "load in --table t --create --pk id --pk seq:auto --only-new -q"
	const added = "load in --table t --create --pk id --mode increment --only-new -q"
	for name, tt := range map[string]struct {
		load   string
		nights []night
	}{
		"other columns": {load, []night{
			{in{"a.csv": "id,n\n1,1\n", "b.csv": "id,n\n2,2\n", "c.csv": "id,m\n3,3\n"}, "", 3,
				"in/c.csv: its columns are not those of in/a.csv; it lacks n; it has m", "1,1 2,2", "c.csv"},
			{nil, "", 3, "1 input is bad", "1,1 2,2", "c.csv"}, // c.csv could be loaded alone
			{in{"c.csv": "id,n\n3,3\n"}, "", 0, "", "1,1 2,2 3,3", ""},
		}},
		"columns of earlier nights": {load, []night{
			{in{"a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{in{"b.csv": "id,m\n2,2\n", "c.csv": "id,n\n3,3\n"}, "", 3, "in/b.csv: its columns are not those of in/c.csv",
				"1,1 3,3", "b.csv"},
			{nil, "runs", 0, "1 of 1 rows final, 1 input set aside, exit code 3", "", "b.csv"},
			{in{"b.csv": "id,m\n2,3\n"}, "", 0, `the new column "m" and lack "n"`, "", ""},
		}},
		"withdrawn": {load, []night{
			{in{"a.csv": "id,n\n1,1\n", "b.csv": "id,n\n2,2\n", "c.csv": "id,m\n3,3\n"}, "", 3, "", "1,1 2,2", "c.csv"},
			{in{"c.csv": ""}, "", 0, "", "1,1 2,2", ""},
		}},
		"the error limit does not wear off": {load, []night{
			{in{"a.csv": "id,n\n1,1\n", "b.csv": "id,n\n2,2\nx\nx\n"}, "--max-errors 1", 3,
				"in/b.csv: 2 of 3 rows were rejected", "1,1 2,2", "b.csv"},
			{nil, "--max-errors 1", 3, "in/b.csv", "1,1 2,2", "b.csv"},
			{nil, "--max-errors 2", 3, "2 rejected", "1,1 2,2", ""}, // repeated by the user
			{nil, "--max-errors 1", 0, "", "", ""},
		}},
		"rows of a file past the limit are not sent over later ones": {load, []night{
			{in{"a.csv": "id,n\n1,1\nx\n", "b.csv": "id,n\n2,2\n"}, "--max-errors 0", 3, "in/a.csv", "1,1 2,2", "a.csv"},
			{in{"c.csv": "id,n\n1,10\n"}, "--max-errors 0", 3, "in/a.csv: 1 of", "1,10 2,2", "a.csv"},
			{nil, "--max-errors 0", 3, "in/a.csv", "1,10 2,2", "a.csv"},
		}},
		"touched with the same content": {load, []night{
			{in{"a.csv": "id,n\n1,1\nx\n", "b.csv": "id,m\n3,3\n", "c.csv": "id,n\n2,2\n", "d.csv": "id,n\n4,4\n"},
				"--max-errors 0", 1, "2 inputs are bad", "1,1 2,2 4,4", "a.csv b.csv"},
			{in{"a.csv": "touch", "b.csv": "touch", "e.csv": "id,n\n1,10\n"}, "--max-errors 0", 3, "2 inputs are bad",
				"1,10 2,2 4,4", "a.csv b.csv"},
			// other content of the same size
			{in{"a.csv": "id,n\n1,1\ny\n", "b.csv": "touch"}, "--max-errors 0", 3, "2 inputs are bad", "1,1 2,2 4,4",
				"a.csv b.csv"},
			{nil, "files --table t --state bad", 0, "1 night |3 nights ", "", "a.csv b.csv"},
		}},
		"a copy of a bad file": {load, []night{
			{in{"a.csv": "id,n\n1,1\nx\n", "b.csv": "id,n\n2,2\n", "c.csv": "id,n\n1,1\nx\n"}, "--max-errors 0", 1,
				"2 inputs are bad", "1,1 2,2", "a.csv c.csv"},
			{in{"a.csv": ""}, "--max-errors 0", 3, "in/c.csv", "1,1 2,2", "c.csv"},
		}},
		"empty until it is written": {load, []night{
			{in{"a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{in{"b.csv": "empty"}, "", 0, "", "1,1", ""},
			{in{"b.csv": "id,n\n2,2\n"}, "", 0, "", "1,1 2,2", ""},
		}},
		"two that changed": {load, []night{
			{in{"a.csv": "id,n\n1,1\n", "b.csv": "id,n\n2,2\n"}, "", 0, "", "1,1 2,2", ""},
			{in{"a.csv": "id,n\n1,10\n", "b.csv": "id,n\n2,20\n"}, "", 1, "2 inputs are bad", "1,1 2,2", "a.csv b.csv"},
			{nil, "", 3, "2 inputs are bad", "1,1 2,2", "a.csv b.csv"},
		}},
		"changed after it was taken": {load, []night{
			{in{"a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{in{"a.csv": "id,n\n1,10\n", "b.csv": "id,n\n2,2\n"}, "", 3, "in/a.csv: it changed after it was loaded",
				"1,1 2,2", "a.csv"},
			{nil, "--reload-changed", 0, "", "1,10 2,2", ""},
		}},
		"more than a tenth": {load, []night{
			{in{"a.csv": "id,n\n1,1\n", "b.csv": "x\n", "c.csv": "y\n", "d.csv": "id,n\n2,2\n"}, "", 1,
				"the flags or the place may be wrong", "1,1 2,2", "b.csv c.csv"},
			{in{"e.csv": "id,n\n5,5\n"}, "", 3, "2 inputs are bad", "1,1 2,2 5,5", "b.csv c.csv"},
		}},
		"all, and none was ever loaded": {load, []night{{in{"b.csv": "x\n"}, "", 2, `no column "id"`, "", ""}}},
		"a wrong flag is not the fault of files": {load, []night{
			{in{"a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{in{"b.csv": "id,n\n2,2\n"}, "--version-column at", 2, "--version-column at: no input has", "1,1", ""},
		}},
		"all, and others were": {load, []night{
			{in{"a.csv": "id,n\n1,1\n"}, "", 0, "", "1,1", ""},
			{in{"b.csv": "x\n"}, "", 3, "nothing is loaded, because 1 input is bad: in/b.csv", "1,1", "b.csv"},
		}},
		"replaced in an unfinished load": {load, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut, "c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": "id,n\n1,1\n2,20\n"}, "", 3, "b.csv.gz", "1,1 2,20 3,3 8,8 9,9", "b.csv.gz"},
		}},
		"withdrawn from an unfinished load": {load, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut, "c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": ""}, "", 3, "", "1,1 2,2 3,3 8,8 9,9", "b.csv.gz"},
		}},
		"cut in an unfinished load": {load, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut, "c.csv": "id,n\n3,3\n"}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": "x\n", "b.csv.gz": ""}, "", 3, "in/a.csv", "1,1 2,2 3,3 8,8 9,9", "a.csv"},
		}},
		"touched in an unfinished load": {load, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": "touch"}, "", 3, "4 read, 4 written", "1,1 2,2 8,8 9,9", "b.csv.gz"},
		}},
		"numbers are not made twice": {numbered, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut}, stops + " --returned-keys k", 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": "id,n\n1,1\n2,2\n3,3\n4,4\n"}, "--returned-keys k", 2, "--fresh --look-first", "1,1 2,2 8,8 9,9", ""},
			{nil, "--fresh --look-first --returned-keys other.csv", 3, "", "1,1 2,2 3,3 4,4 8,8 9,9", "b.csv.gz"},
		}},
		"numbers of a bad file": {numbered, []night{
			{in{"a.csv": "id,n\n1,1\nx\n", "b.csv": "id,n\n2,2\n"}, "--max-errors 0 --returned-keys one.csv", 3, "in/a.csv",
				"1,1 2,2", "a.csv"},
			{in{"a.csv": "id,n\n1,1\n9,9\n"}, "--returned-keys two.csv", 3, "of its rows are in the table", "1,1 2,2", "a.csv"},
			{nil, "files forget --table t in/a.csv", 0, "", "1,1 2,2", ""},
			{nil, "--returned-keys three.csv", 0, "", "1,1 1,1 2,2 9,9", ""},
		}},
		"sums": {added, []night{
			{in{"a.csv": "id,n\n1,1\n2,2\n", "b.csv.gz": cut}, stops, 2, "", "1,1 2,2 8,8 9,9", ""},
			{in{"a.csv": "id,n\n1,1\n2,2\n3,3\n"}, "", 2, "--accept-changed-input", "1,1 2,2 8,8 9,9", ""},
			{nil, "--accept-changed-input", 2, "restore the old content", "", ""},
			{in{"a.csv": "id,n\n1,1\n2,2\n"}, "", 3, "b.csv.gz", "1,1 2,2 8,8 9,9", "b.csv.gz"},
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

func TestOptionsThatHideLoadedFilesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id\n1\n")
	for flags, says := range map[string]string{
		"--done-marker done": "it must contain {}", "--settle-files -1s": "--settle-files",
		"--reload-changed": "needs --only-new", "--only-new --limit 1": "--limit", "--only-new --verify": "--verify",
	} {
		ends(t, 2, "load a.csv --table t --create --pk id "+flags, says)
	}
}

// A missing state may be on an unmounted share. A step of the test is a command with its exit code, its message and the
// table's rows afterwards; "given" runs the command that the previous step advised.
func TestMissingStateIsRefusedForATableWithRows(t *testing.T) {
	conformance.NotForRaces(t)
	const (
		put      = "load in --create --pk id --only-new -q --table t --state "
		numbered = "load in --create --pk id --pk n:auto --returned-keys keys.csv --only-new -q --table t --state "
		added    = "load in --create --pk id --mode increment --only-new -q --table t --state "
		once     = "load in/a.csv --create --pk id -q --mode increment --table t --state "
		job      = "run job.yaml -q"
	)
	type step struct {
		command string
		code    int
		says    string
		rows    int
	}
	for name, steps := range map[string][]step{
		"the first night": {{put + "mnt/state", 0, "", 2}, {put + "mnt/state", 0, "", 2},
			{job + " --state other", 2, "--state other is missing", 2}},
		"a dry run of it, and its plan": {
			{put + "mnt/state --dry-run", 0, "", 0}, {"run job.yaml --plan", 0, "", 0}, {"absent mnt", 0, "", 0}},
		"a share that is not mounted": {
			{put + "mnt/state", 0, "", 2}, {"mv mnt away", 0, "", 2},
			{put + "mnt/state", 2, "--state mnt/state is missing, and with it the known files and unfinished loads of " +
				"table t, which has rows", 2},
			{put + "mnt/state --dry-run", 2, "mount or name the right place", 2},
			{"run job.yaml --plan", 2, "share that is not mounted", 2}, {job, 2, "share that is not mounted", 2},
			{"files --table t --state mnt/state", 2, "is missing", 2},
			{"files forget --table t --state mnt/state in/a.csv", 2, "is missing", 2}, {"absent mnt", 0, "", 2},
			{"mv away mnt", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"a first load over a table with rows": {
			{"load in --create --pk id -q --table t", 0, "", 2}, {"files --table t", 0, "no file is known for table t", 2},
			{put + "mnt/state", 2, "run: mkdir -p mnt/state", 2}, {"given", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"a pod with an empty disk": {{numbered + "mnt/state", 0, "", 2}, {"rm tsimport-runs", 0, "", 2},
			{numbered + "mnt/state", 0, "", 2}},
		"a mount point that is empty, of numbered rows": {
			{numbered + "mnt/state", 0, "", 2}, {"mv mnt/state away", 0, "", 2}, {"mkdir mnt/state", 0, "", 2},
			{numbered + "mnt/state", 2, "knows no file of table t, which has rows: if it is not the place of the earlier " +
				"loads, their rows would be duplicated", 2},
			{numbered + "mnt/state", 2, "run: mkdir -p mnt/state/known/", 2},
			{"given", 0, "", 2}, {"rm keys.csv", 0, "", 2}, {numbered + "mnt/state", 0, "", 4}},
		"a missing one, of numbered rows": {{numbered + "mnt/state", 0, "", 2}, {"mv mnt/state away", 0, "", 2},
			{numbered + "mnt/state", 2, "run: mkdir -p mnt/state/known/", 2},
			{"mv away mnt/state", 0, "", 2}, {numbered + "mnt/state", 0, "", 2}},
		"a mount point that is empty, of rows that are put": {{put + "mnt/state", 0, "", 2}, {"rm mnt/state", 0, "", 2},
			{"mkdir mnt/state", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"numbers that are added, of one load": {
			{once + "mnt/state", 0, "", 1}, {"mv mnt/state away", 0, "", 1}, {"mkdir mnt/state", 0, "", 1},
			{once + "mnt/state", 2, "run: mkdir -p mnt/state/loads", 1}, {"given", 0, "", 1}, {once + "mnt/state", 0, "", 1}},
		"a state that a new table has made": {
			{put + "mnt/state", 0, "", 2}, {"mv mnt away", 0, "", 2}, {strings.Replace(put, "table t", "table new", 1) +
				"mnt/state", 0, "", 2},
			{put + "mnt/state", 2, "run: mkdir -p mnt/state/known/", 2}, {job, 2, "knows no file of table t", 2}},
		"a prefix that is empty, of numbers that are added": {
			{added + "s3://states/here", 0, "", 2}, {added + "s3://states/other", 2,
				"run: tsimport files forget --table t --state s3://states/other", 2},
			{added + "s3://states/here", 0, "", 2}, {"given", 0, "", 2}, {added + "s3://states/other", 0, "", 2},
			{"files forget --table t --state s3://states/other", 2, "name the files to forget", 2}},
		"an empty prefix, of put rows": {{put + "s3://states/here", 0, "", 2}, {put + "s3://states/other", 0, "", 2}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.New(t, "states")
			tsimport := commandsIn(t)
			must(t, os.Mkdir("in", 0o700))
			must(t, os.WriteFile("in/a.csv", []byte("id,v\na,1\n"), 0o600))
			must(t, os.WriteFile("in/b.csv", []byte("id,v\nb,2\n"), 0o600))
			must(t, os.WriteFile("job.yaml", []byte("version: 1\ndefaults: {create: true, only-new: true, state: "+
				"mnt/state}\nloads:\n  t: {from: [in], pk: [id]}\n"), 0o600))
			given := ""
			for _, s := range steps {
				if s.command == "given" {
					s.command = strings.TrimPrefix(given, "tsimport ")
				}
				switch words := strings.Fields(s.command); words[0] {
				case "mv":
					must(t, os.Rename(words[1], words[2]))
				case "rm":
					must(t, os.RemoveAll(words[1]))
				case "mkdir":
					must(t, os.MkdirAll(words[len(words)-1], 0o700))
				case "absent":
					conformance.Refused(t, conformance.ErrorOf(os.Stat(words[1])), "", "%s was made", words[1])
				default:
					said := tsimport(s.code, words...)
					holds(t, said, s.says)
					if _, after, ok := strings.Cut(said, "run: "); ok {
						given, _, _ = strings.Cut(after, "\n")
					}
				}
				if s.rows == 0 {
					continue
				}
				rows := strings.Count(tsimport(0, "export", "--table", "t", "--format", "csv", "-q"), "\n") - 1
				conformance.Equal(t, rows, s.rows, "after %s the table", s.command)
			}
		})
	}
}

// TestBadFileSearchCostsRequestsPerFile checks that requests grow with the number of files, not with its square.
func TestBadFileSearchCostsRequestsPerFile(t *testing.T) {
	conformance.NotForRaces(t)
	for name, bad := range map[string]string{"that cannot be loaded alone": "x\n1\n",
		"that does not go with the others": "id,m\n1,1\n", "of another type": "id,n\nx,1\n"} {
		t.Run(name, func(t *testing.T) {
			requests := func(files int) (lists, gets int) {
				s := storetest.New(t, "drop")
				s.PageSize = 50
				for i := range files {
					s.Set(fmt.Sprintf("in/%05d.csv", i), "id,n\n"+strings.Repeat("1,1\n", i+1), time.Now().Add(-time.Hour))
				}
				tsimport := commandsIn(t)
				load := func(code int) {
					tsimport(code, "load", "s3://drop/in/", "--table", "t", "--create", "--pk", "id:integer", "--only-new", "-q")
				}
				s.Set(fmt.Sprintf("in/%05d.csv", files/3), bad, time.Now().Add(-time.Hour))
				load(3)
				for _, r := range s.Requests() {
					if strings.HasPrefix(r, "GET in/") {
						gets++
					} else {
						lists++
					}
				}
				return lists, gets
			}
			lists, gets := requests(25)
			moreLists, moreGets := requests(100)
			conformance.True(t, moreLists <= 2*lists && moreGets <= 5*gets,
				"25 files: %d lists, %d gets; 100 files: %d, %d", lists, gets, moreLists, moreGets)
		})
	}
}

// Schedulers retry after exit code 1, but not after 2, which would mean a missing input.
func TestUnreachableServerIsNotBadUsage(t *testing.T) {
	busyMySQL := append([]byte{23, 0, 0, 0, 0xff, 0x10, 0x04}, "Too many connections"...)
	busyPostgres := []byte("E\x00\x00\x00\x3eSFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00")
	look := func(origin source.Origin) error {
		_, err := pipeline.Look(context.Background(), pipeline.Config{Target: plan.Target{Table: "t", Absent: true},
			Read: plan.Read{Sources: origin}, Inputs: []string{"x"}}, 1)
		return err
	}
	for _, tt := range []struct {
		what, at, want string
		servers        []string
	}{
		{"a server that is not there", "127.0.0.1:1", "refused", []string{"mysql", "postgres"}},
		{"one that hangs up", listening(t, []byte{}), "the server ended the connection", []string{"mysql", "postgres"}},
		{"a MySQL that is busy", listening(t, busyMySQL), "Too many connections", []string{"mysql"}},
		{"a PostgreSQL that starts", listening(t, busyPostgres), "starting up", []string{"postgres"}},
	} {
		for _, name := range tt.servers {
			var server sqltable.Server
			var err error
			if name == "mysql" {
				server, err = mysql.Parse("mysql://u@" + tt.at + "/shop?table=t")
			} else {
				server, err = postgres.Parse("postgres://u@" + tt.at + "/shop?table=t&sslmode=disable")
			}
			must(t, err)
			err = look(sqltable.New(sqltable.Config{Server: server, Sessions: 1}))
			conformance.True(t, err != nil && !errors.As(err, new(*plan.UsageError)) && exitcode.Of(err) == exitcode.Failed &&
				strings.Contains(err.Error(), tt.want), "%s, %s: exit code %d: %v", tt.what, name, exitcode.Of(err), err)
		}
	}
}

// listening returns an address that sends each client answer, after it has written if necessary, and disconnects it.
func listening(t *testing.T, answer []byte) string {
	t.Helper()
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(answer)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // closing earlier would discard the response to a client that is still writing
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// A load that waited for the same load of another process does not load everything a second time.
func TestSameLoadOfAnotherProcessIsNotRepeated(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,n\nx,1\n")
	load := []string{"load", "a.csv", "--table", "t", "--pk", "id", "--mode", "increment", "--create", "--state", "state"}
	tsimport(0, load...)
	place := conformance.Try(filepath.Glob("state/loads/*")).Must(t)[0]
	store := conformance.Try(jobdir.Open(t.Context(), place, jobdir.Options{})).Must(t)
	other := conformance.Try(jobdir.Acquire(t.Context(), store, jobdir.LeaseOptions{Wait: jobdir.Term})).Must(t)
	out := &releasing{lease: other}
	conformance.Equal(t, Run(append([]string{"tsimport"}, load...), io.Discard, out), exitcode.Failed, "exit code")
	conformance.Contains(t, out.String(), "another process has finished this load", "message")
	tsimport(0, load...)
	tsimport(0, "export", "--table", "t", "--columns", "n", "-o", "all.csv")
	conformance.Equal(t, string(conformance.Try(os.ReadFile("all.csv")).Must(t)), "id,n\nx,2\n", "after two loads")
}

// releasing releases a lease as soon as a message says that it is waited for.
type releasing struct {
	bytes.Buffer
	lease *jobdir.Lease
}

func (r *releasing) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("waiting: ")) {
		_ = r.lease.Release() // the load would wait for a minute
	}
	return r.Buffer.Write(text)
}
