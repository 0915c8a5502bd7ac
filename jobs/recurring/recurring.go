package recurring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/knownfiles"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
)

// Load holds the open resources of a recurring load.
type Load struct {
	known  *knownfiles.Selector
	state  *jobdir.Mirror // nil without --state
	say    words.Say
	lock   *rundir.Lock
	leases []*jobdir.Lease
}

// Close releases the resources. It must not be called while rows are being sent.
func (o *Load) Close() error {
	if o == nil {
		return nil
	}
	err := o.lock.Release()
	for _, l := range o.leases {
		err = errors.Join(err, l.Release())
	}
	return err
}

// OpenStore opens the place that --state names, or this machine's runs folder.
func OpenStore(ctx context.Context, r *options.Request, find input.Options) (jobdir.Store, error) {
	if r.State == "" {
		return jobdir.Open(ctx, rundir.Root, jobdir.Options{})
	}
	if !jobdir.IsAddress(r.State) {
		if err := rundir.CheckShared(r.State); err != nil {
			return nil, plan.Usagef("--state %v", err)
		}
	}
	s, err := jobdir.Open(ctx, r.State, jobdir.Options{OSS: find.OSS, S3: find.S3})
	if err != nil {
		return nil, plan.Usagef("--state %v", err)
	}
	return s, nil
}

// lease takes a directory's lease. If necessary, it waits for the holder. former is the lease as seen earlier.
func (o *Load) lease(ctx context.Context, s jobdir.Store, former *jobdir.Seen) (*jobdir.Lease, error) {
	l, err := jobdir.Acquire(ctx, s, jobdir.LeaseOptions{Wait: 2 * jobdir.Term, Seen: former, OnWait: func(owner string) {
		o.say.Line("waiting: %s may be working on this load, which is taken over after %v of silence", owner, jobdir.Term)
	}})
	if err == nil {
		o.leases = append(o.leases, l)
	}
	return l, err
}

// openState opens the state of the load. known is the lease of the known files as seen before the load took its own.
func (o *Load) openState(ctx context.Context, r *options.Request, cfg *pipeline.Config, job,
	place string) (store jobdir.Store, known *jobdir.Seen, err error) {
	store, err = OpenStore(ctx, r, cfg.Read.Find)
	if err != nil || r.State == "" {
		return store, known, err
	}
	missing, err := checkState(ctx, r, cfg, store, place)
	if err != nil || cfg.DryRun {
		return store, known, err
	}
	if cfg.Target.Policy != nil {
		return nil, known, plan.Usagef("--state and --age-policy: archived rows are stored on this machine; leave one out")
	}
	var marked error
	if missing { // the first object in the folder
		marked = store.PutAbsent(ctx, madeMark, []byte(jobdir.Nonce()))
	}
	if err := jobdir.Probe(ctx, store); err != nil {
		return nil, known, fmt.Errorf("--state %w", err)
	}
	if marked != nil && !errors.Is(marked, jobdir.ErrExists) {
		return nil, known, fmt.Errorf("--state %w", marked)
	}
	if known, err = jobdir.Look(ctx, knownIn(r, store, place)); err != nil {
		return nil, known, err
	}
	load := jobdir.Below(store, "loads/"+job)
	l, err := o.lease(ctx, load, nil)
	if err != nil {
		return nil, known, err
	}
	o.state = jobdir.NewMirror(load, l)
	if l.Waited && !l.Former && !r.OnlyNew { // the holder ended by itself
		unfinished, err := o.state.Unfinished(ctx)
		if err == nil && !unfinished {
			err = errors.New("another process has finished this load; repeat the command to load its inputs again")
		}
		return store, known, err
	}
	return store, known, nil
}

// Open opens the resources that the options require and completes the configuration. It returns nil if there are none.
func Open(ctx context.Context, r *options.Request, cfg *pipeline.Config, say words.Say) (*Load, error) {
	if err := check(r, cfg); err != nil {
		return nil, err
	}
	only := r.OnlyNew
	cfg.Limits.SetAside = cfg.Read.Sources == nil && (r.BadInputs == "set-aside" || only && r.BadInputs != "stop") &&
		cfg.Write.Mode != table.Changes // later files build on earlier ones
	if !only && r.State == "" && r.FilesBy == "" && r.SettleFiles == 0 && r.DoneMarker == "" {
		return nil, nil
	}
	o := &Load{say: say}
	if err := o.open(ctx, r, cfg); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if o.known != nil {
		cfg.Resume.Known = o.known
	}
	cfg.Checkpoint.State = o.state
	return o, nil
}

