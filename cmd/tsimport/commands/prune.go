package commands

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/transfer/tablesync"
)

func pruneCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "remove the folders of runs that are over",
		Description: "Removes runs below ./" + rundir.Root +
			" that have ended, are older than --older-than and are not among the --keep newest of their table, or of their " +
			"job. Never removed: a run that is running or can be resumed, a job with such a load, the last run that wrote to " +
			"a table (later loads take types of columns from it), and folders with files that tsimport has not made. Rejected " +
			"records go with their run.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "keep", Usage: "keep the `N` newest runs of each table and of each job", Value: 1},
			&cli.StringFlag{Name: "older-than", Usage: "remove only runs whose files have not changed for `AGE`, as 30d or 36h"},
			&cli.BoolFlag{Name: "plan", Usage: "show what would be removed, and remove nothing"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: in.act(pruneRuns),
	}
}

// pruned is a run in the output of runs prune. Its fields are the JSON output.
type pruned struct {
	Folder  string    `json:"folder"`
	Removed bool      `json:"removed"`       // with --plan, whether it would be removed
	Why     string    `json:"why,omitempty"` // why it is kept
	State   string    `json:"state"`
	Table   string    `json:"table,omitempty"`
	Changed time.Time `json:"changed"` // time of the last change inside
	Bytes   int64     `json:"bytes"`

	info *runInfo
}

type pruning struct {
	keep  int
	older time.Duration
	now   time.Time
}

func pruneRuns(c *call) error {
	p := pruning{keep: c.Int("keep"), now: time.Now()}
	var err error
	_, _, keepOfEnvironment := fromEnvironment("keep") // the variable may be meant for other commands
	switch {
	case c.Args().Present():
		return usagef("runs prune takes no folders (%q); it looks below ./%s", c.Args().First(), rundir.Root)
	case c.String("older-than") == "" && (!c.IsSet("keep") || keepOfEnvironment):
		return usagef("say which runs to remove: give --older-than 30d, --keep N, or both; --plan only lists them")
	case p.keep < 1:
		return usagef("--keep %d: want 1 or more", p.keep)
	}
	if text := c.String("older-than"); text != "" {
		if p.older, err = parseAge(text); err != nil {
			return usagef("--older-than %v", err)
		}
	}
	all, err := p.look(rundir.Root)
	if err != nil {
		return err
	}
	p.choose(all)
	var failed error
	if !c.Bool("plan") {
		failed = p.remove(all)
	}
	err = printed(c, all, func(w io.Writer) error { return writeLines(w, pruneLines(all, c.Bool("plan"))) })
	if err == nil && failed != nil {
		err = &exitError{code: exitcode.Failed, err: failed}
	}
	return err
}

// parseAge parses a duration such as 30d or 36h.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want days such as 30d, at most 36500d, or a duration such as 36h", text)
	}
	return d, nil
}

// look finds the runs below a folder, newest first. Other folders, and other users' runs, are skipped.
func (p *pruning) look(root string) (all []*pruned, err error) {
	all = []*pruned{}
	folders, err := rundir.Folders(root)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	for _, folder := range folders {
		if _, err := job.ReadRecord(folder); err != nil && !rundir.IsRun(folder) {
			continue
		}
		info := readRun(folder)
		if info == nil {
			continue
		}
		one := &pruned{Folder: folder, State: info.State, Table: info.Table, info: info}
		contents, err := rundir.ContentsOf(folder, one.own)
		one.Bytes, one.Changed = contents.Bytes, info.Started
		if contents.Newest.After(one.Changed) {
			one.Changed = contents.Newest
		}
		switch {
		case err != nil:
			one.Why = client.OneLine(err.Error())
		case info.unfit != nil:
			one.Why = info.unfit.Error()
		case contents.Foreign != "":
			one.Why = fmt.Sprintf("%s was not written by tsimport, or was changed since", contents.Foreign)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b *pruned) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(b.Folder, a.Folder))
	})
	return all, nil
}

// own reports whether a run folder of this kind contains something of this name: a load of a job, the output of a sync.
func (r *pruned) own(name string, folder bool) bool {
	if r.info.record == nil {
		return r.info.Sync && tablesync.IsPart(name)
	}
	of, rest, below := strings.Cut(name, "/")
	of, _, _ = strings.Cut(of, "+") // NAME+N is a later run of load NAME
	i := slices.IndexFunc(r.info.record.Loads, func(s *job.State) bool { return s.Name == of })
	if !below {
		return folder && i >= 0 || name == job.FolderFile || name == job.ChangesFile
	}
	return i >= 0 && r.info.record.Loads[i].Command == job.Sync && tablesync.IsPart(rest)
}

// choose sets the reason for keeping each run. It keeps the newest runs by start and by last change, because the user
// may edit rejects of an old run, and an old run that was resumed may have written last.
func (p *pruning) choose(all []*pruned) {
	read := readByOthers(all)
	p.keepNewest(all, read)
	p.keepNewest(slices.SortedStableFunc(slices.Values(all),
		func(a, b *pruned) int { return b.info.Started.Compare(a.info.Started) }), read)
	for _, r := range all {
		r.Removed = r.Why == ""
	}
}

