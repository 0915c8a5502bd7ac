package reader

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tsimport/reader/csv"
	"tsimport/reader/input"
)

// TestDumpsDoNotDependOnWhereTheyAreCut reads a dump of each dialect in small pieces, as a stream and compressed.
func TestDumpsDoNotDependOnWhereTheyAreCut(t *testing.T) {
	for _, dialect := range csv.Programs {
		d, _, _ := csv.Named(dialect)
		delimiter := d.Delimiter
		if delimiter == "" {
			delimiter = ";"
		}
		awkward := []string{"plain", `a\` + delimiter + "b", `\\`, `a\\\` + "\nb", `\N`, "", "x\r", `end\\`}
		if d.Quote != 0 {
			awkward = []string{"plain", fmt.Sprintf("%c a%sb\r\n%c%c %c", d.Quote, delimiter, d.Quote, d.Quote, d.Quote), `\`, "", "NULL", fmt.Sprintf("%c%c", d.Quote, d.Quote)}
		}
		if strings.HasPrefix(dialect, "hive") { // a line end always ends a record
			awkward = []string{"plain", "a\\\x01b", `\\`, `a\n`, `\N`, "", `\\n`}
		}
		if d.Typed {
			awkward[2] = "X'5c'"
		}
		var b bytes.Buffer
		if dialect == "excel" {
			b.WriteString("sep=;\r\n")
		}
		fmt.Fprintf(&b, "id%sv%sw\n", delimiter, delimiter)
		if strings.HasPrefix(dialect, "clickhouse") && !strings.HasSuffix(dialect, "-names") {
			fmt.Fprintf(&b, "UInt64%sString%sString\n", delimiter, delimiter)
		}
		for i := range 1000 {
			fmt.Fprintf(&b, "%d%s%s%s%s\n", i, delimiter, awkward[i%len(awkward)], delimiter, awkward[(i/7)%len(awkward)])
		}
		columns, want := valuesOf(t, itemOf(t, "dump", b.Bytes()), Options{Dialect: d, SplitBytes: 64 << 20})
		if strings.Join(columns, " ") != "id v w" || len(want) != 1000 {
			t.Errorf("%s: columns %q, %d records", dialect, columns, len(want))
			continue
		}
		for name, tt := range map[string]struct {
			item input.Item
			o    Options
		}{
			"small pieces": {itemOf(t, "dump", b.Bytes()), Options{Dialect: d, SplitBytes: 97}},
			"a stream":     {streamOf(t, b.Bytes()), Options{Dialect: d, SplitBytes: 4999}},
			"gzip":         {itemOf(t, "dump.gz", gzipped(b.Bytes())), Options{Dialect: d, SplitBytes: 1001}},
		} {
			_, got := valuesOf(t, tt.item, tt.o)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %s: %d records, want %d, or other values", dialect, name, len(got), len(want))
			}
		}
	}
}
