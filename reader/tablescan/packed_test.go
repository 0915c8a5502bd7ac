package tablescan

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"tsimport/internal/tablestore/scan"
	"tsimport/reader/record"
	"tsimport/reader/source"
)

// Pages are read into memory that is used again: records are those that the SDK's rows make, and what is known of a split stays.
func TestPagesInUsedMemoryHaveTheSameRecords(t *testing.T) {
	w := newWorld(t)
	const rows = 3000
	w.fill(rows)
	var want []string
	records := NewRecords(len(key))
	err := scan.Table(t.Context(), w.sdk, "t", key, scan.Options{Versions: AllVersions}, func(r *scan.Row) error {
		rec, err := records.Of(r)
		want = append(want, show(rec))
		return err
	})
	must(t, err)
	s := w.parts(w.config())[0]
	s.SetSplitBytes(20 << 10)
	parser := s.NewParser(nil)
	var got, known []string
	var splits []source.Split
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		made, err := s.Add(piece)
		if err != nil || len(made) != 1 {
			t.Fatalf("%d splits, %v", len(made), err)
		}
		sp := made[0]
		splits, known = append(splits, sp), append(known, string(sp.Key))
		_, _, err = parser.Parse(sp, func(rec *record.Record) { got = append(got, show(rec)) })
		must(t, err)
		sp.Part.(source.Reusable).Reuse()
	}
	if len(splits) < 5 || len(got) != rows {
		t.Fatalf("%d splits with %d rows", len(splits), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("record %d is\n%s, want\n%s", i, got[i], want[i])
		}
	}
	for i, sp := range splits {
		if string(sp.Key) != known[i] {
			t.Errorf("split %d was at %x and is at %x", i, known[i], sp.Key)
		}
	}
}

func show(r *record.Record) string {
	text := fmt.Sprint(r.Fields)
	for _, c := range r.Cells {
		text += fmt.Sprintf(" %s@%d %+v", c.Name, c.At, c.Datum)
	}
	return text
}