// open takes the resources. After an error the caller releases them.
func (o *Load) open(ctx context.Context, r *options.Request, cfg *pipeline.Config) error {
	known := knownfiles.Options{
		ReloadChanged: r.ReloadChanged, SetAside: cfg.Limits.SetAside, Changes: cfg.Write.Mode == table.Changes,
		ByName: cfg.Read.Find.PathColumns || cfg.Write.Mode == table.Changes, // equal changes may be intended
		Order:  r.FilesBy, Settle: r.SettleFiles, DoneMarker: r.DoneMarker,
		Job:     progress.Identify(append([]string{cfg.Target.Name, cfg.Target.Table}, cfg.Inputs...)...),
		Command: cfg.Invocation.Command,
		Exceeds: func(rejected, read int64) bool { return cfg.Limits.MaxErrors.Exceeded(rejected, read, true) },
		Exists:  func(ctx context.Context, name string) (bool, error) { return inputExists(ctx, name, cfg.Read.Find) },
	}
	place := PlaceOf(cfg.Target.Place, cfg.Target.Name, cfg.Target.Table)
	store, seen, err := o.openState(ctx, r, cfg, known.Job, place)
	if err != nil {
		return err
	}
	if !r.OnlyNew {
		if known.Order != "" || known.Settle != 0 || known.DoneMarker != "" {
			o.known = knownfiles.NewSelector(nil, known)
		}
		return nil
	}
	known.Order = cmp.Or(known.Order, knownfiles.OrderName)
	if !cfg.DryRun {
		if err := o.lockKnown(ctx, r, store, place, seen); err != nil {
			return err
		}
	}
	ledger, err := knownfiles.Open(ctx, knownIn(r, store, place))
	if err != nil {
		return err
	}
	o.known = knownfiles.NewSelector(ledger, known)
	return nil
}

// check refuses flags that would leave it unclear what was loaded.
func check(r *options.Request, cfg *pipeline.Config) error {
	if r.SettleFiles < 0 {
		return plan.Usagef("--settle-files: want a duration of 0s or more")
	}
	if r.DoneMarker != "" && !strings.Contains(r.DoneMarker, "{}") {
		return plan.Usagef("--done-marker %s: it must contain {} for the name of the input, such as {}.done", r.DoneMarker)
	}
	if !r.OnlyNew {
		if r.ReloadChanged {
			return plan.Usagef("--reload-changed needs --only-new")
		}
		return nil
	}
	for _, bad := range []struct {
		is   bool
		flag string
		why  string
	}{
		{cfg.Read.Sources != nil, "an input that is not a file", "only files are known by content, not tables and archives"},
		{cfg.Limits.Records > 0, "--limit", "a file that was loaded in part is neither new nor known"},
		{r.Verify, "--verify", "the table has the rows of earlier files too; run tsimport verify with all files"},
		{plan.IsTemplate(cfg.Target.Table), "--table " + cfg.Target.Table, "files are known for one table, not several"},
		{r.ReloadChanged && cfg.Write.Mode == table.Changes, "--reload-changed with --mode changes",
			"the changes of a file that is loaded again would undo later ones"},
		{r.RetryRejects != "", "--retry-rejects", "a retry loads the rejects of its run, not new files; leave one out"},
	} {
		if bad.is {
			return plan.Usagef("--only-new and %s: %s", bad.flag, bad.why)
		}
	}
	return nil
}

// inputExists reports whether an input of exactly this name exists.
func inputExists(ctx context.Context, name string, find input.Options) (bool, error) {
	find.NotData, find.PathColumns, find.Extensions = nil, false, nil
	set, err := input.Expand(ctx, []string{name}, find)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && len(set.Items) == 1 && set.Items[0].Name == name, err
}

// PlaceOf identifies a table in the same way on every machine.
func PlaceOf(place, target, tableName string) string {
	return progress.Identify(cmp.Or(place, target), tableName)
}

// lockKnown locks other loads of new files, and tsimport files forget, out of the table's known files.
func (o *Load) lockKnown(ctx context.Context, r *options.Request, store jobdir.Store, place string,
	seen *jobdir.Seen) (err error) {
	if r.State != "" {
		_, err = o.lease(ctx, knownIn(r, store, place), seen)
	} else {
		o.lock, err = rundir.TakeClaim(filepath.Join(rundir.Root, ".locks"), "known-"+place)
	}
	if err != nil && (errors.As(err, new(*rundir.HeldError)) || errors.As(err, new(*jobdir.HeldError))) {
		err = fmt.Errorf("--only-new: only one load at a time may determine the new files of a table: %w", err)
	}
	return err
}

// knownIn returns the store of a table's known files.
func knownIn(r *options.Request, store jobdir.Store, place string) jobdir.Store {
	if r.State != "" {
		return jobdir.Below(store, "known/"+place)
	}
	return jobdir.Below(store, ".known/"+place) // next to the run folders
}

// Change opens a table's known files for changes. It locks out loads until Close.
func Change(ctx context.Context, r *options.Request, find input.Options, place string, say words.Say) (*Load,
	*knownfiles.Ledger, error) {
	o := &Load{say: say}
	store, err := storeThere(ctx, r, find)
	if err == nil {
		err = o.lockKnown(ctx, r, store, place, nil)
	}
	var ledger *knownfiles.Ledger
	if err == nil {
		ledger, err = knownfiles.Open(ctx, knownIn(r, store, place))
	}
	if err != nil {
		return nil, nil, errors.Join(err, o.Close())
	}
	return o, ledger, nil
}

// List opens a table's ledger of known files without creating the --state directory.
func List(ctx context.Context, r *options.Request, find input.Options, place string) (*knownfiles.Ledger, error) {
	store, err := storeThere(ctx, r, find)
	if err != nil {
		return nil, err
	}
	return knownfiles.Open(ctx, knownIn(r, store, place))
}

// storeThere is like OpenStore, but does not create the place.
func storeThere(ctx context.Context, r *options.Request, find input.Options) (jobdir.Store, error) {
	if _, err := os.Stat(r.State); r.State != "" && !jobdir.IsAddress(r.State) && errors.Is(err, fs.ErrNotExist) {
		return nil, plan.Usagef("--state %s is missing: it may be a share that is not mounted", r.State)
	}
	return OpenStore(ctx, r, find)
}
