package pipeline

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

// archive is where rows go that are too old for a table. A nil archive has none.
type archive struct {
	tables *plan.Tables
	files  *rundir.Archive // nil in a dry run
	// failed is why not all that is counted as archived is in the files: no checkpoint may say so then.
	failed error
}

func newArchive(cfg *Config, planned *plan.Plan, folder *rundir.Folder, from *origin) (*archive, error) {
	if !planned.Tables.Archives() {
		return nil, nil
	}
	a := &archive{tables: planned.Tables}
	if cfg.DryRun {
		return a, nil
	}
	lengths := map[string]int64{}
	if from.snapshot != nil {
		for name, n := range from.snapshot.Files {
			if path, ok := strings.CutPrefix(name, archivePrefix); ok {
				lengths[path] = n
			}
		}
	}
	var err error
	a.files, err = rundir.OpenArchive(folder.Path, planned.Headers, lengths)
	return a, err
}

// archivePrefix tells the files of the archive from those of the run folder in a checkpoint.
const archivePrefix = "archive:"

// waits reports whether nothing may be read yet: a run of which no checkpoint was written is not continued, and what it had
// archived would stay behind.
func (a *archive) waits(k *keeper) bool { return a != nil && k != nil && k.last.IsZero() }

// keep enters into a checkpoint how far the files go, which are flushed so far.
func (a *archive) keep(lengths map[string]int64) error {
	if a == nil || a.files == nil {
		return nil
	}
	for path, n := range a.files.Lengths() {
		lengths[archivePrefix+path] = n
	}
	a.failed = cmp.Or(a.failed, a.files.Flush())
	return a.failed
}

// failure is why no checkpoint may be written.
func (a *archive) failure() error {
	if a == nil {
		return nil
	}
	return a.failed
}

func (a *archive) close(report *Report) error {
	if a == nil || a.files == nil {
		return nil
	}
	report.ArchiveFiles = a.files.Paths()
	return a.files.Close()
}

// keptFiles are the files that must be synced before a checkpoint says how far they go.
func (d *dispatcher) keptFiles() []*os.File {
	files := append(d.folder.Files(), d.extras.files()...)
	if d.archive != nil && d.archive.files != nil {
		files = append(files, d.archive.files.Open()...)
	}
	return files
}

// admit stops the load at a record whose table would be one too many, before it is counted.
func (d *dispatcher) admit(p *intake.Parsed) {
	for i := range p.Archived {
		if _, err := d.tables.add(p.Archived[i].Table); err != nil {
			d.halt(err)
			p.Truncate(int(p.Archived[i].Mark.Record))
			return
		}
	}
}

// archiveRecords keeps the records of a split that no table takes.
func (d *dispatcher) archiveRecords(p *intake.Parsed) {
	for i := range p.Archived {
		r := &p.Archived[i]
		d.report.Archived++
		d.tables.named(r.Table).Archived++
		if d.archive.files == nil {
			continue
		}
		if d.archive.failed == nil {
			d.archive.failed = d.archive.files.Add(d.archive.tables.Archive(r.Table), r.Table, p.Split.Header, r.Raw)
		}
	}
	if d.archive != nil && d.archive.failed != nil {
		d.halt(d.archive.failed)
	}
}

// findTables asks for the tables that rows of a block wait for.
func (d *dispatcher) findTables(b *table.Block) {
	partitioner.Unknown(b, func(name []byte) {
		if d.tables.wanted[string(name)] {
			return
		}
		isNew, err := d.tables.add(string(name))
		switch {
		case err != nil:
			d.halt(err)
		case isNew && !d.cfg.DryRun:
			d.survey.tables.want(string(name))
			d.survey.ask()
		}
	})
}

// countDry counts the rows of a dry run.
func (d *dispatcher) countDry(b *table.Block) {
	if d.tables == nil {
		return
	}
	for i := range b.Rows {
		d.tables.row(table.Ref{Block: b, Index: int32(i)}.Key()).Unfinished++
	}
}

// keep enters the counts into a checkpoint.
func (l *tableLedger) keep(counters map[string]int64, from *tables) {
	if l == nil {
		return
	}
	for name, t := range l.of {
		for what, n := range t.counters() {
			counters[tableCounter(name, what)] = *n
		}
	}
	for name := range l.wanted {
		if from.wasMade(name) || l.named(name).Created {
			counters[tableCounter(name, "created")] = 1
		}
	}
}

func tableCounter(name, what string) string { return "table " + name + " " + what }

// goOn takes over what the attempts before have counted.
func (l *tableLedger) goOn(s *checkpoint.Snapshot) {
	if l == nil || s == nil {
		return
	}
	for name, n := range s.Counters {
		parts := strings.Split(name, " ")
		if len(parts) != 3 || parts[0] != "table" {
			continue
		}
		t := l.named(parts[1])
		if to := t.counters()[parts[2]]; to != nil {
			*to = n
		} else {
			t.Created = n > 0
		}
	}
}

// completeTables adds the tables to the report.
func (d *dispatcher) completeTables() {
	if d.tables == nil {
		return
	}
	for name := range d.tables.wanted {
		d.tables.named(name)
	}
	for _, t := range d.tables.of {
		t.Created = t.Created || d.survey.tables.wasMade(t.Name)
		t.Class = d.survey.tables.plan.Tables.Class(t.Name)
		d.report.Created = d.report.Created || t.Created
		d.report.Tables = append(d.report.Tables, *t)
	}
	slices.SortFunc(d.report.Tables, func(a, b ReportTable) int { return cmp.Compare(a.Name, b.Name) })
}
