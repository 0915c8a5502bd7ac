package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/sqltable"
)

// tableRead is a load of a job that reads a database table.
type tableRead struct {
	moment  *sqltable.Moment // shared snapshot; nil means one of its own
	whole   bool             // all rows are read from the snapshot
	earlier bool             // an earlier process began a load of the snapshot
}

// readTogether finds the loads that read database tables, and the snapshots that they share.
func (o *jobRunner) readTogether() *sqltable.Moments {
	of, servers := new(sqltable.Moments), map[string]sqltable.Server{}
	o.reads = map[string]*tableRead{}
	for _, s := range o.record.Loads {
		resolved, err := s.Resolve(o.record.File, os.LookupEnv)
		if err != nil || s.Refused != "" || !slices.ContainsFunc(resolved.From, open.IsDatabase) {
			continue // the load reports the error
		}
		o.reads[s.Name] = new(tableRead)
		asked, err := o.requested(&resolved)
		if err != nil {
			continue
		}
		o.share(asked)
		if err := takeEnvironment(asked); err != nil {
			continue
		}
		if cfg, err := fromdatabase.Config(asked); err == nil && cfg != nil {
			o.reads[s.Name].whole = cfg.Whole
			cfg.OnPause = func(why string) { o.c.say.Note("%s", why) }
			of.Add(*cfg, s.State == job.Done)
			servers[s.Name] = cfg.Server
		}
	}
	begun := map[*sqltable.Moment]bool{}
	for name, server := range servers {
		m := of.Of(server)
		o.reads[name].moment = m
		begun[m] = begun[m] || hasRun(filepath.Join(o.folder, name))
	}
	for _, r := range o.reads {
		r.earlier = r.moment != nil && begun[r.moment]
	}
	return of
}

// mayRead refuses a load that must share the snapshot of an earlier process.
func (o *jobRunner) mayRead(name string) error {
	if r := o.reads[name]; r != nil && r.earlier && r.whole {
		return sqltable.SnapshotEnded("the tables of " + r.moment.Database())
	}
	return nil
}

// together groups loads by snapshot.
func (o *jobRunner) together() (moments []*sqltable.Moment, loads map[*sqltable.Moment][]string) {
	loads = map[*sqltable.Moment][]string{}
	for _, s := range o.record.Loads {
		r := o.reads[s.Name]
		if r == nil {
			continue
		}
		if loads[r.moment] == nil && r.moment != nil {
			moments = append(moments, r.moment)
		}
		loads[r.moment] = append(loads[r.moment], s.Name)
	}
	return moments, loads
}

// plannedMoments returns notes about which tables will share a snapshot.
func (o *jobRunner) plannedMoments() (notes []string) {
	moments, loads := o.together()
	for _, m := range moments {
		notes = append(notes, fmt.Sprintf("all %s of %s are read in one snapshot, by at most %s",
			counted(int64(len(loads[m])), "table"), m.Database(), counted(int64(m.Sessions()), "session")))
	}
	return append(notes, ownMoments(len(loads[nil]), len(moments))...)
}

// ownMoments returns a note that the other tables have snapshots of their own.
func ownMoments(tables, moments int) []string {
	if tables == 0 || tables+moments < 2 {
		return nil
	}
	return []string{fmt.Sprintf("queries, tables of SQLite files, and single tables of a database are read in separate "+
		"snapshots (%d), which may be of different times", tables)}
}

// noteMoments records the snapshots of the tables, from the summaries of their loads. It reports whether there are any.
func (o *jobRunner) noteMoments() bool {
	moments, loads := o.together()
	o.record.Moments = nil
	for _, m := range moments {
		of := job.Moment{Database: m.Database(), Consistent: true}
		for _, name := range loads[m] {
			sum, err := readSummary(filepath.Join(o.folder, name))
			if err != nil || sum.Consistent == nil {
				continue // the load has not read anything yet
			}
			of.Consistent = of.Consistent && *sum.Consistent
			for _, s := range sum.Snapshots {
				at := slices.IndexFunc(of.Snapshots,
					func(k job.Snapshot) bool { return k.Name == s.Name && k.Taken.Equal(s.Taken) })
				if at < 0 {
					at, of.Snapshots = len(of.Snapshots), append(of.Snapshots, job.Snapshot{Name: s.Name, Taken: s.Taken})
				}
				of.Snapshots[at].Loads = append(of.Snapshots[at].Loads, name)
			}
		}
		of.Consistent = of.Consistent && len(of.Snapshots) == 1
		o.record.Moments = append(o.record.Moments, of)
	}
	return len(moments) > 0
}

func (o *jobRunner) sayMoments() {
	moments, loads := o.together()
	for i, m := range o.record.Moments {
		var parts []string
		for _, s := range m.Snapshots {
			parts = append(parts, fmt.Sprintf("%s of snapshot %s, taken %s", counted(int64(len(s.Loads)), "table"), s.Name,
				s.Taken.Format(time.RFC3339)))
		}
		text := strings.Join(parts, "; ")
		switch {
		case len(parts) == 0:
		case m.Consistent:
			o.c.say.Line("one moment of %s: %s, of %d", m.Database, text, len(loads[moments[i]]))
		case len(parts) == 1:
			o.c.show.say.Warn("the tables of %s may be of different moments: %s; the earlier process of a resumed load may "+
				"have read another snapshot", m.Database, text)
		default:
			o.c.show.say.Warn("the tables of %s were read at %s moments: %s", m.Database, words.Grouped(int64(len(parts))), text)
		}
	}
	for _, text := range ownMoments(len(loads[nil]), len(moments)) {
		o.c.say.Note("%s", text)
	}
}
