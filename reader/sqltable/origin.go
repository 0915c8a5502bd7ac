package sqltable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Config says which table to read, and how.
type Config struct {
	Server   Server
	Sessions int           // number of concurrent sessions; 0 means DefaultSessions
	RetryFor time.Duration // how long to retry after a session is lost; 0 means a minute
	// Whole means that all rows must be from one snapshot. A reading that loses its snapshot fails.
	Whole bool
	// Shards are tables to read as one: Server is the first, and Pattern the address of all. Nil means a single table.
	Shards  []Server
	Pattern string
	// Alone allows other tables of the Moment to be read from another snapshot than this table.
	Alone bool
	// MaxRow is the size of the largest row in bytes. A larger row ends the reading with an error. 0 means no limit.
	MaxRow int64
	// MaxRows is the largest number of rows to read per second; 0 means no limit.
	MaxRows float64
	// MaxLag is the replication lag above which reading pauses. 0 means no limit; otherwise the Server must be Lagging.
	MaxLag time.Duration
	// Moment is shared with other tables that are read together. Nil means that the table has its own snapshot.
	Moment *Moment
	// OnPause is called with the reason each time reading pauses, from any goroutine. It may be nil.
	OnPause func(why string)
}

const (
	DefaultSessions = 4
	MaxSessions     = 64
)

// outage is the state of a server that does not respond.
type outage struct {
	failing atomic.Int64 // number of parts that are retrying

	mu   sync.Mutex
	told time.Time
}

// Short failures are not reported; longer ones are reported now and then, for all parts together.
const (
	outageAfter = 2 * time.Second
	outageEvery = 30 * time.Second
)

// Waiting reports whether parts are retrying because the server does not respond.
func (o *Origin) Waiting() bool { return o.outage.failing.Load() > 0 }

// tell reports that a part has not been able to read since a time, and why.
func (o *Origin) tell(since time.Time, why error) {
	o.outage.mu.Lock()
	defer o.outage.mu.Unlock()
	now := time.Now()
	if o.cfg.OnPause == nil || now.Sub(since) < outageAfter || !o.outage.told.IsZero() &&
		now.Sub(o.outage.told) < outageEvery {
		return
	}
	o.outage.told = now
	o.cfg.OnPause(fmt.Sprintf("waiting: the database does not answer: %v; retrying for up to %v", why, o.cfg.RetryFor))
}

// fewer reports that only n sessions are reading, and why.
func (c *Config) fewer(n int, why error) {
	switch {
	case c.OnPause == nil:
	case errors.As(why, new(*refusedError)):
		c.OnPause(fmt.Sprintf("reading with %d of %d sessions: %v", n, c.Sessions, why))
	default:
		c.OnPause(fmt.Sprintf("reading with %d of %d sessions, because the server has no more (%v); sessions=%d asks for "+
			"no others", n, c.Sessions, why, n))
	}
}

// Origin reads a table as a series of ranges.
type Origin struct {
	cfg     Config
	divided bool // Divide was called in this process

	again []byte // division of an earlier reading; nil to divide the table

	mu    sync.Mutex
	of    *Table
	from  [][][]byte // lower bounds of all ranges but the first
	place source.Position
	look  Session // for descriptions and samples, outside of any snapshot
	read  *sessions
	lag   *lagWatch // nil if the lag is not limited
	pace  *pace     // nil if the rate is not limited
	done  reading
	opens int // number of open parts
	left  int // number of unfinished parts

	outage outage
}

// reading records the snapshots from which an Origin's rows were read.
type reading struct {
	noted noted

	seeing sync.Mutex
	seen   *held    // in a Moment: the snapshot in which the table was last described
	tables []*Table // in a Moment: the table, or its shards
}

func New(c Config) *Origin {
	c.Sessions, c.RetryFor = cmp.Or(c.Sessions, DefaultSessions), cmp.Or(c.RetryFor, time.Minute)
	if c.Shards != nil && c.Moment == nil {
		own := new(Moments)
		own.Add(c, false)
		c.Moment = own.all[0]
		c.Moment.private = true
	}
	o := &Origin{cfg: c}
	if server, ok := c.Server.(Limited); ok {
		server.LimitRow(c.MaxRow)
	}
	if c.MaxRows > 0 {
		o.pace = &pace{perSecond: c.MaxRows}
	}
	if c.Moment != nil {
		o.lag = c.Moment.lag
	} else if server, ok := c.Server.(Lagging); ok && c.MaxLag > 0 {
		o.lag = &lagWatch{server: server, max: c.MaxLag, limit: c.RetryFor, onPause: c.OnPause}
	}
	return o
}

