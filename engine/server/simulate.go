package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// Simulation configures the simulation of a table. The values of its sample have the type of the partition key.
type Simulation struct {
	sim.Config
	SampleLines []string // partition-key values as text or, of a binary key, as bytes; they replace Sample unless empty
	Choices     Choices  // of all tables
}

// Choices selects answers that the service's documentation leaves open; see store.Choices.
type Choices = store.Choices

// Simulator simulates a server's tables. Initially it is off. It is safe for concurrent use.
type Simulator struct {
	server *Server
	on     atomic.Bool

	mu       sync.RWMutex
	tables   map[*store.Table]*simTable
	defaults *Simulation // nil if only single tables are simulated
}

type simTable struct {
	*sim.Table
	name string
	key  wire.KeyColumn // the partition key
}

// ErrNoTable is wrapped by the Simulator's methods if a table does not exist.
var ErrNoTable = errors.New("there is no such table")

// Sim returns the simulation of the server's tables.
func (s *Server) Sim() *Simulator { return s.sim }

// Simulate replaces the simulation of a table or, with "", of all present and future tables. A table that has several
// partitions keeps them.
func (m *Simulator) Simulate(table string, c Simulation) error {
	if err := c.Check(); err != nil {
		return err
	}
	if table != "" && c.Choices != (store.Choices{}) {
		return errors.New("choices and the index delay apply to all tables; do not name a table")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	names := []string{table}
	if table == "" {
		names = m.server.store.Tables()
	}
	configs := make([]sim.Config, len(names))
	for i, name := range names { // check all tables before changing any
		t := m.server.store.Table([]byte(name))
		if t == nil {
			return fmt.Errorf("simulate table %s: %w", name, ErrNoTable)
		}
		var err error
		if configs[i], err = c.config(t.Describe().Key[0]); err != nil {
			return fmt.Errorf("simulate table %s: %w", name, err)
		}
	}
	if table == "" {
		if err := m.server.store.Choose(c.Choices); err != nil {
			return err
		}
	}
	for i, name := range names {
		if err := m.configure(m.server.store.Table([]byte(name)), configs[i]); err != nil {
			return fmt.Errorf("simulate table %s: %w", name, err)
		}
	}
	if table == "" {
		m.defaults = &c
	}
	m.on.Store(true)
	return nil
}

// config returns the configuration of a table with this partition key.
func (c *Simulation) config(key wire.KeyColumn) (sim.Config, error) {
	if len(c.SampleLines) == 0 {
		return c.Config, nil
	}
	config := c.Config
	config.Sample = make([]sim.Key, len(c.SampleLines))
	for i, line := range c.SampleLines {
		k, err := textKey(key, line)
		if err != nil {
			return config, fmt.Errorf("sample value %d: %w", i+1, err)
		}
		config.Sample[i] = k
	}
	slices.Sort(config.Sample)
	return config, nil
}

func textKey(key wire.KeyColumn, text string) (sim.Key, error) {
	if key.Type != wire.KeyInteger {
		return sim.Key(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("%q is not a value of the INTEGER partition key %s", text, key.Name)
	}
	return sim.IntegerKey(n), nil
}

// configure applies a configuration to a table. The caller holds m.mu.
func (m *Simulator) configure(t *store.Table, c sim.Config) error {
	if t == nil {
		return ErrNoTable // it was dropped in the meantime
	}
	st := m.tables[t]
	if st != nil {
		st.Configure(c, m.server.o.Now())
	} else {
		st = m.add(t, c)
	}
	if c.Partitions > 1 || c.Splits.Every > 0 || c.Splits.Start > 0 || c.AutoSplit.Bytes > 0 || c.AutoSplit.Load > 0 {
		return m.learn(t, st, c)
	}
	return nil
}

func (m *Simulator) add(t *store.Table, c sim.Config) *simTable {
	d := t.Describe()
	st := &simTable{Table: newSimTable(c, d.Bounds, m.server.o.Now()), name: d.Name, key: d.Key[0]}
	m.tables[t] = st
	return st
}

// learnt is the minimum number of keys sampled from existing rows.
const learnt = 1024

// learn gives the simulation a sample of a table's existing keys, and cuts the table at them if c requests partitions.
func (m *Simulator) learn(t *store.Table, st *simTable, c sim.Config) error {
	cells, rows, err := m.server.store.EvenKeys(context.Background(), t, max(learnt, 20*c.Partitions))
	if err != nil || rows == 0 {
		return err
	}
	keys, now := cellKeys(cells), m.server.o.Now()
	st.Seen(keys, rows)
	if c.Partitions > 1 && len(c.Sample) == 0 && len(st.Bounds(now)) == 0 {
		return st.Cut(now, sim.Quantiles(keys, c.Partitions), 0)
	}
	return nil
}

func cellKey(c *wire.Cell) sim.Key {
	if c.Type == wire.Integer {
		return sim.IntegerKey(c.Int())
	}
	return sim.Key(c.Value)
}

func cellKeys(cells []wire.Cell) []sim.Key {
	keys := make([]sim.Key, len(cells))
	for i := range cells {
		keys[i] = cellKey(&cells[i])
	}
	return keys
}

// find returns the simulation of a request's table, or nil.
func (m *Simulator) find(name []byte) *simTable {
	t := m.server.store.Table(name)
	if t == nil {
		return nil
	}
	m.mu.RLock()
	st, defaults := m.tables[t], m.defaults
	m.mu.RUnlock()
	if st != nil || defaults == nil {
		return st
	}
	return m.begin(t)
}

// begin starts the simulation of a table with the defaults for all tables. Without defaults, it only counts.
func (m *Simulator) begin(t *store.Table) *simTable {
	m.mu.Lock()
	defer m.mu.Unlock()
	if st := m.tables[t]; st != nil {
		return st
	}
	var c sim.Config
	if m.defaults != nil {
		var err error
		if c, err = m.defaults.config(t.Describe().Key[0]); err != nil {
			c = m.defaults.Config // the sample does not fit this table, which is older: prepare refuses newer ones
		}
	}
	return m.add(t, c)
}

// prepare refuses a new table that does not fit the sample, and refuses or drops its partitions as configured.
func (m *Simulator) prepare(r *wire.CreateTable) *wire.Error {
	m.mu.RLock()
	defaults := m.defaults
	m.mu.RUnlock()
	if defaults == nil {
		return nil
	}
	if _, err := defaults.config(r.Key[0]); err != nil {
		return wire.Invalid("The simulation's sample of partition keys does not fit the table: %v.", err)
	}
	switch {
	case len(r.Bounds) == 0:
	case defaults.Answers.PreSplit == sim.PreSplitRefused:
		return wire.Invalid("The partitions of a table cannot be specified.")
	case defaults.Answers.PreSplit == sim.PreSplitIgnored:
		r.Bounds = nil
	}
	return nil
}

func (m *Simulator) forget(t *store.Table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tables, t)
}

// ensure returns the simulation of a table, which it creates if necessary.
func (m *Simulator) ensure(table string) (*store.Table, *simTable, error) {
	t := m.server.store.Table([]byte(table))
	if t == nil {
		return nil, nil, fmt.Errorf("table %s: %w", table, ErrNoTable)
	}
	st := m.find([]byte(table))
	if st == nil {
		st = m.begin(t)
		m.on.Store(true)
	}
	return t, st, nil
}

// Cut says where to cut a table. Exactly one of Keys, Even and Sample is set.
type Cut struct {
	Keys        []sim.Key     // bounds to add
	Even        int           // number of partitions with about equally many rows
	Sample      []sim.Key     // keys to divide evenly into Partitions partitions; the bounds themselves if that is 0
	Partitions  int           // for Sample
	Unavailable time.Duration // how long new partitions are unavailable
}

// Split cuts a table into partitions, and starts its simulation if necessary.
func (m *Simulator) Split(ctx context.Context, table string, c Cut) error {
	t, st, err := m.ensure(table)
	if err != nil {
		return err
	}
	now := m.server.o.Now()
	switch {
	case len(c.Sample) > 0 && c.Partitions > 0:
		sorted := slices.Sorted(slices.Values(c.Sample))
		return st.Cut(now, sim.Quantiles(sorted, c.Partitions), c.Unavailable)
	case len(c.Sample) > 0:
		return st.Cut(now, c.Sample, c.Unavailable)
	case c.Even > 0:
		cells, rows, err := m.server.store.EvenKeys(ctx, t, c.Even)
		if err != nil {
			return err
		}
		if rows == 0 && c.Even > 1 {
			return fmt.Errorf("table %s has no rows for an even cut; give keys or a sample", table)
		}
		keys := cellKeys(cells)
		above := slices.DeleteFunc(slices.Clone(keys), func(k sim.Key) bool { return k == keys[0] })
		return st.Cut(now, above, c.Unavailable)
	}
	return st.Split(now, c.Keys, c.Unavailable)
}

// Move makes a partition, numbered from 0 in key order, unavailable for a while.
func (m *Simulator) Move(table string, partition int, unavailable time.Duration) error {
	_, st, err := m.ensure(table)
	if err != nil {
		return err
	}
	return st.Move(m.server.o.Now(), partition, unavailable)
}

// Stats returns the counts of the simulated tables by name.
func (m *Simulator) Stats() map[string]sim.Stats {
	stats := map[string]sim.Stats{}
	for _, st := range m.all() {
		stats[st.name] = st.Stats(m.server.o.Now())
	}
	return stats
}

// ResetStats resets the counts.
func (m *Simulator) ResetStats() {
	for _, st := range m.all() {
		st.Reset()
	}
}

func (m *Simulator) all() []*simTable {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Values(m.tables))
}
