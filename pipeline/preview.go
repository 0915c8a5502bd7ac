package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// Preview is the expected result of a load.
type Preview struct {
	plan.Forecast
	Target    PreviewTable
	Sample    PreviewSample
	Columns   []ledger.ReportColumn
	Empty     bool          // no input has a record, so that no table is made
	Wide      bool          // records describe themselves: rows may have other columns than Columns
	Merging   *plan.Merging // as in plan.Plan
	Distinct  bool          // as in plan.Plan
	Through   bool          // an input must be read through to find its records
	Decisions []plan.Decision
	Notes     []string
	Warnings  []string
}

type PreviewTable struct {
	Key     []table.KeyColumn
	Create  bool          // the load would create the table
	Ranges  int           // initial number of partitions of a new table; 0 for an existing one
	Table   *client.Table // nil if it does not exist or there are several
	Several bool          // rows go to several tables

	Partitions int  // number of partitions of an existing table; 0 means unknown
	Guessed    bool // Partitions is a guess from sizes
}

// PreviewSample describes the rows of a sample.
type PreviewSample struct {
	Looked      int64 // records in the sample
	Rejected    int64 // records that would be rejected
	FirstReject string
	RowBytes    float64 // average size of a row, as the service counts it
	RowUnits    float64 // average write units of a row, without indexes
	HotKeys     []ledger.ReportHotKey
	Largest     ledger.ReportHotKey // the value with the most bytes, and its share of them; none if Share is 0
	Grows       bool                // values of the partition key rise from row to row, as assigned numbers or times do
	Tables      []PreviewShare      // tables that rows go to, if there are several
}

// PreviewShare is a table and the share of the sample's rows that go to it.
type PreviewShare struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // 0 to 1
}

// Look returns what a load would do. It does not write, create or lock a table, run folder or state. It opens at most
// most files and returns the errors that a load returns before its first row. It may cost a few read units.
func Look(ctx context.Context, cfg Config, most int) (*Preview, error) {
	cfg.DryRun = true // a dry run does not look for a resume point or take a lock
	cfg.setDefaults()
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	a := &attempt{cfg: &cfg, hooks: new(hooks), started: time.Now(), mostInputs: most}
	if err := a.planOnly(ctx); err != nil {
		return nil, err
	}
	defer a.planned.Close()
	for _, b := range a.bad {
		a.planned.Notes = append(a.planned.Notes, fmt.Sprintf("%s would be set aside: %s", b.Name, b.Reason))
	}
	if err := a.checkPlan(); err != nil {
		return nil, err
	}
	p := a.planned
	v := &Preview{
		Target:  PreviewTable{Key: p.Schema.Key, Create: p.Create, Table: p.Table(), Several: p.Tables != nil},
		Columns: newReport(&cfg, p, a.started).Schema, Empty: p.Empty, Wide: p.Wide, Merging: p.Merging, Distinct: p.Distinct,
		Through: p.ReadThrough(), Decisions: p.Decisions, Notes: p.Notes, Warnings: p.Warnings,
	}
	if v.Target.Create {
		v.Target.Ranges = len(p.Bounds) + 1
	}
	var err error
	if v.Forecast, err = p.Forecast(ctx); err != nil {
		return nil, err
	}
	if v.Target.Table != nil {
		bounds, exact, err := scan.NewPartitions(a.admin, a.service.sdk, cfg.Target.Table).Read(a.started)
		if err == nil {
			v.Target.Partitions, v.Target.Guessed = len(bounds)+1, !exact && len(bounds) > 0
		} else if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return v, v.look(ctx, p)
}

// rising detects whether values of the first key column rise from row to row.
type rising struct {
	of         table.Type
	last       []byte
	rows, rose int64
}

func (r *rising) add(key []byte) {
	n := table.FirstColumn(r.of, key)
	if n < 0 || r.of != table.Integer && !beginsWithDate(key[:n]) { // other strings may rise for other reasons
		return
	}
	if r.rows++; bytes.Compare(key[:n], r.last) > 0 {
		r.rose++
	}
	r.last = append(r.last[:0], key[:n]...)
}

// is reports whether at least 20 keys rise from row to row, with few exceptions: the next file may begin lower.
func (r *rising) is() bool { return r.rows >= 20 && r.rose*20 >= r.rows*19 }

// beginsWithDate reports whether a text begins like 2026-01-31.
func beginsWithDate(text []byte) bool {
	return len(text) >= 10 && !slices.ContainsFunc([]int{0, 1, 2, 3, 5, 6, 8, 9},
		func(i int) bool { return text[i] < '0' || text[i] > '9' }) &&
		(text[4] == '-' || text[4] == '/') && text[7] == text[4]
}

func (v *Preview) look(ctx context.Context, p *plan.Plan) error {
	hot := partitioner.NewHotKeys(p.Schema.Key[0].Type)
	var rows, bytes, units int64
	tables, rise := map[string]int64{}, rising{of: p.Schema.Key[0].Type}
	err := intake.Look(ctx, p, func(row *table.Ref, why *table.Reason, whole bool) bool {
		switch {
		case why != nil && !whole:
			return false // the record may be cut off by the sample's end
		case why != nil:
			v.Sample.Looked++
			if v.Sample.Rejected++; v.Sample.Rejected == 1 {
				v.Sample.FirstReject = client.OneLine(why.Error())
			}
			return true
		}
		if v.Sample.Looked++; row == nil {
			return true
		}
		rows, bytes, units = rows+1, bytes+int64(row.Row().Size()), units+int64(row.Row().Units())
		key := row.Key()
		if p.Tables != nil {
			var name []byte
			name, key = table.CutTable(key)
			tables[string(name)]++
		}
		hot.Add(key, row.Row().Size())
		rise.add(key)
		return true
	})
	v.Sample.Grows = rise.is()
	if rows > 0 {
		v.Sample.RowBytes, v.Sample.RowUnits = float64(bytes)/float64(rows), float64(units)/float64(rows)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		v.Sample.Tables = append(v.Sample.Tables, PreviewShare{name, float64(tables[name]) / float64(rows)})
	}
	for _, broken := range p.Broken {
		v.Warnings = append(v.Warnings, client.OneLine(broken.Error())+
			"; the load will fail there, and this preview covers only the records before it")
	}
	report := hot.ReportWhole
	if lanes := max(v.Target.Partitions, v.Target.Ranges); lanes > 1 {
		report = func() []partitioner.HotKey { return hot.Report(lanes) }
	}
	for _, h := range report() {
		v.Sample.HotKeys = append(v.Sample.HotKeys, ledger.ReportHotKey{Column: p.Schema.Key[0].Name,
			Value: plan.ShowKey(h.Value), Share: h.Share})
	}
	if h, ok := hot.Largest(); ok {
		v.Sample.Largest = ledger.ReportHotKey{Column: p.Schema.Key[0].Name, Value: plan.ShowKey(h.Value), Share: h.Share}
	}
	return err
}
