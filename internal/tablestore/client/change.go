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

// SetOptions changes a table's time to live, in seconds or -1, and its number of versions. It may return ErrNoTable.
func (a *Admin) SetOptions(name string, timeToLive, maxVersions int) error {
	req := &tablestore.UpdateTableRequest{TableName: name, TableOption: &tablestore.TableOption{TimeToAlive: timeToLive,
		MaxVersion: maxVersions}}
	return a.wrap("change", name, a.try(func() error {
		_, err := a.Client.UpdateTable(req)
		return err
	}))
}

// Reserve changes a table's reserved throughput in capacity units. If the last change was too recent, it returns
// ErrTooFrequent. It may also do so after a lost response; then the table's units show whether the change was made.
func (a *Admin) Reserve(name string, read, write int) error {
	req := &tablestore.UpdateTableRequest{TableName: name,
		ReservedThroughput: &tablestore.ReservedThroughput{Readcap: read, Writecap: write}}
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

// ThroughputInterval is the shortest time that the service allows between two changes of a table's reserved throughput.
const ThroughputInterval = 2 * time.Minute

// MaxReserved is the largest number of capacity units that a table may reserve for reading, or for writing.
const MaxReserved = 100_000

// Change is a change of a table. Nil fields are left unchanged.
type Change struct {
	ReservedRead, ReservedWrite *int // capacity units
	TimeToLive, MaxVersions     *int // TimeToLive is in seconds; -1 means that cells never expire
	MaxDeviation                *int64
	AllowUpdate                 *bool
}

// Reserves reports whether the reserved throughput changes.
func (c *Change) Reserves() bool { return c.ReservedRead != nil || c.ReservedWrite != nil }

// Options reports whether anything other than the reserved throughput changes.
func (c *Change) Options() bool {
	return c.TimeToLive != nil || c.MaxVersions != nil || c.MaxDeviation != nil || c.AllowUpdate != nil
}

// Update changes a table in one request that does not affect other settings, even if they change concurrently. If the
// throughput was changed too recently, it changes nothing and returns ErrTooFrequent. A retry after a lost response may
// also be refused for this reason; then Update checks whether the change was made. Connection must be set.
func (a *Admin) Update(name string, c Change) error {
	if a.Connection == nil {
		return errors.New("change a table: no connection was given")
	}
	request := &otsprotocol.UpdateTableRequest{TableName: &name, ReservedThroughput: c.throughput(),
		TableOptions: c.options()}
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

// madeOf reports whether a table already has the new settings.
func (c *Change) madeOf(t *Table) bool {
	same := func(want *int, is int) bool { return want == nil || *want == is }
	return same(c.ReservedRead, t.ReservedRead) && same(c.ReservedWrite, t.ReservedWrite) &&
		same(c.TimeToLive, t.TimeToLive) && same(c.MaxVersions, t.MaxVersions) &&
		(c.MaxDeviation == nil || *c.MaxDeviation == t.MaxDeviation) &&
		(c.AllowUpdate == nil || *c.AllowUpdate == !t.NoUpdates)
}

// throughput returns the throughput to change, or nil. The SDK's client cannot change only one of the two.
func (c *Change) throughput() *otsprotocol.ReservedThroughput {
	if !c.Reserves() {
		return nil
	}
	return &otsprotocol.ReservedThroughput{CapacityUnit: &otsprotocol.CapacityUnit{Read: short(c.ReservedRead),
		Write: short(c.ReservedWrite)}}
}

func (c *Change) options() *otsprotocol.TableOptions {
	if !c.Options() {
		return nil
	}
	return &otsprotocol.TableOptions{TimeToLive: short(c.TimeToLive), MaxVersions: short(c.MaxVersions),
		DeviationCellVersionInSec: c.MaxDeviation, AllowUpdate: c.AllowUpdate}
}

// short converts a number to the protocol's type; nil remains nil.
func short(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

// Changeable returns when a table's reserved throughput may be changed again: once per interval, plus a second because
// the service reports the last change in whole seconds. A service clock that is ahead of now does not extend the wait.
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

// MaxPostponed limits consecutive refusals of a throughput change as too early; after that, others must be changing it.
const MaxPostponed = 10

// Postponed returns when to retry a change that has been refused as too early. Waits double, up to two intervals.
func (a *Admin) Postponed(name string, interval time.Duration, now time.Time, refusals int) (time.Time, error) {
	due, err := a.Changeable(name, interval, now)
	if earliest := now.Add(interval / 16 << min(refusals-1, 5)); err == nil && due.Before(earliest) {
		due = earliest
	}
	return due, err
}

// Adjusted returns when a table's throughput was last changed, in whole seconds of the service's clock, or a zero Time.
func (a *Admin) Adjusted(name string) (time.Time, error) {
	d, err := a.details(name, "when its throughput was changed")
	of := d.GetReservedThroughputDetails()
	seconds := max(of.GetLastIncreaseTime(), of.GetLastDecreaseTime())
	if err != nil || seconds <= 0 {
		return time.Time{}, err
	}
	return time.Unix(seconds, 0), nil
}

// UpdatesWholeRows reports whether updates of the table remove columns that they do not name (update_full_row).
func (a *Admin) UpdatesWholeRows(name string) (bool, error) {
	d, err := a.details(name, "its options")
	return d.GetTableOptions().GetUpdateFullRow(), err
}

// Fields of DescribeTable's response that the SDK drops: the ID of a table's global table, in the table's metadata.
const (
	tableMeta     protowire.Number = 1
	globalTableID protowire.Number = 6
)

// Global reports whether the table is part of a global table, which refuses timestamps from writers.
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
		err = fmt.Errorf("describe table %s: check whether it is global: %w", name, err)
	}
	return global, err
}

// details returns DescribeTable's response for a table, with the fields that the SDK drops. Errors name what is wanted.
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

// eachField calls f with every field of a protobuf message. The value is still encoded, for protowire's functions.
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

// ReplacedError means that a table was dropped while it was being read, and perhaps replaced with one of the same name.
type ReplacedError struct {
	Table string
	Why   string // how the table differs now
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("table %s was dropped while it was read: %s", e.Table, e.Why)
}

// Same checks that the table t.Name is still the one that t describes. It compares the primary key and, if the service
// reports it, the creation time. If they differ, the error is a *ReplacedError.
func (a *Admin) Same(t *Table) error {
	now, err := a.Describe(t.Name)
	switch {
	case errors.Is(err, ErrNoTable):
		return &ReplacedError{t.Name, "it no longer exists"}
	case err != nil:
		return fmt.Errorf("check whether table %s is the one that was read: %w", t.Name, err)
	case t.Created != 0 && now.Created != 0 && t.Created != now.Created:
		return &ReplacedError{t.Name, fmt.Sprintf("reading began with the one created at %s, the present one was created "+
			"at %s", madeAt(t.Created), madeAt(now.Created))}
	case !slices.Equal(t.Key, now.Key):
		return &ReplacedError{t.Name, "the present one has another primary key"}
	}
	return nil
}

func madeAt(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000Z")
}
