package writer

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// verdict is the next step after a request that failed as a whole.
type verdict uint8

const (
	carryOn verdict = iota // the outcome is enough
	halve                  // a row of the request is bad: find it
	stop                   // no request will succeed
)

// wholeOutcome returns, for a request that failed as a whole, the outcome of each row and the next step.
func (w *Writer) wholeOutcome(err error) (table.Outcome, verdict) {
	code, message := errorText(err)
	o := table.Outcome{Code: code, Message: message}
	switch client.Classify(err) {
	case client.Throttled:
		o.Fate, o.Throttled = w.busy(code), true
		return o, carryOn
	case client.Unavailable:
		o.Fate, o.Unavailable = table.Again, client.NotServing(err)
		return o, carryOn
	case client.Ambiguous, client.Unrecognized:
		o.Fate, o.Throttled = table.Unknown, client.SlowDown(err)
		o.Unavailable = !o.Throttled && client.NotServing(err)
		o.TimedOut = client.TimedOut(err)
		return o, carryOn
	case client.Canceled:
		o.Fate = table.Unknown
		return o, stop
	case client.Content:
		o.Fate = table.Refused
		return o, halve
	}
	// No request will succeed, and stopping loses nothing.
	o.Fate = table.Again
	if client.Unsettled(err) {
		o.Fate = table.Unknown // the answer may not be from the service
	}
	return o, stop
}

// busy returns the fate of rows refused with a throttling code.
func (w *Writer) busy(code string) table.Fate {
	if (w.options.AutoIncrement != nil || w.options.Increments != nil) && client.MayHaveApplied(code) {
		return table.Unknown
	}
	return table.Again
}

func errorText(err error) (code, message string) {
	if ots := new(tablestore.OtsError); errors.As(err, &ots) && !client.Unsettled(err) {
		return ots.Code, client.OneLine(ots.Message)
	}
	return "", client.Describe(err)
}

// refusal is the last refused row's reason, converted once because all rows of a throttled request have the same one.
type refusal struct{ code, message, line string }

func (r *refusal) say(a *answered) {
	if string(a.code) == r.code && string(a.message) == r.message {
		return
	}
	r.code, r.message = string(a.code), string(a.message)
	r.line = client.OneLine(r.message)
}

func (w *Writer) outcome(a *answered, row table.Ref, repeated bool) (table.Outcome, error) {
	if a.ok {
		return table.Outcome{Fate: table.Written, WriteCU: a.writeCU}, nil
	}
	w.last.say(a)
	o := table.Outcome{Code: w.last.code, Message: w.last.line}
	switch client.ClassifyCode(o.Code, o.Message) {
	case client.Throttled:
		o.Fate, o.Throttled = w.busy(o.Code), true
	case client.Unavailable:
		o.Fate, o.Unavailable = table.Again, client.NotServingCode(o.Code)
	case client.Ambiguous:
		o.Fate, o.Unavailable = table.Unknown, client.NotServingCode(o.Code)
	case client.Unrecognized:
		// The cause may be temporary. If it is not, a person must examine the row.
		o.Fate = table.Unknown
		if repeated {
			o.Fate, o.MaybeApplied = table.Refused, true
			o.Message += " (Tablestore does not document this code: the row may have been written)"
		}
	case client.Fatal:
		o.Fate = table.Again
		err := &tablestore.OtsError{Code: o.Code, Message: o.Message}
		return o, fmt.Errorf("write to table %s: %w", w.table, &client.Error{Cause: err})
	default:
		o.Fate = table.Refused
		switch {
		case w.options.When != nil && o.Code == "OTSConditionCheckFail":
			return w.unmet(row, o, repeated)
		case w.options.Unchanged && o.Code == "OTSConditionCheckFail":
			return w.unmet(row, o, true) // an attempt of a process that was killed may have written it
		case !repeated:
		case o.Code == "OTSConditionCheckFail":
			return w.recheck(row, o)
		default:
			w.doubt(&o)
		}
	}
	return o, nil
}

// doubt notes in the outcome of a refused row that an earlier attempt without an answer may have been applied.
func (w *Writer) doubt(o *table.Outcome) {
	if w.mode == table.Increment {
		return // the mark tells whether a record was added
	}
	o.MaybeApplied = true
	o.Message += " (an earlier attempt had no answer: it may have been applied)"
}

// recheck returns the outcome of a row whose condition failed after an attempt that may have been applied.
func (w *Writer) recheck(row table.Ref, o table.Outcome) (table.Outcome, error) {
	if w.mode == table.Delete && w.existence == table.ExpectExist {
		// The row is missing. There is no way to know whether this run deleted it.
		o.MaybeApplied = true
		o.Message += " (the row is not there; an earlier attempt may have deleted it)"
		return o, nil
	}
	if w.existence != table.ExpectNotExist || w.mode == table.Delete {
		return o, nil
	}
	return w.readBack(row, o, w.holds, func(*table.Outcome) {})
}

// readBack reads back a row that may have been written. Its outcome is Written, o as changed by otherwise, or Unknown.
func (w *Writer) readBack(row table.Ref, o table.Outcome, written func(table.Ref) (bool, error),
	otherwise func(*table.Outcome)) (table.Outcome, error) {
	unread := table.Outcome{Fate: table.Unknown, Code: o.Code, Message: o.Message}
	if w.noReading {
		return unread, nil // the run is ending
	}
	same, err := written(row)
	switch {
	case err != nil && !client.Classify(err).Passes() && client.Classify(err) != client.Canceled:
		w.noReading = true
		return unread, fmt.Errorf("read back a row that may have been written: %w", client.Needed("GetRow", w.table, err))
	case err != nil:
		unread.Code, unread.Message = errorText(err)
		return unread, nil // it will be read back again
	case same:
		return table.Outcome{Fate: table.Written}, nil
	}
	otherwise(&o)
	return o, nil
}

// holds reports whether the table's row with this key has exactly the cells of row: columns, values and timestamps.
func (w *Writer) holds(row table.Ref) (same bool, err error) {
	defer unreadable(&err)
	decoded, err := plainbuffer.Decode(row.Body())
	if err != nil {
		return false, err
	}
	res, err := w.get(decoded, 2)
	if err != nil {
		return false, err
	}
	stored := make(map[string]*tablestore.AttributeColumn, len(res.Columns))
	for _, c := range res.Columns {
		if stored[c.ColumnName] != nil {
			return false, nil // a new row has one version of each cell, so someone else has written too
		}
		stored[c.ColumnName] = c
	}
	put := 0
	for _, c := range decoded.Cells {
		if c.Value.Type == table.Null {
			continue // a deleted column must be absent
		}
		put++
		is := stored[c.Name]
		if is == nil || !sameValue(is.Value, c.Value) || c.Stamped && is.Timestamp != c.Stamp {
			return false, nil
		}
	}
	return put == len(stored) && len(res.PrimaryKey.PrimaryKeys) > 0, nil
}

func sameValue(stored any, v table.Value) bool {
	if b, ok := stored.([]byte); ok {
		return v.Type == table.Binary && bytes.Equal(b, v.Bytes)
	}
	return v.Type != table.Binary && stored == client.SDKValue(v)
}
