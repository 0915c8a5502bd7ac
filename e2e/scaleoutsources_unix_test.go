//go:build e2e && unix

package e2e

import (
	"path/filepath"
	"testing"
)

// TestTablesDatabasesAndArchivesAreLoadedByProcesses plans a load of a database, a copy of the table that it makes, and a load of an archive of
// that. With -scale-rounds a first process is killed when it has read something: its leases are waited for.
func TestTablesDatabasesAndArchivesAreLoadedByProcesses(t *testing.T) {
	t.Parallel()
	rows := 4000
	if *scaleRounds > 0 {
		rows = 30_000
	}
	s := startServe(t)
	dir := newDatabase(t, rows, "orders").dir
	database := "sqlite:" + filepath.Join(dir, "shop.db") + "?table=orders"
	archive := filepath.Join(dir, "archive") + string(filepath.Separator)
	p := newPlace(t, s.env()...)
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
			p.run(0, c.before...)
		}
		l := &scaledLoad{place: p, job: "job-" + c.name}
		p.run(0, append(c.plan, "--create", "--job-dir", l.job, "--workers", "2", "--verify", "--quiet")...)
		if *scaleRounds > 0 {
			killed := l.worker()
			killed.must(func() bool { return len(p.glob(l.job+"/runs/*")) > 0 })
			killed.kill()
		}
		p.run(0, "work", "--job-dir", l.job, "--quiet")
		if got := l.status(); got.Read != rows || got.Written != rows || got.ExitCode == nil || *got.ExitCode != 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
		p.run(0, append(append([]string{"verify"}, c.verify...), "--extra", "fail")...)
	}
	// A table whose rows are to be read at a rate is left to one process.
	p.ends(2, []string{"copy", "orders", "again", "--create", "--max-rcu", "10", "--job-dir", "job-rate"}, "--max-rcu")
	if there(p.path("job-rate"))() {
		t.Error("a job was planned all the same")
	}
}
