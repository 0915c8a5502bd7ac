//go:build e2e && unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTablesDatabasesAndArchivesAreLoadedByProcesses plans a load of a database, a copy of the table that it makes, and a load of an archive of
// that. With -scale-rounds a first process is killed when it has read something: its leases are waited for.
func TestTablesDatabasesAndArchivesAreLoadedByProcesses(t *testing.T) {
	t.Parallel()
	rows := 10_000
	if *scaleRounds > 0 {
		rows = 30_000
	}
	s := startServe(t)
	dir := t.TempDir()
	sqliteFile(t, dir, rows, "orders")
	database := "sqlite:" + filepath.Join(dir, "shop.db") + "?table=orders"
	archive := filepath.Join(dir, "archive") + string(filepath.Separator)
	to := []string{"--endpoint", s.URL, "--instance", s.Instance}
	run := func(args ...string) {
		t.Helper()
		if out, stderr, code := runBinaryWith(t, s.credentials(), args...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", args[0], code, out, stderr)
		}
	}
	for _, c := range []struct {
		name   string
		before []string
		plan   []string
		verify []string
	}{
		{"database", nil, []string{"load", database, "--table", "orders"}, []string{database, "--table", "orders"}},
		{"copy", nil, []string{"copy", "orders", "copied"}, []string{"ots://" + s.Instance + "/orders", "--table", "copied"}},
		{"archive", []string{"export", "--table", "copied", "-o", archive}, []string{"load", archive, "--table", "restored"}, []string{archive, "--table", "restored"}},
	} {
		if c.before != nil {
			run(append(c.before, to...)...)
		}
		l := &scaledLoad{t: t, s: s, env: s.credentials(), place: filepath.Join(dir, "job-"+c.name)}
		run(append(append(c.plan, to...), "--create", "--job-dir", l.place, "--workers", "2", "--verify", "--quiet")...)
		if *scaleRounds > 0 {
			killed, _ := l.worker()
			for len(glob(t, filepath.Join(l.place, "runs", "*"))) == 0 {
				time.Sleep(time.Millisecond)
			}
			_ = killed.Process.Kill() // it may have ended
			_ = killed.Wait()         // likewise
		}
		run("work", "--job-dir", l.place, "--quiet")
		if got := l.status(); got.Read != rows || got.Written != rows || got.ExitCode == nil || *got.ExitCode != 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
		run(append(append(append([]string{"verify"}, c.verify...), to...), "--extra", "fail")...)
	}
	// A table whose rows are to be read at a rate is left to one process.
	_, stderr, code := runBinaryWith(t, s.credentials(), append([]string{"copy", "orders", "again", "--create", "--max-rcu", "10", "--job-dir", filepath.Join(dir, "job-rate")}, to...)...)
	if code != 2 || !strings.Contains(stderr, "--max-rcu") {
		t.Errorf("copy --max-rcu: exit code %d\n%s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "job-rate")); err == nil {
		t.Error("a job was planned all the same")
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
