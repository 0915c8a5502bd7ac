package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
)

// FolderFile is the name of the file with the Record in a job's folder.
const FolderFile = "job.json"

// States of a job and of its loads. Run skips a load that is Done, which has succeeded.
const (
	Waiting = "waiting"
	Running = "running"
	Done    = "done"
	Failed  = "failed"
	Stopped = "stopped" // stopped by a signal
	Held    = "not run" // a predecessor did not succeed
)

// Record is the stored state of a job.
type Record struct {
	Identity string    `json:"identity"` // identifies the file, load names and values of variables
	File     string    `json:"file"`
	Names    []string  `json:"names,omitempty"`
	Dir      string    `json:"dir"` // working directory of the command
	Command  string    `json:"command"`
	Parallel int       `json:"parallel"`
	Common   []Setting `json:"common,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	State    string    `json:"state"`
	ExitCode int       `json:"exit_code"`
	// Variables holds shortened SHA-256 hashes of the values with which the job began. The values are not stored.
	Variables map[string]string `json:"variables,omitempty"`
	// Changes identifies the record in the file of changes, while the job runs.
	Changes string `json:"changes,omitempty"`
	Later   bool   `json:"-"` // this run is not a retry of one that has just failed; see final
	// Moments are the shared snapshots from which loads read database tables.
	Moments []Moment `json:"moments,omitempty"`
	// ResumeFrom is the earliest place from which a load that reads changes from standard input needs them.
	ResumeFrom *source.Resume `json:"resume_from,omitempty"`
	Counts
	Loads []*State `json:"loads"`
}

// Moment lists the snapshots of a database's tables.
type Moment struct {
	Database   string     `json:"database"`
	Consistent bool       `json:"consistent"` // each load read only one of these snapshots, and all loads the same one
	Snapshots  []Snapshot `json:"snapshots"`
}

// Snapshot is a snapshot with the loads that read it.
type Snapshot struct {
	Name  string    `json:"name"` // the server's name for the snapshot
	Taken time.Time `json:"taken"`
	Loads []string  `json:"loads"`
}

// State is a load of a job with its progress and result.
type State struct {
	Single
	Digest   string    `json:"digest"` // digest of its arguments
	State    string    `json:"state"`
	ExitCode int       `json:"exit_code"`
	Error    string    `json:"error,omitempty"`
	Started  time.Time `json:"started,omitzero"` // start of the first attempt
	Resumed  time.Time `json:"resumed,omitzero"` // start of the last attempt, if not the first
	Ended    time.Time `json:"ended,omitzero"`
	Fresh    bool      `json:"fresh,omitzero"`   // start over, even if resumable
	Changed  bool      `json:"changed,omitzero"` // changed since it failed
	// Again is the number of finished runs before the current one. Counts include them: their inputs are not loaded again.
	Again int `json:"again,omitzero"`
	Told  int `json:"told,omitzero"` // number of these runs that an earlier night has reported
	Counts
}

// Folders returns the run folders of the load in its job's folder, the current one last. Load names never contain +.
func (s *State) Folders(folder string) []string {
	all := []string{filepath.Join(folder, s.Name)}
	for n := range s.Again {
		all = append(all, fmt.Sprintf("%s+%d", all[0], n+2))
	}
	return all
}

// Folder returns the current run folder.
func (s *State) Folder(folder string) string { return s.Folders(folder)[s.Again] }

// Took returns the duration of the last attempt.
func (s *State) Took() time.Duration {
	return s.Ended.Sub(cmp.Or(s.Resumed, s.Started))
}

// Counts are the row counts of one load, or of all. Read is the sum of the others, but a sync also reads equal rows.
type Counts struct {
	Read            int64 `json:"read"`
	Written         int64 `json:"written"`
	Rejected        int64 `json:"rejected"`
	Superseded      int64 `json:"superseded"`
	ConditionFailed int64 `json:"condition_failed"`
	Archived        int64 `json:"archived"`
	Unfinished      int64 `json:"unfinished"`
	BadInputs       int64 `json:"bad_inputs,omitempty"` // inputs that were set aside
}

func (c *Counts) Add(o Counts) {
	c.Read += o.Read
	c.Written += o.Written
	c.Rejected += o.Rejected
	c.Superseded += o.Superseded
	c.ConditionFailed += o.ConditionFailed
	c.Archived += o.Archived
	c.Unfinished += o.Unfinished
	c.BadInputs += o.BadInputs
}

// NewRecord starts the record of a job with the loads of an expanded and checked file.
func NewRecord(f *File, names []string, lookup Lookup) (*Record, error) {
	path, err := filepath.Abs(f.Path)
	if err != nil {
		return nil, fmt.Errorf("find job file: %w", err)
	}
	r := &Record{File: path, Names: names, Parallel: f.Parallel, Common: f.Common, State: Waiting,
		Variables: map[string]string{}}
	for _, l := range append([]Single{{Settings: f.Common}}, f.Loads...) {
		for _, name := range l.variables() {
			value, _ := lookup(name)
			r.Variables[name] = progress.Identify(value)
		}
	}
	for _, l := range f.Loads {
		s := &State{Single: l, State: Waiting}
		resolved, err := l.Resolve(f.Path, lookup)
		if err != nil {
			return nil, err
		}
		s.Digest = progress.Identify(slices.DeleteFunc(resolved.Arguments(), mayChange)...)
		r.Loads = append(r.Loads, s)
	}
	var variables []string
	for name, value := range r.Variables {
		variables = append(variables, name+"="+value)
	}
	slices.Sort(variables)
	r.Identity = progress.Identify(append(append([]string{path}, names...), variables...)...)
	return r, nil
}

// mayChange reports whether an argument may change between attempts, because neither rows nor checks depend on it.
func mayChange(arg string) bool {
	name, isOption := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	o := options.Find(name)
	return isOption && o != nil && o.MayChange && name != "endpoint" && name != "profile" && name != "verify"
}

// SameVariables refuses to resume a job whose variables have changed.
func (r *Record) SameVariables(lookup Lookup) error {
	for _, name := range slices.Sorted(maps.Keys(r.Variables)) {
		value, ok := lookup(name)
		if progress.Identify(value) != r.Variables[name] {
			is := "has changed"
			if !ok {
				is = "is not set"
			}
			return &Error{r.File, 0, fmt.Sprintf("the environment variable %s %s since the job was begun; restore its value, "+
				"or start over with tsimport run --fresh", name, is)}
		}
	}
	return nil
}

// Unfinished reports whether loads remain to be run, or the job was killed before it reported its end.
func (r *Record) Unfinished() bool {
	return r.State == Running || slices.ContainsFunc(r.Loads, func(s *State) bool { return s.State != Done })
}

// Continue takes over the results of the job's earlier record. A begun load must be unchanged, unless it failed or is
// done and comes again.
func (r *Record) Continue(before *Record) error {
	was := map[string]*State{}
	for _, s := range before.Loads {
		was[s.Name] = s
	}
	for _, s := range r.Loads {
		b := cmp.Or(was[s.Name], &State{State: Waiting})
		delete(was, s.Name)
		if b.State == Waiting || b.State == Held {
			s.Fresh, s.Again, s.Told = b.Fresh, b.Again, b.Told
			continue
		}
		if b.Digest != s.Digest && b.State != Failed && !(b.State == Done && s.ComesAgain()) {
			return &Error{r.File, s.line, fmt.Sprintf("load %s was changed after it was begun in the job of %s; undo the "+
				"change, finish the job without it with tsimport resume, or start over with --fresh",
				s.Name, before.Started.Local().Format("2006-01-02 15:04:05"))}
		}
		single, digest := s.Single, s.Digest
		*s = *b
		s.Changed = s.Changed || s.Digest != digest
		s.Single, s.Digest = single, digest
	}
	for _, s := range before.Loads {
		if was[s.Name] != nil && s.State != Waiting && s.State != Held && s.State != Failed && s.State != Done {
			return &Error{r.File, 0, fmt.Sprintf("load %s was begun but is no longer in the job; put it back, finish the job "+
				"with it with tsimport resume, or start over with --fresh", s.Name)}
		}
	}
	r.Started, r.Later = before.Started, before.final(time.Now())
	return nil
}

// final reports whether the job's end was its last one of a night, so that its rejects were reported. Schedulers retry
// only after a signal or exit code 1, and soon.
func (r *Record) final(now time.Time) bool {
	return r.State != Running && (r.ExitCode > exitcode.Failed && r.ExitCode < 128 || now.Sub(r.Ended) > time.Hour)
}

// ComesAgain reports whether a load looks for new inputs in each run.
func (s *State) ComesAgain() bool { return s.Command == Load && s.Value("only-new") == "true" }

// BeginAgain resets done loads that look for new inputs, or all done loads of a failed job with any. n is their number.
// New inputs wait until an interrupted load of their table is resumed: their rows come after its rows.
func (r *Record) BeginAgain(failed bool) (n int) {
	all := failed && slices.ContainsFunc(r.Loads, (*State).ComesAgain)
	interrupted := map[string]bool{}
	for _, s := range r.Loads {
		interrupted[s.Table()] = interrupted[s.Table()] || s.State == Running || s.State == Stopped
	}
	for _, s := range r.Loads {
		if s.State == Done && (all || s.ComesAgain()) && !interrupted[s.Table()] {
			s.again(false)
			n++
		}
	}
	return n
}

// Restart resets the named loads, which start over even if they could resume.
func (r *Record) Restart(names []string) {
	for _, s := range r.Loads {
		if slices.Contains(names, s.Name) {
			s.again(true)
		}
	}
}

func (s *State) again(fresh bool) {
	s.State, s.ExitCode, s.Error, s.Counts, s.Fresh, s.Changed = Waiting, 0, "", Counts{}, fresh, false
}

// Write stores the record in the job's folder.
func (r *Record) Write(folder string) error {
	if err := progress.Write(filepath.Join(folder, FolderFile), 0o600, Version, r); err != nil {
		return fmt.Errorf("store job: %w", err)
	}
	return nil
}

// ReadRecord reads the record in a job's folder. The error wraps fs.ErrNotExist if the folder has none.
func ReadRecord(folder string) (*Record, error) {
	r := new(Record)
	err := progress.Read(filepath.Join(folder, FolderFile), Version, r, progress.StartOver)
	if err == nil {
		err = r.readChanges(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return r, nil
}

// Find returns the newest unfinished job with this identity below a root, and its folder, or "" if there is none.
func Find(root, identity string) (folder string, r *Record, err error) {
	folders, err := rundir.Folders(root)
	for _, at := range folders {
		// The newest name sorts last.
		found, err := ReadRecord(at)
		if err == nil && found.Identity == identity && found.Unfinished() && found.State != Replaced {
			folder, r = at, found
		}
		if err := refuseUnread(err, at, identity); err != nil {
			return "", nil, err
		}
	}
	return folder, r, err
}

// refuseUnread returns err, from reading a record, if the record is of this unfinished job but of another version.
func refuseUnread(err error, folder, identity string) error {
	if !errors.As(err, new(*progress.UnfitError)) {
		return nil
	}
	var of struct{ Identity, State string }
	text, _ := os.ReadFile(filepath.Join(folder, FolderFile))
	if json.Unmarshal(text, &of) != nil || of.Identity != identity || of.State == Done || of.State == Replaced {
		return nil
	}
	return err
}

// Replaced is the state of a job that another one replaced with --fresh.
const Replaced = "started over"
