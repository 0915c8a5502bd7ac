package commands

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/plan"
)

func (p *jobPlan) lines() (lines []string) {
	planned := 0
	for _, l := range p.Loads {
		lines = append(append(lines, l.lines()...), "")
		if l.State == planPlanned {
			planned++
		}
	}
	lines = append(lines, fmt.Sprintf("job: %d of %d loads planned, %d at a time", planned, len(p.Loads), p.Parallel))
	t := &p.Totals
	for _, one := range []struct {
		what string
		n    int64
		text func(int64) string
	}{{"rows", t.Rows, words.Grouped}, {"files", t.Bytes, words.Bytes},
		{"costs", t.WriteUnits, func(n int64) string { return "about " + words.Grouped(n) + " write units" }}} {
		text := "unknown, because it is unknown for a load"
		switch {
		case one.n >= 0:
			text = one.text(one.n)
		case one.what == "files" && !slices.ContainsFunc(p.Loads, func(l *loadPlan) bool { return l.Files != nil }):
			text = "not known: no load reads files"
		}
		lines = append(lines, fmt.Sprintf("  %-9s %s", one.what, text))
	}
	text := "unknown, because it is unknown for a load"
	if t.Seconds >= 0 {
		text = "about " + secondsText(t.Seconds) + ", without exports"
	}
	lines = append(lines, fmt.Sprintf("  %-9s %s", "time", text))
	if p.Folder != "" {
		lines = append(lines, "it would resume "+p.Folder)
	}
	for _, n := range p.Notes {
		lines = append(lines, "note: "+n)
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return append(lines, "nothing was written")
}

// secondsText formats a duration in whole seconds.
func secondsText(seconds float64) string {
	return time.Duration(min(math.Ceil(seconds), math.MaxInt64/float64(2*time.Second)) * float64(time.Second)).String()
}

// Limits for the columns, files and tables shown per load. --json has all of them except files.
const (
	plannedColumns = 40
	plannedFiles   = 3
	plannedTables  = 40
)

func (l *loadPlan) lines() (lines []string) {
	add := func(what, format string, a ...any) {
		lines = append(lines, fmt.Sprintf("  %-9s %s", what, fmt.Sprintf(format, a...)))
	}
	verb := map[string]string{job.Load: "load into", job.Copy: "copy to", job.Sync: "sync",
		job.Export: "export"}[l.Command]
	head := fmt.Sprintf("%s: %s table %s", l.Name, verb, l.Table)
	if l.Target != "" {
		head += " of " + l.Target
	}
	if len(l.After) > 0 {
		head += ", after " + strings.Join(l.After, ", ")
	}
	lines = append(lines, head)
	switch l.State {
	case planDone:
		add("done", "%s rows were read; it is not run again", words.Grouped(l.Rows))
		return lines
	case planRefused, planFailed:
		add(l.State, "%s (exit code %d)", l.Error, l.ExitCode)
	case planNothing:
		add("files", "none of %s is new", words.Grouped(int64(l.Files.Found)))
	case planPlanned:
		l.describe(add)
	}
	if l.Resumes != nil {
		add("resumes", "%s: %s of %s rows read are final", l.Resumes.Folder, words.Grouped(l.Resumes.Final),
			words.Grouped(l.Resumes.Read))
	}
	for _, w := range l.Warnings {
		add("warning", "%s", w)
	}
	for _, n := range l.Notes {
		if !slices.ContainsFunc(l.Decisions, func(d plan.Decision) bool { return d.String() == n }) {
			add("note", "%s", n)
		}
	}
	return lines
}

func (l *loadPlan) describe(add func(what, format string, a ...any)) {
	if f := l.Files; f != nil {
		count := words.Grouped(int64(f.Chosen))
		if f.Chosen < f.Found {
			count += " of " + words.Grouped(int64(f.Found)) + " found"
		}
		names := f.Names[:min(len(f.Names), plannedFiles):min(len(f.Names), plannedFiles)]
		if n := f.Chosen - len(names); n > 0 {
			names = append(names, fmt.Sprintf("and %s more", words.Grouped(int64(n))))
		}
		size := "of unknown size"
		if l.Bytes >= 0 {
			size = words.Bytes(l.Bytes)
		}
		add("files", "%s, %s: %s", count, size, strings.Join(names, ", "))
	}
	if l.Output != "" {
		add("output", "%s", l.Output)
	}
	rows := map[string]string{rowsExact: words.Grouped(l.Rows), rowsAbout: "about " + words.Grouped(l.Rows),
		rowsAtMost: "at most about " + words.Grouped(l.Rows), rowsUnknown: "not known"}[l.RowsAre]
	if l.RowBytes > 0 {
		rows += fmt.Sprintf(", of %.0f bytes on average", l.RowBytes)
	}
	add("rows", "%s", rows)
	if l.Rejected > 0 {
		add("rejects", "%s of %s records of a sample would be rejected; the first: %s", words.Grouped(l.Rejected),
			words.Grouped(l.Sampled), l.FirstReject)
	}
	l.describeTable(add)
	l.describeColumns(add)
	l.describeDecisions(add)
	if l.Command != job.Export {
		l.describeCost(add)
	}
	for _, h := range l.HotKeys {
		add("hot key", "%s %s: %.0f%% of the sampled rows, always in one partition", h.Column, h.Value, 100*h.Share)
	}
}

func (l *loadPlan) describeTable(add func(what, format string, a ...any)) {
	if n := l.New; n != nil {
		text := "does not exist; it would be created"
		if n.By != "" {
			text = "does not exist; load " + n.By + " creates it first"
		} else if n.unmade {
			text = "does not exist, and is not created without records"
		} else if n.Ranges > 1 {
			text += fmt.Sprintf(" with %d ranges", n.Ranges)
		}
		add("table", "%s, key %s", text, strings.Join(n.Key, ", "))
	}
	if t := l.Existing; t != nil {
		text := "exists, key " + strings.Join(t.Key, ", ")
		switch {
		case t.Guessed:
			text += fmt.Sprintf("; about %d partitions", t.Partitions)
		case t.Partitions == 1:
			text += "; one partition"
		case t.Partitions > 1:
			text += fmt.Sprintf("; %d partitions", t.Partitions)
		}
		if len(t.Indexes) > 0 {
			text += "; secondary indexes " + strings.Join(t.Indexes, ", ")
		}
		add("table", "%s", text)
	}
	if len(l.Tables) > 0 {
		var texts []string
		for _, t := range l.Tables[:min(len(l.Tables), plannedTables)] {
			texts = append(texts, fmt.Sprintf("%s (%.0f%% of the sampled rows)", t.Name, 100*t.Share))
		}
		if n := len(l.Tables) - plannedTables; n > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", n))
		}
		add("tables", "%s; missing ones are created with --create", strings.Join(texts, ", "))
	}
}

