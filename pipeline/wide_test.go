package pipeline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
	"tsimport/pipeline/plan"
	"tsimport/reader/record"
	"tsimport/reader/source/sourcetest"
)

// fromWide makes a load take its rows from a source whose rows describe themselves.
func (w *world) fromWide(rows *sourcetest.Wide) trial {
	cfg := w.config(rows.Name)
	cfg.Read.Sources = rows
	cfg.Target.Key[0].Type = table.Integer
	cfg.Target.Define.MaxVersions = 5
	return cfg
}

// versionsOf is a row's cells as text, each with its type: by column, then by timestamp, which is 0 where the service gave it.
type versionsOf map[string]map[int64]string

// wideRows reads a table with all versions. Timestamps from began on are the service's.
func (w *world) wideRows(began time.Time) map[string]versionsOf {
	w.t.Helper()
	w.plan.WaitLate()
	sdk, err := client.New(context.Background(), w.target(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	admin := &client.Admin{Client: sdk, Context: context.Background()}
	described, err := admin.Describe("t")
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]versionsOf{}
	err = scan.Table(context.Background(), sdk, "t", described.Key, scan.Options{Versions: 100}, func(r *tablestore.Row) error {
		row := versionsOf{}
		for _, c := range r.Columns {
			at := c.Timestamp
			if at >= began.UnixMilli() {
				at = 0
			}
			if row[c.ColumnName] == nil {
				row[c.ColumnName] = map[int64]string{}
			}
			row[c.ColumnName][at] = fmt.Sprintf("%T %v", c.Value, c.Value)
		}
		got[fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value)] = row
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// wantOf is what the table must hold of rows after they were put into an empty table.
func wantOf(rows *sourcetest.Wide) map[string]versionsOf {
	want := map[string]versionsOf{}
	for i, cells := range rows.Cells {
		row := versionsOf{}
		for _, c := range cells {
			if c.Kind == record.Null {
				continue
			}
			name := string(c.Name)
			if row[name] == nil {
				row[name] = map[int64]string{}
			}
			row[name][max(c.At, 0)] = shownDatum(c.Datum)
		}
		want[fmt.Sprint(rows.Data[i][0].Int)] = row
	}
	return want
}

// shownDatum is a value as wideRows shows it.
func shownDatum(d record.Datum) string {
	var v any = d.Int
	switch d.Kind {
	case record.Double:
		v = d.Double
	case record.Boolean:
		v = d.Int != 0
	case record.String:
		v = string(d.Bytes)
	case record.Binary:
		v = d.Bytes
	}
	return fmt.Sprintf("%T %v", v, v)
}

func TestRowsThatDescribeThemselvesArePutWithEveryCell(t *testing.T) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			began := time.Now()
			rows := sourcetest.NewWide("wide", 1500, began.Add(-time.Minute))
			cfg := w.fromWide(rows)
			cfg.Write.Order = order
			r := w.load(cfg)
			if diff := cmp.Diff(wantOf(rows), w.wideRows(began)); diff != "" {
				t.Errorf("the table (-want +got):\n%s", diff)
			}
			if r.Read != 1500 || r.Written != 1500 {
				t.Errorf("%d read, %d written", r.Read, r.Written)
			}
		})
	}
}
