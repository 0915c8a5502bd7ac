package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/encoding/protowire"
)

// ErrTooFrequent means that a table's reserved throughput was changed too recently to be changed again.
var ErrTooFrequent = errors.New("its reserved throughput was changed too recently (" + tooFrequentChange + ")")

const tooFrequentChange = "OTSTooFrequentReservedThroughputAdjustment"

// SetOptions changes a table's time to live in seconds (-1: forever) and the number of versions of a cell. The error is
// ErrNoTable if there is no such table.
func (a *Admin) SetOptions(name string, timeToLive, maxVersions int) error {
	req := &tablestore.UpdateTableRequest{TableName: name, TableOption: &tablestore.TableOption{TimeToAlive: timeToLive, MaxVersion: maxVersions}}
	return a.wrap("change", name, a.try(func() error {
		_, err := a.Client.UpdateTable(req)
		return err
	}))
}

// Reserve changes a table's reserved throughput in capacity units. A change that comes too soon is ErrTooFrequent and is not
// tried again: the caller decides how long to wait, and may change other tables meanwhile. If the answer to a change was lost,
// its retry may get ErrTooFrequent too; the table's units then tell whether it was made.
func (a *Admin) Reserve(name string, read, write int) error {
	req := &tablestore.UpdateTableRequest{TableName: name, ReservedThroughput: &tablestore.ReservedThroughput{Readcap: read, Writecap: write}}
	soon := false
	err := a.try(func() error {
		_, err := a.Client.UpdateTable(req)
		if soon = codeOf(err) == tooFrequentChange; soon {
			return nil
		}
		return err
	})
	if soon {
		return fmt.Errorf("change table %s: %w", name, ErrTooFrequent)
	}
	return a.wrap("change", name, err)
}

// ThroughputInterval is how long the service wants a table's reserved throughput to stay before it is changed again.
const ThroughputInterval = 2 * time.Minute

// MaxReserved is how many capacity units of reading, or of writing, a table may reserve.
const MaxReserved = 100_000

// Change says what of a table is to change; what is nil stays.
type Change struct {
	ReservedRead, ReservedWrite *int // capacity units
	TimeToLive, MaxVersions     *int // seconds, -1 is forever
	MaxDeviation                *int64
	AllowUpdate                 *bool
}

// Reserves reports whether reserved throughput is to change.
func (c *Change) Reserves() bool { return c.ReservedRead != nil || c.ReservedWrite != nil }

// Options reports whether anything else is to change.
func (c *Change) Options() bool {
	return c.TimeToLive != nil || c.MaxVersions != nil || c.MaxDeviation != nil || c.AllowUpdate != nil
}

// Update changes a table in one request that names nothing else, so that a change that somebody else makes meanwhile stays.
// Throughput that was changed too recently is ErrTooFrequent, and nothing is changed then. If the answer to a change was lost, its
// retry may get that too: Update looks whether the change was made. Connection must be set.
func (a *Admin) Update(name string, c Change) error {
	if a.Connection == nil {
		return errors.New("change a table: there is no connection for it")
	}
	request := &otsprotocol.UpdateTableRequest{TableName: &name, ReservedThroughput: c.throughput(), TableOptions: c.options()}
	soon, lost := false, false
	err := a.try(func() error {
		err := a.post("UpdateTable", request)
		if soon = codeOf(err) == tooFrequentChange; soon {
			return nil
		}
		lost = lost || err != nil && Classify(err).Open()
		return err
	})
	if !soon {
		return a.wrap("change", name, err)
	}
	if lost {
		if now, err := a.Describe(name); err == nil && c.madeOf(now) {
			return nil
		}
	}
	return fmt.Errorf("change table %s: %w", name, ErrTooFrequent)
}

// madeOf reports whether a table is as the change makes it.
func (c *Change) madeOf(t *Table) bool {
	same := func(want *int, is int) bool { return want == nil || *want == is }
	return same(c.ReservedRead, t.ReservedRead) && same(c.ReservedWrite, t.ReservedWrite) && same(c.TimeToLive, t.TimeToLive) && same(c.MaxVersions, t.MaxVersions) &&
		(c.MaxDeviation == nil || *c.MaxDeviation == t.MaxDeviation) && (c.AllowUpdate == nil || *c.AllowUpdate == !t.NoUpdates)
}

// throughput is what of the throughput is to change; nil is nothing. The SDK's client names all options, or sends 0 for them.
func (c *Change) throughput() *otsprotocol.ReservedThroughput {
	if !c.Reserves() {
		return nil
	}
	return &otsprotocol.ReservedThroughput{CapacityUnit: &otsprotocol.CapacityUnit{Read: short(c.ReservedRead), Write: short(c.ReservedWrite)}}
}

// options is what of the options is to change; nil is nothing.
func (c *Change) options() *otsprotocol.TableOptions {
	if !c.Options() {
		return nil
	}
	return &otsprotocol.TableOptions{TimeToLive: short(c.TimeToLive), MaxVersions: short(c.MaxVersions), DeviationCellVersionInSec: c.MaxDeviation, AllowUpdate: c.AllowUpdate}
}

