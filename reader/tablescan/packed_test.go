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
	if err != nil {
		t.Fatal(err)
	}
	s := w.parts(w.config())[0]
	s.SetSplitBytes(20 << 10)
	parser := s.NewParser(nil)
	var got, keys, known []string
	var splits []source.Split
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Add(piece)
		if err != nil || len(made) != 1 {
			t.Fatalf("%d splits, %v", len(made), err)
		}
		sp := made[0]
		splits, known = append(splits, sp), append(known, fmt.Sprintf("%v %x", sp.Keys, sp.Key))
		first, last := "", ""
		if _, _, err := parser.Parse(sp, func(rec *record.Record) {
			got = append(got, show(rec))
			if last = fmt.Sprint(rec.Fields[:len(key)]); first == "" {
				first = last
			}
		}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, first+last)
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
		if is := fmt.Sprintf("%v %x", sp.Keys, sp.Key); is != known[i] {
			t.Errorf("split %d was %s and is %s", i, known[i], is)
		}
		if is := fmt.Sprint(sp.Keys[0].First) + fmt.Sprint(sp.Keys[0].Last); is != keys[i] {
			t.Errorf("split %d is of %s, its records of %s", i, is, keys[i])
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