func (l *loadPlan) describeColumns(add func(what, format string, a ...any)) {
	var texts []string
	for _, col := range l.Columns {
		if len(texts) == plannedColumns {
			texts = append(texts, fmt.Sprintf("and %d more", len(l.Columns)-plannedColumns))
			break
		}
		text := col.Name + " " + col.Type + plan.UnitText(col.Type, col.Unit)
		switch {
		case col.Expression != "":
			text += " = " + col.Expression
		case col.Source != "":
			text += " from " + col.Source
		}
		texts = append(texts, text)
	}
	if l.More && l.Command != job.Export {
		texts = append(texts, "and further columns of each row")
	}
	add("columns", "%s", strings.Join(texts, ", "))
}

// describeDecisions puts undisputed decisions on one line, and each of the others on its own.
func (l *loadPlan) describeDecisions(add func(what, format string, a ...any)) {
	var plain, disputed []string
	for _, d := range l.Decisions {
		if d.Disputed() {
			disputed = append(disputed, d.String())
		} else {
			plain = append(plain, d.What+" "+d.As)
		}
	}
	for _, text := range append([]string{strings.Join(plain, ", ")}, disputed...) {
		if text != "" {
			add("decided", "%s", text)
		}
	}
}

func (l *loadPlan) describeCost(add func(what, format string, a ...any)) {
	if l.WriteUnits < 0 {
		add("costs", "unknown, because the number or the size of the rows is")
		return
	}
	text := words.Grouped(l.WriteUnits) + " write units"
	if l.RowsAre != rowsExact || l.Sampled < l.Rows {
		text = "about " + text
	}
	if l.Command == job.Sync || l.RowsAre == rowsAtMost {
		text = "at most " + text
	}
	if l.IndexReadUnits > 0 {
		text += fmt.Sprintf(" and %s read units, with the indexes", words.Grouped(l.IndexReadUnits))
	}
	add("costs", "%s", text)
	switch {
	case l.Seconds < 0:
		add("time", "unknown: no ceiling is given, and no run into this table has measured a rate")
	case strings.HasPrefix(l.Rate, "--"):
		add("time", "%s or more, by %s", secondsText(l.Seconds), l.Rate)
	default:
		add("time", "about %s, %s", secondsText(l.Seconds), l.Rate)
	}
}
