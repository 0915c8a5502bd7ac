package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
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
		if soon = isCode(err, tooFrequentChange); soon {
			return nil
		}
		return err
	})
	if soon {
		return fmt.Errorf("change table %s: %w", name, ErrTooFrequent)
	}
	return a.wrap("change", name, err)
}

// Fields of a DescribeTable answer that the SDK drops.
const (
	reservedDetails protowire.Number = 2
	lastIncrease    protowire.Number = 2 // of reservedDetails, seconds since 1970
	lastDecrease    protowire.Number = 3
)

// Adjusted returns when a table's reserved throughput was last changed, in whole seconds of the service's clock. A
// service may count the creation. Zero is never, and a service that does not say.
func (a *Admin) Adjusted(name string) (time.Time, error) {
	var answer []byte
	err := a.try(func() (err error) {
		answer, err = a.rawDescription(name)
		return err
	})
	if err != nil {
		return time.Time{}, a.wrap("describe", name, err)
	}
	var last time.Time
	err = eachField(answer, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != reservedDetails || kind != protowire.BytesType {
			return nil
		}
		details, _ := protowire.ConsumeBytes(value)
		return eachField(details, func(number protowire.Number, kind protowire.Type, value []byte) error {
			if (number == lastIncrease || number == lastDecrease) && kind == protowire.VarintType {
				seconds, _ := protowire.ConsumeVarint(value)
				if at := time.Unix(int64(seconds), 0); seconds > 0 && at.After(last) {
					last = at
				}
			}
			return nil
		})
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("describe table %s: read when its throughput was changed: %w", name, err)
	}
	return last, nil
}

const (
	tableOptions  protowire.Number = 3
	updateFullRow protowire.Number = 7 // of tableOptions
)

// UpdatesWholeRows reports whether an update of a row of the table removes the columns that it does not name: the option
// update_full_row, which a table is made with.
func (a *Admin) UpdatesWholeRows(name string) (whole bool, err error) {
	var answer []byte
	err = a.try(func() (err error) {
		answer, err = a.rawDescription(name)
		return err
	})
	if err != nil {
		return false, a.wrap("describe", name, err)
	}
	err = eachField(answer, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != tableOptions || kind != protowire.BytesType {
			return nil
		}
		options, _ := protowire.ConsumeBytes(value)
		return eachField(options, func(number protowire.Number, kind protowire.Type, value []byte) error {
			if number == updateFullRow && kind == protowire.VarintType {
				set, _ := protowire.ConsumeVarint(value)
				whole = set != 0
			}
			return nil
		})
	})
	if err != nil {
		return false, fmt.Errorf("describe table %s: read its options: %w", name, err)
	}
	return whole, nil
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
