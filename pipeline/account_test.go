package pipeline

import (
	"errors"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/ledger"
)

// keptRejects are rejected records in memory.
type keptRejects struct {
	rows   []table.Reject
	failed error
}

func (k *keptRejects) Reject(_ int, r table.Reject) error {
	k.rows = append(k.rows, r)
	return k.failed
}

func (k *keptRejects) Flush() error { return k.failed }

// blockOf makes a block of rows with one key each, from the split's first record on.
func blockOf(s *table.Split, keys ...string) *table.Block {
	b := &table.Block{Split: s}
	for i, k := range keys {
		start := len(b.Data)
		b.Data = table.AppendKey(b.Data, table.Value{Type: table.String, Bytes: []byte(k)})
		body := len(b.Data)
		b.Data = append(b.Data, "row"...)
		b.Append(start, body, 10, table.Span{Record: uint32(i)}, []byte(k+"\n"))
	}
	return b
}

func newAccount(limit int64) (*ledger.Account, *keptRejects, *stopper) {
	kept, stop := new(keptRejects), newStopper(func() {})
	return &ledger.Account{
		Counts: new(ledger.Counted), Rejects: kept, Files: new(ledger.Files), Limit: ledger.MaxErrors{Rows: limit},
		Stop: stop.stop, Hot: partitioner.NewHotKeys(table.String),
	}, kept, stop
}

func TestTheAccountCountsEveryRowOnce(t *testing.T) {
	a, kept, stop := newAccount(-1)
	b := blockOf(&table.Split{Source: "in.csv", FirstRecord: 7}, "a", "b", "c")
	a.Counts.Read = 3
	for i, end := range []partitioner.End{partitioner.Written, partitioner.Superseded, partitioner.Rejected} {
		a.Final(table.Ref{Block: b, Index: int32(i)}, end, table.Outcome{Code: "OTSParameterInvalid", MaybeApplied: true})
	}
	want := ledger.ReportCounts{Read: 3, Written: 1, Superseded: 1, Rejected: 1, MaybeApplied: 1}
	if a.Counts.ReportCounts != want || a.Counts.Balance() != nil {
		t.Errorf("counts %+v, want %+v", a.Counts.ReportCounts, want)
	}
	if len(kept.rows) != 1 || kept.rows[0].Location.Record != 10 || string(kept.rows[0].Raw) != "c\n" || kept.rows[0].Reason.Code != "OTSParameterInvalid" {
		t.Errorf("kept %+v", kept.rows)
	}
	if stop.stopped() {
		t.Error(stop.cause)
	}
}

func TestTheAccountOfADryRunLeavesRowsUnfinished(t *testing.T) {
	a, _, _ := newAccount(-1)
	a.Dry(blockOf(new(table.Split), slices.Repeat([]string{"a"}, 2000)...))
	if hot := a.Hot.ReportWhole(); a.DryRows != 2000 || len(hot) != 1 || hot[0].Share != 1 || a.Counts.Written != 0 {
		t.Errorf("%d rows, hot %+v, %+v", a.DryRows, hot, a.Counts.ReportCounts)
	}
}

func TestTheLoadStopsWhenTheAccountCannotKeepARejectedRow(t *testing.T) {
	a, kept, stop := newAccount(-1)
	kept.failed = errors.New("the disk is full")
	a.Rejected(new(table.Split), &intake.Reject{Reason: table.Reason{Code: "WrongType"}})
	if !errors.Is(stop.cause, kept.failed) || a.Counts.Rejected != 1 {
		t.Errorf("%v, %d rejected", stop.cause, a.Counts.Rejected)
	}
	stop.stop(ledger.ErrLimit)
	if !errors.Is(stop.cause, kept.failed) || stop.ended.Err() == nil {
		t.Errorf("the first cause is %v, ended %v", stop.cause, stop.ended.Err())
	}
}

// taken makes a split of records from number on, all of which are rows.
func taken(first int64, keys ...string) *intake.Parsed {
	s := &table.Split{Number: int(first), FirstRecord: first, Position: table.Position{Record: first}, Input: 100}
	return &intake.Parsed{Split: s, Records: len(keys), Blocks: []intake.LaneBlock{{Block: blockOf(s, keys...)}}}
}

func newAdmission(limit int64, a *ledger.Account, stop *stopper) *admission {
	return &admission{limit: limit, account: a, stop: stop, hotKeyWatch: newCrowd(table.String, a.Tables != nil, "id", nil)}
}

func TestAdmissionTakesNoRecordOverTheLimit(t *testing.T) {
	account, _, stop := newAccount(-1)
	a := newAdmission(5, account, stop)
	for i, p := range []*intake.Parsed{taken(0, "a", "b", "c"), taken(3, "d", "e", "f")} {
		conformance.Equal(t, a.truncate(p), i == 1, "split %d: last", i)
		a.enter(p)
		if want := 3 - i; p.Records != want || len(p.Blocks[0].Block.Rows) != want {
			t.Errorf("split %d: %d records and %d rows are left, want %d", i, p.Records, len(p.Blocks[0].Block.Rows), want)
		}
	}
	if account.Counts.Read != 5 || account.Counts.BytesRead != 200 {
		t.Errorf("%d records of %d bytes read", account.Counts.Read, account.Counts.BytesRead)
	}
}

func TestAdmissionAsksForATableOnceAndForNoneTooMany(t *testing.T) {
	account, _, stop := newAccount(-1)
	account.Tables = ledger.NewTables(2)
	a := newAdmission(0, account, stop)
	var wanted []string
	a.want = func(name string) { wanted = append(wanted, name) }
	b := &table.Block{Split: new(table.Split)}
	for i, name := range []string{"t1", "t1", "t2", "t1", "t3"} {
		start := len(b.Data)
		b.Data = table.AppendKey(table.AppendTable(b.Data, name), table.Value{Type: table.String, Bytes: []byte("k")})
		b.Append(start, len(b.Data), 10, table.Span{Record: uint32(i)}, nil)
	}
	if !a.rows(b, true) {
		t.Error("the rows are not sent")
	}
	if len(wanted) != 2 || wanted[0] != "t1" || wanted[1] != "t2" || !stop.stopped() {
		t.Errorf("asked for %q, stopped by %v", wanted, stop.cause)
	}
}
