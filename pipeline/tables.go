package pipeline

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/writer"
)

// tables holds the tables of a load. The dispatcher requests them, and the partitionPoller creates and reads them.
type tables struct {
	plan  *plan.Plan
	admin *client.Admin
	sdk   *tablestore.TableStoreClient
	ids   *keep.TableIDs
	stop  func(error)             // called if rows wait for a table that cannot be opened
	try   func(name string) error // tests a table's permissions besides writing

	mu      sync.Mutex
	wanted  []string
	changed map[string]bool // tables whose partitions may have changed
	made    map[string]bool // tables created by this attempt

	open []*openTable // sorted by name; owned by the partitionPoller
	next int          // index of the next table to read
}

// openTable is a table that exists.
type openTable struct {
	name   string
	from   partitions
	bounds []table.Value
	exact  bool
}

// tablesAtATime is the number of tables whose partitions are read concurrently. There may be hundreds under one quota.
const tablesAtATime = 4

func newTables(ctx context.Context, cfg *Config, planned *plan.Plan, sdk *tablestore.TableStoreClient,
	ids *keep.TableIDs, stop func(error)) *tables {
	admin := cfg.admin(ctx, sdk)
	admin.Proven = true
	return &tables{
		plan: planned, sdk: sdk, ids: ids, stop: stop, try: func(name string) error {
			return refusedSoon(func() error {
				return writer.TryReadBack(sdk, name, planned.Schema.Key, cfg.Write.Mode, cfg.readsBack())
			})
		}, changed: map[string]bool{}, made: map[string]bool{},
		admin: admin,
	}
}

func (t *tables) want(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted = append(t.wanted, name)
}

func (t *tables) change(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[name] = true
}

func (t *tables) take() (wanted []string, changed map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted, changed = t.wanted, t.changed
	t.wanted, t.changed = nil, map[string]bool{}
	return wanted, changed
}

// Class is as in plan.Tables.
func (t *tables) Class(name string) int { return t.plan.Tables.Class(name) }

// WasMade reports whether this attempt created the table.
func (t *tables) WasMade(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made[name]
}

// read opens the requested tables and rebuilds the map. It stops the load if one for which rows wait cannot be opened.
func (t *tables) read(now time.Time) (m *partitioner.Map, exact bool, failed error) {
	wanted, changed := t.take()
	for _, name := range wanted {
		if err := t.openOne(name); err != nil {
			t.stop(err)
			failed = err
			break
		}
		changed[name] = true
	}
	for i := range t.open {
		if changed[t.open[i].name] {
			failed = cmp.Or(t.open[i].read(now), failed)
		}
	}
	if len(wanted) == 0 {
		for range min(tablesAtATime, len(t.open)) {
			o := t.open[t.next%len(t.open)]
			t.next++
			if !changed[o.name] {
				failed = cmp.Or(o.read(now), failed)
			}
		}
	}
	return t.current(), !slices.ContainsFunc(t.open, func(o *openTable) bool { return !o.exact }), failed
}

func (t *tables) openOne(name string) error {
	described, made, err := t.plan.OpenTable(t.admin, name)
	if err == nil {
		err = t.ids.See(name, described.Created)
	}
	if err == nil {
		err = t.try(name)
	}
	if err != nil {
		return err
	}
	p := scan.NewPartitions(t.admin, t.sdk, name)
	p.Created, p.See = made, func(created int64) error { return t.ids.See(name, created) }
	if made {
		t.ids.NoteMade(name)
		t.mu.Lock()
		t.made[name] = true
		t.mu.Unlock()
	}
	at, found := slices.BinarySearchFunc(t.open, name,
		func(o *openTable, name string) int { return cmp.Compare(o.name, name) })
	if !found {
		t.open = slices.Insert(t.open, at, &openTable{name: name, from: p})
	}
	return nil
}

func (o *openTable) read(now time.Time) error {
	bounds, exact, err := o.from.Read(now)
	if err == nil {
		o.bounds, o.exact = bounds, exact
	}
	return err
}

func (t *tables) current() *partitioner.Map {
	known := make([]partitioner.TableBounds, len(t.open))
	for i, o := range t.open {
		known[i] = partitioner.TableBounds{Table: o.name, Bounds: o.bounds}
	}
	return partitioner.NewTablesMap(known)
}