// Again makes Divide return the division of an earlier reading. It must be called before Divide.
func (o *Origin) Again(division []byte) { o.again = division }

// RangeOf returns the range of the keys whose first column is the integer first, or false if that is uncertain.
func (o *Origin) RangeOf(first int64) (n int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil || o.cfg.Shards != nil || o.of.Columns[o.of.Key[0]].Kind != record.Integer {
		return 0, false
	}
	for i, key := range o.from {
		bound, err := strconv.ParseInt(string(key[0]), 10, 64)
		switch {
		case err != nil || bound == first && len(key) > 1:
			return 0, false // it depends on the rest of the key
		case bound > first:
			return n, true
		}
		n = i + 1
	}
	return n, true
}

// Describe returns the columns of the table, and the indexes of the primary key's columns.
func (o *Origin) Describe(ctx context.Context) (columns []Column, key []int, err error) {
	if err := o.describe(ctx); err != nil {
		return nil, nil, err
	}
	return o.of.Columns, o.of.Key, nil
}

func (o *Origin) describe(ctx context.Context) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.look != nil || o.cfg.Moment != nil && o.of != nil:
		return nil
	case o.cfg.Moment != nil:
		if o.lag != nil {
			err = o.lag.check(ctx)
		}
		if err == nil {
			err = o.looking(ctx, func(context.Context, Session) error { return nil }) // looking describes the table
		}
		if err != nil && o.cfg.Moment.private {
			o.cfg.Moment.end()
		}
		if err != nil {
			err = fmt.Errorf("read %s: %w", cmp.Or(o.cfg.Pattern, o.cfg.Server.Shown()), err)
		}
		return err
	}
	look, of, err := o.cfg.Server.Look(ctx)
	if err == nil && o.lag != nil {
		if err = o.lag.check(ctx); err != nil {
			look.Close()
		}
	}
	if err == nil {
		of.settle()
		if o.of != nil && o.of.Schema != of.Schema {
			look.Close()
			err = &changedError{was: o.of.Schema, is: of.Schema}
		}
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", o.cfg.Server.Shown(), err)
	}
	o.look = look
	o.of = of
	return nil
}

// division says how a table was cut into ranges. It is stored in the run folder.
type division struct {
	Table  string
	Bounds [][][]byte // lower bounds of all ranges but the first, in the server's notation
	// Position is before all snapshots of the ranges. A resumed attempt keeps the position of the first attempt.
	Position source.Position `json:",omitzero"`
	// Shards are the divisions of all shards but the first.
	Shards []division `json:",omitempty"`
}

