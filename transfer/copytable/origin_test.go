package copytable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/tablescan"
)

var must = conformance.Must

// TestACellThatATargetDoesNotTakeIsFoundAnywhere puts one cell that is too old, or too far ahead, into the first row of a table, in the middle
// and last, beside rows without such cells.
func TestACellThatATargetDoesNotTakeIsFoundAnywhere(t *testing.T) {
	const rows = 40
	s := tabletest.Open(t, server.Options{})
	key := []table.KeyColumn{{Name: "id", Type: table.Integer}}
	now := s.Now()
	old, ahead := now.Add(-50*time.Hour).UnixMilli(), now.Add(50*time.Hour).UnixMilli()
	others, err := keyexpr.CompileWhere("id != 20")
	must(t, err)
	day := &table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 86400}
	for i, tt := range []struct {
		bad  int // the row with it; -1 is none
		at   int64
		to   *table.Definition
		scan func(*tablescan.Config)
		o    func(*Options)
		want string // of the refusal; "" is none
	}{
		{bad: 0, at: old, want: "column odd of row id 0 is"},
		{bad: 20, at: old, want: "column odd of row id 20 is"},
		{bad: rows - 1, at: old, want: "column odd of row id 39 is"},
		{bad: 20, at: ahead, want: "column odd of row id 20 is"},
		{bad: -1},
		{bad: 20, at: old, to: &table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1e6}},
		{bad: 20, at: old, o: func(o *Options) { o.DropExpired = true }},
		{bad: 20, at: old, o: func(o *Options) { o.Takes = func(column string) bool { return column != "odd" } }},
		{bad: 20, at: old, scan: func(c *tablescan.Config) { c.Where = others }},
		{bad: 21, at: old, scan: func(c *tablescan.Config) { c.Where = others }, want: "column odd of row id 21 is"},
	} {
		name := fmt.Sprint("t", i)
		must(t, s.Admin.Create(name, key, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1e9}))
		tabletest.Fill(t, s.SDK, rows, func(id int) tablestore.RowChange {
			change := tabletest.Put(name, tabletest.Key("id", int64(id)), tabletest.Cells{"even": int64(id)}, now.UnixMilli())
			if id == tt.bad {
				change.AddColumnWithTimestamp("odd", "x", tt.at)
			}
			return change
		})
		from, err := s.Admin.Describe(name)
		must(t, err)
		c, o := tablescan.Config{Client: s.SDK, Table: from, Ranges: 4}, Options{To: day}
		if tt.to != nil {
			o.To = tt.to
		}
		if tt.scan != nil {
			tt.scan(&c)
		}
		if tt.o != nil {
			tt.o(&o)
		}
		err = New(c, o).Refuse(t.Context())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d: %v, want %q", i, err, tt.want)
		}
	}
}
