package plan

import (
	"fmt"
	"strings"
	"testing"
)

// wide is a CSV file of so many columns beside id, with a value in as many of each record.
func wide(columns, values int) string {
	var b strings.Builder
	b.WriteString("id")
	for i := range columns {
		fmt.Fprintf(&b, ",c%d", i)
	}
	for row := range 3 {
		fmt.Fprintf(&b, "\n%d", row)
		for i := range columns {
			b.WriteByte(',')
			if i < values {
				b.WriteByte('7')
			}
		}
	}
	return b.String() + "\n"
}

func TestInputsWithoutARowThatFitsAreRefusedBeforeTheFirstRow(t *testing.T) {
	for _, columns := range []int{1025, 20_000} {
		refused(t, ask(file(t, "a.csv", wide(columns, columns))), nil, fmt.Sprintf("has %d columns beside the primary key, and a row has at most 1024", columns))
	}
	makes(t, ask(file(t, "a.csv", wide(1024, 1024))), nil)
	makes(t, ask(file(t, "a.csv", wide(3000, 1024))), nil) // records lack most of the columns
	refused(t, ask(file(t, "a.csv", wide(3000, 1025))), nil, "--columns")

	refused(t, ask(file(t, "a.csv", wide(20_000, 1))), nil, "has 20000 columns") // a header of so many is never a row's

	r := ask(file(t, "a.csv", wide(20_000, 20_000)))
	r.Columns.Only = []string{"c5", "c19999"}
	if p := makes(t, r, nil); len(p.Schema.Columns) != 3 {
		t.Errorf("%d columns, want 3", len(p.Schema.Columns))
	}

	var line strings.Builder
	line.WriteString(`{"id":"a"`)
	for i := range 2000 {
		fmt.Fprintf(&line, `,"m%d":1`, i)
	}
	refused(t, ask(file(t, "a.jsonl", line.String()+"}\n")), nil, "2000 columns")
}