// Divide cuts the table by a sample of its keys, and finds the position from which to follow its changes.
func (o *Origin) Divide(ctx context.Context) ([]byte, error) {
	if err := o.describe(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.divided = true
	t := o.of
	d := division{Table: t.Name}
	var err error
	if o.cfg.Moment != nil {
		d.Position = o.done.seen.place
	} else if server, ok := o.cfg.Server.(Positioned); ok {
		d.Position, err = server.Position(ctx, o.look, t, o.cfg.Sessions)
	}
	switch {
	case err != nil:
	case o.again != nil:
		place := d.Position
		err = json.Unmarshal(o.again, &d)
		d.Position = place
	default:
		d.Bounds, err = o.bounds(ctx, t)
		for _, t := range o.done.shards() {
			of := division{Table: t.Name}
			if err == nil {
				of.Bounds, err = o.bounds(ctx, t)
			}
			d.Shards = append(d.Shards, of)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("divide %s of %s: %w", t.Name, o.cfg.Server.Shown(), err)
	}
	return json.Marshal(d)
}

// bounds returns the lower bounds of the ranges of a table or shard, except the first.
func (o *Origin) bounds(ctx context.Context, t *Table) (bounds [][][]byte, err error) {
	if t.Ranges() > 1 {
		err = o.looking(ctx, func(ctx context.Context, look Session) (err error) {
			bounds, err = o.cfg.Server.Bounds(ctx, look, t)
			return err
		})
	}
	return bounds, err
}

// SnapshotEnded returns the error for resuming a reading whose rows must all be from one snapshot.
func SnapshotEnded(of string) error {
	return fmt.Errorf("read %s: the snapshot that the run began with ended with the process that held it, and "+
		"--require-snapshot does not allow another one; start over with --fresh", of)
}

// Open opens the ranges of a division, one source each.
func (o *Origin) Open(ctx context.Context, kept []byte) (parts []source.Source, err error) {
	if err := o.describe(ctx); err != nil {
		return nil, err
	}
	if o.cfg.Whole && !o.divided {
		return nil, SnapshotEnded(o.cfg.Server.Shown())
	}
	var d division
	if err := json.Unmarshal(kept, &d); err != nil {
		return nil, fmt.Errorf("open %s: its saved ranges cannot be decoded: %w", o.of.Name, err)
	}
	tables, servers := append([]*Table{o.of}, o.done.shards()...), o.cfg.servers()
	if len(d.Shards)+1 != len(tables) {
		return nil, fmt.Errorf("open %s: the run read %d tables as one, but the address names %d; give the same address, "+
			"or load again with --fresh", o.of.Name, len(d.Shards)+1, len(tables))
	}
	for n, of := range append([]division{d}, d.Shards...) {
		t := tables[n]
		if of.Table != t.Name || slices.ContainsFunc(of.Bounds, func(b [][]byte) bool { return len(b) != len(t.Key) }) {
			return nil, fmt.Errorf("open %s: the run's table %s or its key differs; "+source.StartOver, t.Name, of.Table)
		}
		var from [][]byte
		for i := range len(of.Bounds) + 1 {
			p := &part{of: o, t: t, ctx: ctx, number: len(parts), name: servers[n].Name(), from: from}
			if len(of.Bounds) > 0 {
				p.name = fmt.Sprintf("%s[%d]", p.name, i+1)
			}
			if i < len(of.Bounds) {
				p.to = of.Bounds[i]
				from = p.to
			}
			parts = append(parts, p)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.from, o.place = d.Bounds, d.Position
	o.opens, o.left = o.opens+len(parts), o.left+len(parts)
	return parts, nil
}

// sessions returns the sessions that the parts share.
func (o *Origin) sessions() *sessions {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cfg.Moment != nil {
		return o.cfg.Moment.sessions
	}
	if o.read == nil {
		if o.look != nil { // it may be the only session that the user is allowed
			o.look.Close()
			o.look = nil
		}
		o.read = newSessions(&o.cfg, o.open)
	}
	return o.read
}

// open opens a snapshot of this table only.
func (o *Origin) open(ctx context.Context, before Snapshot) (now Snapshot, _ source.Position, err error) {
	now, t, err := o.cfg.Server.Snapshot(ctx, o.cfg.Sessions, before)
	if err == nil && t.Schema != o.of.Schema {
		for _, one := range now.Sessions() {
			one.Close()
		}
		now.Close()
		err = &changedError{was: o.of.Schema, is: t.Schema}
	}
	return now, source.Position{}, err
}

// HangUp ends the sessions that examine the table, its shards and the lag. They are reopened when needed.
func (o *Origin) HangUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hangUp()
	if o.cfg.Moment != nil && o.cfg.Moment.private {
		o.cfg.Moment.end()
	}
}

// reads adds to the number of unfinished parts. When none is left, the snapshot ends, unless other tables share it.
func (o *Origin) reads(parts int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left += parts
	switch {
	case o.left > 0:
	case o.read != nil:
		o.read.close()
	case o.cfg.Moment != nil && o.cfg.Moment.private:
		o.cfg.Moment.end()
	}
}

func (o *Origin) closed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opens--; o.opens == 0 {
		o.hangUp()
	}
}

// hangUp ends the sessions outside of snapshots. Those of a Moment end with it.
func (o *Origin) hangUp() {
	if o.look != nil {
		o.look.Close()
		o.look = nil
	}
	if o.lag != nil && o.cfg.Moment == nil {
		o.lag.close()
	}
}

// Paused returns the total time for which replication lag has paused reading.
func (o *Origin) Paused() time.Duration {
	if o.lag == nil {
		return 0
	}
	return time.Duration(o.lag.paused.Load())
}

// Position returns the position from which to follow the table's changes.
func (o *Origin) Position() source.Position {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.place
}

// Snapshots lists the ranges that this process has read, by snapshot.
func (o *Origin) Snapshots() (all []source.Snapshot) {
	o.done.noted.Lock()
	defer o.done.noted.Unlock()
	for _, one := range o.done.noted.read {
		one.Ranges = append([]string(nil), one.Ranges...)
		all = append(all, one)
	}
	return all
}
