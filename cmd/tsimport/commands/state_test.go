package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// TestAStateThatIsNotThereIsNotBegunOverATableWithRows: what a table has taken may be in a share that is not mounted. A step is a command and what it ends
// with and says; "given" does what the step before it has advised. The last column is how many rows the table has afterwards.
func TestAStateThatIsNotThereIsNotBegunOverATableWithRows(t *testing.T) {
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
		"the first night": {{put + "mnt/state", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"a dry run of it, and its plan": {
			{put + "mnt/state --dry-run", 0, "", 0}, {"run job.yaml --plan", 0, "", 0}, {"absent mnt", 0, "", 0}},
		"a share that is not mounted": {
			{put + "mnt/state", 0, "", 2}, {"mv mnt away", 0, "", 2},
			{put + "mnt/state", 2, "--state mnt/state is missing, and known files and unfinished loads with it, of table t, which has rows", 2},
			{put + "mnt/state --dry-run", 2, "mount or name the right place", 2},
			{"run job.yaml --plan", 2, "share that is not mounted", 2},
			{job, 2, "share that is not mounted", 2},
			{"files --table t --state mnt/state", 2, "is missing", 2},
			{"files forget --table t --state mnt/state in/a.csv", 2, "is missing", 2},
			{"absent mnt", 0, "", 2},
			{"mv away mnt", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"a first load over a table with rows": {
			{"load in --create --pk id -q --table t", 0, "", 2}, {put + "mnt/state", 2, "give: mkdir -p mnt/state", 2}, {"given", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"a pod with an empty disk": {{numbered + "mnt/state", 0, "", 2}, {"rm tsimport-runs", 0, "", 2}, {numbered + "mnt/state", 0, "", 2}},
		"a mount point that is empty, of numbered rows": {
			{numbered + "mnt/state", 0, "", 2}, {"mv mnt/state away", 0, "", 2}, {"mkdir mnt/state", 0, "", 2},
			{numbered + "mnt/state", 2, "knows no file of table t, which has rows: if it is not the place of the loads before, their rows would be there twice", 2},
			{numbered + "mnt/state", 2, "give: mkdir -p mnt/state/known/", 2},
			{"given", 0, "", 2}, {"rm keys.csv", 0, "", 2}, {numbered + "mnt/state", 0, "", 4}},
		"a missing one, of numbered rows": {{numbered + "mnt/state", 0, "", 2}, {"mv mnt/state away", 0, "", 2}, {numbered + "mnt/state", 2, "give: mkdir -p mnt/state/known/", 2},
			{"mv away mnt/state", 0, "", 2}, {numbered + "mnt/state", 0, "", 2}},
		"a mount point that is empty, of rows that are put": {{put + "mnt/state", 0, "", 2}, {"rm mnt/state", 0, "", 2}, {"mkdir mnt/state", 0, "", 2}, {put + "mnt/state", 0, "", 2}},
		"numbers that are added, of one load": {
			{once + "mnt/state", 0, "", 1}, {"mv mnt/state away", 0, "", 1}, {"mkdir mnt/state", 0, "", 1}, {once + "mnt/state", 2, "give: mkdir -p mnt/state/loads", 1}, {"given", 0, "", 1},
			{once + "mnt/state", 0, "", 1}},
		"a state that a new table has made": {
			{put + "mnt/state", 0, "", 2}, {"mv mnt away", 0, "", 2}, {strings.Replace(put, "table t", "table new", 1) + "mnt/state", 0, "", 2},
			{put + "mnt/state", 2, "give: mkdir -p mnt/state/known/", 2}, {job, 2, "knows no file of table t", 2}},
		"a prefix that is empty, of numbers that are added": {
			{added + "s3://states/here", 0, "", 2}, {added + "s3://states/other", 2, "give: tsimport files forget --table t --state s3://states/other", 2},
			{added + "s3://states/here", 0, "", 2}, {"given", 0, "", 2}, {added + "s3://states/other", 0, "", 2},
			{"files forget --table t --state s3://states/other", 2, "name the files to forget", 2}},
		"a prefix that is empty, of rows that are put": {{put + "s3://states/here", 0, "", 2}, {put + "s3://states/other", 0, "", 2}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.New(t, "states")
			tsimport := commandsIn(t)
			must(t, os.Mkdir("in", 0o700))
			must(t, os.WriteFile("in/a.csv", []byte("id,v\na,1\n"), 0o600))
			must(t, os.WriteFile("in/b.csv", []byte("id,v\nb,2\n"), 0o600))
			must(t, os.WriteFile("job.yaml", []byte("version: 1\ndefaults: {create: true, only-new: true, state: mnt/state}\nloads:\n  t: {from: [in], pk: [id]}\n"), 0o600))
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
					if _, err := os.Stat(words[1]); err == nil {
						t.Errorf("%s was made", words[1])
					}
				default:
					said := tsimport(s.code, words...)
					holds(t, said, s.says)
					if _, after, ok := strings.Cut(said, "give: "); ok {
						given, _, _ = strings.Cut(after, "\n")
					}
				}
				if s.rows == 0 {
					continue
				}
				if rows := strings.Count(tsimport(0, "export", "--table", "t", "--format", "csv", "-q"), "\n") - 1; rows != s.rows {
					t.Errorf("after %s the table has %d rows, want %d", s.command, rows, s.rows)
				}
			}
		})
	}
}

// TestFindingABadFileCostsRequestsByTheFile: a place of thousands of files is not listed or read again for each of them.
func TestFindingABadFileCostsRequestsByTheFile(t *testing.T) {
	for name, bad := range map[string]string{"that cannot be loaded alone": "x\n1\n", "that does not go with the others": "id,m\n1,1\n", "of another type": "id,n\nx,1\n"} {
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
			if moreLists > 2*lists || moreGets > 5*gets {
				t.Errorf("25 files: %d lists, %d gets; 100 files: %d, %d", lists, gets, moreLists, moreGets)
			}
		})
	}
}

// A scheduler tries again after exit code 1, and not after 2, which an input gets that is not there.
func TestAServerThatDoesNotAnswerIsNotAWrongQuestion(t *testing.T) {
	busyMySQL := append([]byte{23, 0, 0, 0, 0xff, 0x10, 0x04}, "Too many connections"...)
	busyPostgres := append([]byte{'E', 0, 0, 0, 62}, "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"...)
	look := func(origin source.Origin) error {
		_, err := pipeline.Look(context.Background(), pipeline.Config{Target: plan.Target{Table: "t", Absent: true}, Read: plan.Read{Sources: origin}, Inputs: []string{"x"}}, 1)
		return err
	}
	for _, tt := range []struct {
		what    string
		at      string
		want    string
		servers []string
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
			if err == nil || errors.As(err, new(*plan.UsageError)) || exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: exit code %d: %v", tt.what, name, exitcode.Of(err), err)
			}
		}
	}
}

// listening answers each client that speaks, or is to be spoken to, with some bytes and hangs up, at the address.
func listening(t *testing.T, answer []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(answer)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // a client that still writes is not to lose the answer
			conn.Close()
		}
	}()
	return l.Addr().String()
}
