package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
)

func TestShapesAreWhatTheirNamesSay(t *testing.T) {
	for name, want := range map[string]struct{ columns, bytes int }{"12": {12, 150}, "3": {3, 60}, "60": {60, 0}} {
		s, err := FindShape(name)
		must(t, err)
		var text bytes.Buffer
		must(t, s.WriteCSV(context.Background(), &text, 1000, 7))
		_, rows, _ := strings.Cut(text.String(), "\n")
		if want.bytes > 0 && len(rows) != 1000*want.bytes {
			t.Errorf("shape %s: %d bytes for 1,000 rows, want %d each", name, len(rows), want.bytes)
		}
		records, err := csv.NewReader(&text).ReadAll()
		if err != nil || len(records) != 1001 || len(records[0]) != want.columns {
			t.Fatalf("shape %s: %d records, %v", name, len(records), err)
		}
		ids := map[string]bool{}
		for _, r := range records[1:] {
			checkRecord(t, s, r)
			ids[r[0]] = true
		}
		if len(ids) != 1000 {
			t.Errorf("shape %s: %d ids for 1,000 rows", name, len(ids))
		}
	}
	if _, err := FindShape("13"); err == nil {
		t.Error("a shape that there is not was found")
	}
}

// checkRecord checks that every value is the canonical text of its kind: a load must not take a number for text.
func checkRecord(t *testing.T, s Shape, record []string) {
	t.Helper()
	for i, c := range s.Columns {
		text := record[i]
		same := false
		switch c.Kind {
		case IntegerValues:
			v, err := strconv.ParseInt(text, 10, 64)
			same = err == nil && strconv.FormatInt(v, 10) == text
		case DoubleValues:
			v, err := strconv.ParseFloat(text, 64)
			same = err == nil && strconv.FormatFloat(v, 'f', -1, 64) == text
		case StringValues:
			same = text[0] >= 'a' && text[0] <= 'z'
		}
		if !same || len(text) != c.Length {
			t.Errorf("shape %s, column %s: %q", s.Name, c.Name, text)
		}
	}
}

func TestAShapeStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Shapes()[0].WriteCSV(ctx, new(bytes.Buffer), 10, 1); err == nil {
		t.Error("no error")
	}
}