// short is a number as the protocol has it.
func short(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

// Changeable returns when a table's reserved throughput may be changed, once in an interval, by a clock that shows now. The service
// names whole seconds, so the last change may be almost a second later; a clock that is ahead of ours does not make us wait longer than
// the interval.
func (a *Admin) Changeable(name string, interval time.Duration, now time.Time) (time.Time, error) {
	last, err := a.Adjusted(name)
	if err != nil || last.IsZero() {
		return time.Time{}, err
	}
	due, latest := last.Add(interval+time.Second), now.Add(interval+time.Second)
	if due.After(latest) {
		return latest, nil
	}
	return due, nil
}

// MaxPostponed is how often in a row a change of throughput is refused as too early before that is an error: somebody else keeps
// changing it.
const MaxPostponed = 10

// Postponed returns when to try a change again that was refused as too early, so often in a row. The service may count from another
// moment, or want a longer interval, so each refusal waits twice as long as the last at least, up to two intervals.
func (a *Admin) Postponed(name string, interval time.Duration, now time.Time, refusals int) (time.Time, error) {
	due, err := a.Changeable(name, interval, now)
	if earliest := now.Add(interval / 16 << min(refusals-1, 5)); err == nil && due.Before(earliest) {
		due = earliest
	}
	return due, err
}

// Adjusted returns when a table's reserved throughput was last changed, in whole seconds of the service's clock. A
// service may count the creation. Zero is never, and a service that does not say.
func (a *Admin) Adjusted(name string) (time.Time, error) {
	d, err := a.details(name, "when its throughput was changed")
	of := d.GetReservedThroughputDetails()
	seconds := max(of.GetLastIncreaseTime(), of.GetLastDecreaseTime())
	if err != nil || seconds <= 0 {
		return time.Time{}, err
	}
	return time.Unix(seconds, 0), nil
}

// UpdatesWholeRows reports whether an update of a row of the table removes the columns that it does not name: the option
// update_full_row, which a table is made with.
func (a *Admin) UpdatesWholeRows(name string) (bool, error) {
	d, err := a.details(name, "its options")
	return d.GetTableOptions().GetUpdateFullRow(), err
}

// Fields of a DescribeTable answer that the SDK drops: in the table's meta data the id of the global table that it is a part of.
const (
	tableMeta     protowire.Number = 1
	globalTableID protowire.Number = 6
)

// Global reports whether the table is a part of a global table: that takes no timestamps from who writes.
func (a *Admin) Global(name string) (global bool, err error) {
	answer, err := a.description(name)
	if err != nil {
		return false, err
	}
	err = eachField(answer, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != tableMeta || kind != protowire.BytesType {
			return nil
		}
		meta, _ := protowire.ConsumeBytes(value)
		return eachField(meta, func(number protowire.Number, kind protowire.Type, value []byte) error {
			id, _ := protowire.ConsumeBytes(value)
			global = global || number == globalTableID && kind == protowire.BytesType && len(id) > 0
			return nil
		})
	})
	if err != nil {
		err = fmt.Errorf("describe table %s: read whether it is a global table: %w", name, err)
	}
	return global, err
}

// details is what DescribeTable says of a table, with what the SDK's client drops. What is read of it is named in errors.
func (a *Admin) details(name, what string) (*otsprotocol.DescribeTableResponse, error) {
	answer, err := a.description(name)
	if err != nil {
		return nil, err
	}
	d := new(otsprotocol.DescribeTableResponse)
	if err := unmarshal(answer, d); err != nil {
		return nil, fmt.Errorf("describe table %s: read %s: %w", name, what, err)
	}
	return d, nil
}

// eachField calls f with every field of a protobuf message; the value is what Consume functions take.
func eachField(message []byte, f func(protowire.Number, protowire.Type, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(number, kind, message[:n]); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// ReplacedError says that a table was dropped, or that another one has its name now. The rows read under that name do not
// belong together.
type ReplacedError struct {
	Table string
	Why   string // what the service says now
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("table %s was dropped while it was read: %s", e.Table, e.Why)
}

// Same asks whether the table of t's name is the one that t describes. The error is a *ReplacedError if it is not. Tables
// are distinguished by the times at which they were made, and by their primary keys: where the service does not say when a
// table was made, one with the same key is treated as the same.
func (a *Admin) Same(t *Table) error {
	now, err := a.Describe(t.Name)
	switch {
	case errors.Is(err, ErrNoTable):
		return &ReplacedError{t.Name, "it no longer exists"}
	case err != nil:
		return fmt.Errorf("check whether table %s is the one that was read: %w", t.Name, err)
	case t.Created != 0 && now.Created != 0 && t.Created != now.Created:
		return &ReplacedError{t.Name, fmt.Sprintf("reading began with the one created at %s, the present one was created at %s", madeAt(t.Created), madeAt(now.Created))}
	case !slices.Equal(t.Key, now.Key):
		return &ReplacedError{t.Name, "the present one has another primary key"}
	}
	return nil
}

func madeAt(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000Z")
}
