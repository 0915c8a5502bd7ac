package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// verifier compares one or several tables with their inputs.
type verifier struct {
	cfg      *Config
	admin    *client.Admin
	tables   []*target       // sorted by name
	named    map[string]bool // tables that records name, if there are several
	anyOrder bool            // records of a key may be written in any order
	plan     *plan.Plan
	hasher   *plainbuffer.Hasher
	result   *Result
	splits   splits
	stamped  bool // a record gives its cells timestamps
	returned *returned
	from, to []byte // ordering keys of the compared range; nil means no bound
	// recordsOf holds the number of records of each source.
	recordsOf []int64
	bySource  *bySource // nil if results are not counted by range of the source
	sorted    *extsort.Sorted
	keeps     bool   // keep the rows and the keys of rejected records
	rows      *aside // nil if rows are not kept
	unsettled *unsettled
	told      bool // the sorter has been told the expected size
	// numberless is set if records have different numbers in this reading than in the load.
	numberless bool
	units      atomic.Int64
	pages      sync.Pool // pool of *scan.PackedPage
}

// Run compares the inputs with the table. An error means that the comparison is incomplete. Differences are not errors.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	start := time.Now()
	v, err := newVerifier(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer v.plan.Close()
	if err := v.readReturned(); err != nil {
		return nil, err
	}
	defer v.returned.close() // an error leaves only temporary files
	if err := v.readInput(ctx); err != nil {
		return nil, &InputError{err}
	}
	defer v.sorted.Close()
	if err := v.findTables(); err != nil {
		return nil, err
	}
	if cfg.Sample > 0 {
		err = v.compareSample(ctx)
	} else {
		err = v.compareAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := v.settle(ctx); err != nil {
		return nil, err
	}
	for _, t := range v.tables {
		if t.absent || cfg.Stored != nil {
			continue
		}
		if err := v.admin.Same(t.Table); err != nil {
			return nil, err
		}
	}
	if err := v.nameColumns(ctx); err != nil {
		return nil, err
	}
	r := v.result
	if v.plan.Merging != nil && r.Superseded > 0 {
		return nil, plan.SameKeys(v.plan.Request, r.Superseded, r.Read) // only one row per key was compared
	}
	r.Differ = r.Missing+r.Different+r.WithoutKey > 0 || r.Extra > 0 && cfg.ExtraFails
	r.OK = !r.Differ && r.NotCompared == 0
	v.noteUnread()
	v.noteSnapshots()
	v.noteRanges()
	r.SpilledRows, r.SpilledBytes, r.ReadCU = v.sorted.Spilled(), v.sorted.Usage().PeakDiskBytes, v.units.Load()
	if r.Seconds = time.Since(start).Seconds(); r.Seconds > 0 {
		r.RowsPerSecond = float64(r.Read+r.RowsInTable) / r.Seconds
	}
	return r, r.balance()
}

// noteSnapshots records which snapshots of a source were compared.
func (v *verifier) noteSnapshots() {
	of, ok := v.plan.Request.Read.Sources.(source.Snapshots)
	if !ok {
		return
	}
	all := of.Snapshots()
	switch v.result.Snapshots = all; len(all) {
	case 0:
	case 1:
		v.result.Notes = append(v.result.Notes, fmt.Sprintf("the source was compared as of %s; rows that have changed since "+
			"they were loaded are different, missing or extra", all[0].Taken.Format(time.RFC3339)))
	default:
		v.result.Notes = append(v.result.Notes, fmt.Sprintf("a session was lost, so the source was read in %d snapshots, "+
			"taken from %s to %s: rows that changed between them may be different, missing or extra",
			len(all), all[0].Taken.Format(time.RFC3339), all[len(all)-1].Taken.Format(time.RFC3339)))
	}
}

func newVerifier(ctx context.Context, cfg *Config) (*verifier, error) {
	cfg.Progress = cmp.Or(cfg.Progress, new(Progress))
	cfg.Workers = int(min(int64(cmp.Or(cfg.Workers, DefaultWorkers)), max(cfg.Memory/3/pageMemory, 1)))
	admin := &client.Admin{Client: cfg.Client, Context: ctx, RetryFor: cfg.RetryFor}
	request := *cfg.Request
	if request.Mode == table.Increment {
		return nil, plan.Usagef("--mode increment: a table of sums cannot be compared with records that were added to it")
	}
	if request.Mode == table.Changes {
		return nil, plan.Usagef("--mode changes: a stream of changes does not show the final table; compare with its source")
	}
	var tables []*target
	switch {
	case cfg.Stored != nil && cfg.Sample > 0:
		return nil, plan.Usagef("--sample: an archive is read as a whole")
	case cfg.Stored != nil:
		to := &request.Target
		to.Table, to.Key, to.Absent = cfg.Stored.Table.Name, slices.Clone(cfg.Stored.Table.Key), true
		for i := range to.Key {
			to.Key[i].Auto = false // the rows have the generated values
		}
		tables = append(tables, &target{Table: cfg.Stored.Table})
	case !plan.IsTemplate(request.Target.Table):
		described, err := admin.Describe(request.Target.Table)
		if err != nil {
			return nil, err
		}
		for _, k := range described.Key {
			if k.Auto && request.Condition != table.ExpectExist && cfg.Returned == "" {
				return nil, plan.Usagef("table %s has the auto-increment key column %s: the service assigns part of its keys, so "+
					"the inputs do not have them; give the file that the load has written with --returned-keys",
					described.Name, k.Name)
			}
		}
		tables = append(tables, &target{Table: described})
	}
	v := &verifier{cfg: cfg, admin: admin, tables: tables, named: map[string]bool{},
		anyOrder: request.Order == plan.OrderNone, hasher: plainbuffer.NewHasher(), keeps: cfg.Changes != nil}
	// Rows are sorted anyway, so the inputs are read from front to back, whatever the order of writing.
	request.Written, request.Keep, request.Order, request.Memory = true, plan.KeepNothing, plan.LastWins,
		max(cfg.Memory/2, 1)
	if cfg.Returned != "" && cfg.Changes == nil {
		request.Keep = plan.KeepRecord // records may have an old key
	}
	request.Reading = cfg.Memory              // as for a load, which otherwise might accept records rejected here
	request.Target.Create = cfg.Stored != nil // the request has the table's key
	request.KeysAlone = cfg.Sample > 0
	request.RejectedKeys = cfg.Changes != nil
	var err error
	if v.plan, err = plan.Make(ctx, &request, admin); err != nil {
		return nil, err
	}
	if v.unsettled, err = v.newUnsettled(ctx); err != nil {
		v.plan.Close()
		return nil, err
	}
	v.recordsOf = make([]int64, len(v.plan.Sources))
	v.bySource = v.newBySource()
	v.from, v.to = table.OrderingKey(cfg.From), table.OrderingKey(cfg.To)
	if v.plan.Live {
		v.numberless, cfg.Rejected = cfg.Rejected != nil, nil // each reading numbers the records differently
	}
	var facts []progress.Fact
	if cfg.Changes != nil {
		if facts, err = v.plan.Facts(); err != nil {
			v.plan.Close()
			return nil, &InputError{err}
		}
	}
	v.result = &Result{
		Facts: facts,
		Table: request.Target.Table, Mode: [...]string{"put", "update", "delete"}[request.Mode], Sample: cfg.Sample,
		Examples: []Example{}, Notes: v.plan.Warnings, Position: v.plan.Position,
	}
	if _, of := v.plan.Request.Read.Sources.(source.Snapshots); v.plan.Live && !of && cfg.Changes == nil {
		v.result.Notes = append(v.result.Notes, fmt.Sprintf("%s may change while it is read: rows that have changed since "+
			"they were loaded, or change meanwhile, are different, missing or extra. Cells are compared with their timestamps: "+
			"rows loaded from an export have new ones", v.plan.Sources[0].Name))
	}
	if cfg.Condition != table.Ignore && cfg.Changes == nil && cfg.Loaded.IsZero() {
		v.result.Notes = append(v.result.Notes, "rows that the condition skipped count as different or missing; name the "+
			"run with --run to leave them out")
	}
	return v, nil
}

func (v *verifier) sorter() (*extsort.Sorter, error) {
	return extsort.New(extsort.Options{
		Memory: max(v.cfg.Memory/4, 1), Readers: v.cfg.Workers,
		Spill: spill.Options{Dir: v.cfg.TempDir, MaxBytes: v.cfg.TempMax},
	})
}

// keyRange is a range of a table's ordering keys: from is inclusive, to is exclusive, and nil means no bound.
type keyRange struct {
	table    *target
	number   int
	from, to []byte // bounds without the table's name
}

// ranges divides the keys at partition bounds and, because these may be few, into equal parts of the inputs' keys.
func (v *verifier) ranges() []keyRange {
	if v.cfg.Stored != nil { // the rows are read from front to back
		return []keyRange{{v.tables[0], 0, v.from, v.to}}
	}
	even := v.sorted.Cuts(v.evenRanges())
	var all []keyRange
	for _, t := range v.tables {
		var cuts [][]byte
		for _, c := range even {
			if own, ok := bytes.CutPrefix(c, t.prefix); ok {
				cuts = append(cuts, own)
			}
		}
		if !t.absent {
			bounds, _ := v.admin.Splits(t.Name) // an error only makes the ranges less even
			for _, b := range bounds {
				cuts = append(cuts, table.AppendKey(nil, b))
			}
		}
		slices.SortFunc(cuts, bytes.Compare)
		cuts = slices.CompactFunc(cuts, bytes.Equal)
		cuts = slices.DeleteFunc(cuts, func(c []byte) bool { return v.outside(c) || bytes.Equal(c, v.from) })
		from := v.from
		for _, c := range append(cuts, v.to) {
			if c != nil && len(c) == 0 {
				continue
			}
			all = append(all, keyRange{t, len(all), from, c})
			from = c
		}
	}
	return all
}

// pageRows is slightly below the number of rows in a full page.
const pageRows = 4900

// evenRanges returns the number of ranges to divide the inputs' keys into: several per worker, with full pages.
func (v *verifier) evenRanges() int {
	n := int64(4 * v.cfg.Workers)
	if pages := v.sorted.Len() / n / pageRows; pages > 0 {
		n = v.sorted.Len()/(pages*pageRows) + 1
	}
	return int(n)
}

func (v *verifier) compareAll(ctx context.Context) error {
	ranges := v.ranges()
	tallies := make([]*tally, len(ranges))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(v.cfg.Workers)
	for i, r := range ranges {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			tallies[i], err = v.compareRange(groupCtx, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil { // ranges that were not begun have no tally
		return context.Cause(ctx)
	}
	v.result.Ranges = len(ranges)
	v.add(tallies)
	return nil
}

// compareRange compares the keys of the inputs in a range with the keys of the table.
func (v *verifier) compareRange(ctx context.Context, r keyRange) (_ *tally, err error) {
	o := v.options(r.table)
	if o.From, err = decodeKey(r.table.Key, r.from); err != nil {
		return nil, err
	}
	if o.To, err = decodeKey(r.table.Key, r.to); err != nil {
		return nil, err
	}
	t := v.newTally(r.table)
	if v.cfg.Changes != nil {
		if t.told, err = v.cfg.Changes.Range(r.number); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.told.Close()) }()
	}
	it := v.sorted.Range(r.table.bounds(r.from, r.to))
	expected := v.newWants(it)
	next := expected.next()
	missing := func(before []byte) error { // counts the keys before a key as missing; nil means all
		for next != nil && (before == nil || bytes.Compare(next.key, before) < 0) {
			t.expected(next, nil)
			next = expected.next()
		}
		return cmp.Or(it.Err(), t.err)
	}
	if r.table.absent {
		return t, missing(nil)
	}
	key := bytes.Clone(r.table.prefix)
	rows := int64(0) // rows not yet added to Progress
	tell := func() {
		v.cfg.Progress.Compared.Add(rows)
		rows = 0
	}
	defer tell()
	err = v.scan(ctx, r.table, o, func(own []byte, row tableRow) error {
		if rows++; rows == progressRows {
			tell()
		}
		key = append(key[:len(r.table.prefix)], own...)
		if err := missing(key); err != nil {
			return err
		}
		if next == nil || !bytes.Equal(next.key, key) {
			t.extra(key)
			return t.err
		}
		t.present(next, row)
		next = expected.next()
		return t.err
	})
	if err != nil {
		return t, err
	}
	return t, missing(nil)
}

// progressRows is the number of rows between updates of Progress.
const progressRows = 512

func (v *verifier) options(t *target) scan.Options {
	o := scan.Options{Manner: v.cfg.Manner, RetryFor: v.cfg.RetryFor, Units: &v.units}
	if v.stamped || v.plan.Wide { // an additional version is a difference
		o.Versions = t.MaxVersions
	}
	switch v.plan.Request.Mode {
	case table.Delete:
		o.Columns = []string{}
	case table.Update:
		if names := v.names(); len(names) < maxColumnsToGet && !v.plan.Wide {
			o.Columns = names
		}
	}
	return o
}

// maxColumnsToGet is the service's limit on the columns that a request names.
const maxColumnsToGet = 1024

func (v *verifier) names() []string {
	var names []string
	for _, c := range v.plan.Schema.Attributes() {
		names = append(names, c.Name)
	}
	return names
}

func (v *verifier) newJudge(t *target) *judge {
	j := &judge{
		Hasher: v.hasher, mode: v.plan.Request.Mode, sums: v.plan.Request.Mode == table.Put && !v.plan.Wide &&
			v.plan.Mark == "", wide: v.plan.Wide, names: map[uint64]string{}, versions: t.MaxVersions,
		oldest: -1, loaded: -1, hashes: map[string]uint64{}, got: map[uint64][]got{},
	}
	for _, name := range v.names() {
		j.names[j.Column(name)] = name
	}
	v.age(j, t)
	if !v.cfg.Loaded.IsZero() {
		j.loaded = v.cfg.Loaded.UnixMilli()
	}
	return j
}

// age updates the time before which cells may have expired, because time passes while rows are compared.
func (v *verifier) age(j *judge, t *target) {
	if t.TimeToLive > 0 {
		j.oldest = v.cfg.Clock.Now().UnixMilli() - 1000*int64(t.TimeToLive)
	}
	if v.plan.Request.Target.Aging.DropExpired { // the load may have left old cells out
		reach := 1000 * cmp.Or(t.MaxDeviation, client.DefaultDeviation)
		j.oldest = max(j.oldest, v.cfg.Clock.Now().UnixMilli()-reach)
	}
}

// balance returns an error unless every record and row was counted exactly once.
func (r *Result) balance() error {
	if sum := r.RowsExpected + r.Superseded + r.Rejected + r.NotSampled + r.Archived + r.OutOfRange +
		r.WithoutKey; sum != r.Read {
		return fmt.Errorf("the counts of the comparison do not balance: %d records, but %d accounted for; this is a bug "+
			"in tsimport", r.Read, sum)
	}
	if sum := r.Equal + r.Missing + r.Different + r.Expired; sum != r.RowsExpected {
		return fmt.Errorf("the counts of the comparison do not balance: %d rows expected, but %d compared; this is a bug "+
			"in tsimport", r.RowsExpected, sum)
	}
	return nil
}
