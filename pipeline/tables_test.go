package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tsimport/table"
)

// purchases are rows of so many months from 2023-11 on, in turns, with the key id.
func purchases(rows, months int) string {
	var b strings.Builder
	b.WriteString("id,at,v\n")
	for i := range rows {
		month := 10 + i%months
		fmt.Fprintf(&b, "k%06d,%04d-%02d-%02d 10:00:00,%d\n", i, 2023+month/12, month%12+1, 1+i%28, i)
	}
	return b.String()
}

// byMonth loads into a table for each month.
func (w *world) byMonth(inputs ...string) Config {
	cfg := w.config(inputs...)
	cfg.Target.Table = "t_{month(at)}"
	return cfg
}

func TestEachRowGoesToTheTableOfItsMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.load(w.byMonth(w.file("a.csv", purchases(3000, 24))))
	if r.Written != 3000 || len(r.Tables) != 24 {
		t.Fatalf("%d rows written into %d tables", r.Written, len(r.Tables))
	}
	if first, last := r.Tables[0], r.Tables[23]; first.Name != "t_202311" || last.Name != "t_202510" || first.Written != 125 || !first.Created {
		t.Errorf("first %+v, last %+v", first, last)
	}
	rows := w.rowsOf("t_202402")
	if len(rows) != 125 {
		t.Errorf("%d rows in t_202402", len(rows))
	}
	for key, row := range rows {
		if !strings.Contains(row["at"], "2024-02-") {
			t.Errorf("row %s in t_202402: %v", key, row)
		}
	}
}

func TestARowWithoutATableIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config(w.file("a.csv", "id,shop,v\n1,north,1\n2,,2\n3,no such,3\n4,south,4\n"))
	cfg.Target.Table = "sales_{shop}"
	r := w.load(cfg)
	if r.Written != 2 || r.Rejected != 2 || len(r.Tables) != 2 || r.ExitCode != ExitRejects {
		t.Errorf("%d written, %d rejected, tables %+v", r.Written, r.Rejected, r.Tables)
	}
}

func TestTooManyTablesStopTheLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.byMonth(w.file("a.csv", purchases(300, 5)))
	cfg.MaxTables = 4
	r, err := Run(context.Background(), cfg)
	if err == nil || !strings.Contains(err.Error(), "--max-tables 4") {
		t.Fatalf("%v", err)
	}
	if len(r.Tables) != 4 || r.Read != r.Written+r.Unfinished {
		t.Errorf("%d tables, ledger %d read, %d written, %d unfinished", len(r.Tables), r.Read, r.Written, r.Unfinished)
	}
}

func TestTablesThatMayNotBeMadeStopTheLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.byMonth(w.file("a.csv", purchases(10, 2)))
	cfg.Target.Create = false
	if _, err := Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "--create") {
		t.Errorf("%v", err)
	}
	other := w.config(w.file("b.csv", "n,v\n1,2\n"))
	other.Target.Table, other.Target.Key, other.RunDir = "t_202312", []table.KeyColumn{{Name: "n", Type: table.Integer}}, w.dir+"/other"
	w.load(other)
	cfg.Target.Create, cfg.RunDir = true, w.dir+"/again"
	if _, err := Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "primary key n:integer") {
		t.Errorf("%v", err)
	}
}

func TestLaterRowsOfAKeySupersedeEarlierOnesOfTheirTableOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.load(w.byMonth(w.file("a.csv", "id,at,v\nk,2024-01-01,1\nk,2024-02-01,2\nk,2024-01-09,3\n")))
	if r.Written+r.Superseded != 3 {
		t.Errorf("%d written, %d superseded", r.Written, r.Superseded)
	}
	for name, v := range map[string]string{"t_202401": "3", "t_202402": "2"} {
		if rows := w.rowsOf(name); len(rows) != 1 || !strings.HasSuffix(rows["k"]["v"], v) {
			t.Errorf("%s has %v", name, rows)
		}
	}
}