func (p *pruning) keepNewest(newestFirst []*pruned, read map[string]string) {
	kept, wrote := map[string]int{}, map[string]bool{}
	for _, r := range newestFirst {
		of := r.info.Target + "\x00" + r.Table
		if r.info.record != nil {
			of = "job " + r.info.record.File
		} else if r.info.DryRun {
			of = "dry run " + of
		}
		kept[of]++
		last := r.info.wrote && !wrote[of]
		wrote[of] = wrote[of] || r.info.wrote
		why := p.whyKept(r, kept[of], last)
		if by := readIn(read, r.Folder); why == "" && by != "" {
			why = by + ", which can be resumed, reads a file of it"
		}
		if r.Why == "" {
			r.Why = why
		}
	}
}

// readByOthers maps paths that resumable runs read, such as the rejects of another run, to the folder of one such run.
func readByOthers(all []*pruned) map[string]string {
	read := map[string]string{}
	add := func(dir, folder string, args []string) {
		for _, a := range args {
			if _, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") {
				a = value
			}
			if !filepath.IsAbs(a) {
				a = filepath.Join(dir, a)
			}
			read[resolved(a)] = folder
		}
	}
	for _, r := range all {
		if mayContinue(r.info) == "" {
			continue
		}
		if j := r.info.job; j != nil {
			add(j.Dir, r.Folder, j.Args)
			add(j.Dir, r.Folder, j.Chosen)
		}
		if r.info.record != nil {
			for _, s := range r.info.record.Loads {
				add(r.info.record.Dir, r.Folder, s.Arguments())
			}
		}
	}
	return read
}

// readIn returns a run that reads something in a folder, or "".
func readIn(read map[string]string, folder string) string {
	at := resolved(folder)
	for path, by := range read {
		if by != folder && (path == at || strings.HasPrefix(path, at+string(filepath.Separator))) {
			return by
		}
	}
	return ""
}

// resolved returns the absolute path without symbolic links, or a missing path unmodified.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	folder, base := filepath.Split(path)
	if real, err := filepath.EvalSymlinks(folder); err == nil { // the last part may be a pattern
		return filepath.Join(real, base)
	}
	return filepath.Clean(path)
}

// whyKept returns why a run, the n-th newest of its table or job, is kept, or "". last: no newer run wrote rows.
func (p *pruning) whyKept(r *pruned, n int, last bool) string {
	if why := mayContinue(r.info); why != "" {
		return why
	}
	age := p.now.Sub(r.Changed)
	switch {
	case n <= p.keep:
		return "one of the newest of its table or job"
	case last:
		return "the last run that wrote to its table, from which later loads take types of columns"
	case age < 0:
		return "its date is in the future by this machine's clock"
	case age < p.older:
		return "not old enough"
	}
	return ""
}

// mayContinue returns why a run may still be continued, or "".
func mayContinue(r *runInfo) string {
	if held(r.Folder) {
		return "a process works on it"
	}
	if r.Unfinished {
		return "it can be resumed"
	}
	if r.State == stateRunning {
		return "it may be running"
	}
	for _, l := range r.Loads {
		if why := mayContinue(l); why != "" {
			return fmt.Sprintf("load %s: %s", filepath.Base(l.Folder), why)
		}
	}
	return ""
}

// remove removes the chosen runs. A run that cannot be removed is reported and kept.
func (p *pruning) remove(all []*pruned) (failed error) {
	for _, r := range all {
		if !r.Removed {
			continue
		}
		removed, err := rundir.Remove(r.Folder, func() bool { return p.still(r) }, rundir.SummaryFile, job.FolderFile)
		switch r.Removed = removed; {
		case errors.As(err, new(*rundir.HeldError)):
			r.Why = "a process works on it"
		case err != nil:
			r.Why = client.OneLine(err.Error())
			failed = errors.Join(failed, err)
		case !removed:
			r.Why = "it was changed meanwhile"
		}
	}
	return failed
}

// still reports whether a run has not changed since it was chosen. The caller holds its lock.
func (p *pruning) still(r *pruned) bool {
	now := readRun(r.Folder)
	if now == nil || now.Unfinished || now.State != r.State || (now.record == nil) != (r.info.record == nil) {
		return false
	}
	if slices.ContainsFunc(now.Loads, func(l *runInfo) bool { return mayContinue(l) != "" }) {
		return false
	}
	contents, err := rundir.ContentsOf(r.Folder, r.own)
	return err == nil && contents.Foreign == "" && !contents.Newest.After(r.Changed)
}

// pruneLines returns lines with the runs removed (or to be removed) and the runs kept, with reasons.
func pruneLines(all []*pruned, planned bool) (lines []string) {
	verb, removed, bytes := "removed", 0, int64(0)
	if planned {
		verb = "would remove"
	}
	for _, r := range slices.Backward(all) { // oldest first
		text := ""
		if r.Table != "" {
			text = "table " + r.Table + ", "
		}
		text = fmt.Sprintf("%s (%s%s, %s, %s)", r.Folder, text, r.State, r.Changed.Local().Format("2006-01-02 15:04:05"),
			words.Bytes(r.Bytes))
		if r.Removed {
			removed, bytes = removed+1, bytes+r.Bytes
			lines = append(lines, printable(verb+" "+text))
			continue
		}
		lines = append(lines, printable(fmt.Sprintf("kept %s: %s", text, r.Why)))
	}
	return append(lines, fmt.Sprintf("%s %d of %d runs, %s", verb, removed, len(all), words.Bytes(bytes)))
}
