package reader

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/table"
	tcsv "example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// placesOf reads all records, each as its place, its line, and its values or why it cannot be read and what is kept of it.
func placesOf(t *testing.T, content string, o Options) (rows []string, err error) {
	t.Helper()
	name := "a.csv"
	if o.Format == JSONLines {
		name = "a.jsonl"
	}
	s := opened(t, itemOf(t, name, []byte(content)), o)
	parser := s.NewParser([]int{0, 1})
	defer parser.Close()
	line := 0
	err = eachSplit(s, func(sp source.Split) error {
		_, lines, err := parser.Parse(sp, func(rec *record.Record) {
			text := fmt.Sprintf("%d line %d ", sp.Offset+int64(rec.Span.Start), line+int(rec.Span.Line))
			if rec.Bad != nil {
				text += fmt.Sprintf("%s %s %q %s", rec.Bad.Code, rec.Bad.Message, rec.Bad.Value, s.Raw(sp, rec.Span))
			} else {
				text += fmt.Sprintf("%q %q", rec.Fields[0].Bytes, rec.Fields[1].Bytes)
			}
			rows = append(rows, text)
		})
		line += lines
		return err
	})
	return rows, err
}

func TestARecordThatIsTooLongIsRejectedAlone(t *testing.T) {
	const limit = 200 // above what is shown of a record
	escaped := tcsv.Default
	escaped.Quote, escaped.Escape = 0, '\\'
	crs := tcsv.Default
	crs.EOL = '\r'
	for name, o := range map[string]Options{
		"CSV": {}, "CSV without quotes": {Dialect: tcsv.Dialect{Delimiter: ",", EOL: '\n'}}, "CSV with escapes": {Dialect: escaped},
		"CSV of CRs": {Dialect: crs}, "JSON lines": {Format: JSONLines},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			for round := range 8 {
				var b strings.Builder
				b.WriteString("id,v" + o.Dialect.End() + "0,x" + o.Dialect.End())
				if o.Format == JSONLines {
					b.Reset()
					b.WriteString(`{"id":0,"v":"x"}` + "\n")
				}
				ends := strings.NewReplacer("\n", o.Dialect.End())
				for i := range 30 {
					v := ""
					for range []int{0, 3, 3, 3, 60, 500}[random.IntN(6)] {
						v += []string{"a", "b", "é", "n"}[random.IntN(4)]
						if o.Format != JSONLines && (o.Dialect == tcsv.Dialect{} || o.Dialect == crs) && random.IntN(9) == 0 {
							v += []string{"\n", `""`, ","}[random.IntN(3)]
						}
						if o.Dialect.Escape != 0 && random.IntN(9) == 0 {
							v += []string{"\\\n", `\\`, `\,`}[random.IntN(3)]
						}
					}
					switch {
					case o.Format == JSONLines:
						fmt.Fprintf(&b, "{\"id\":%d,\"v\":\"%s\"}\n", i, v)
					case o.Dialect.Quote == 0 && o.Dialect.Delimiter != "":
						fmt.Fprint(&b, ends.Replace(fmt.Sprintf("%d,%s\n", i, v)))
					default:
						fmt.Fprint(&b, ends.Replace(fmt.Sprintf("%d,\"%s\"\n", i, v)))
					}
				}
				// All in one split is parsed whole: nothing is read over.
				o.Memory.RecordBytes, o.SplitBytes = limit, 1<<20
				want, err := placesOf(t, b.String(), o)
				if err != nil || len(want) < 31 {
					t.Fatalf("%d records, %v", len(want), err)
				}
				unlimited := o
				unlimited.Memory.RecordBytes = 0
				all, err := placesOf(t, b.String(), unlimited)
				if err != nil || len(all) != len(want) {
					t.Fatalf("%d records, %d without a limit, %v", len(want), len(all), err)
				}
				for i := range all {
					if long := strings.Contains(want[i], table.CodeRecordTooLong); !long && all[i] != want[i] || long && len(all[i]) < limit/2 {
						t.Fatalf("record %d: %s\nwithout a limit: %s", i, want[i], all[i])
					}
				}
				for _, size := range []int{1, 7, 50, 199, 200, 201, 300, 1000} {
					if size < 50 && round > 0 {
						continue // many pieces, each with room for more
					}
					o.SplitBytes = size
					got, err := placesOf(t, b.String(), o)
					if diff := cmp.Diff(want, got); err != nil || diff != "" {
						t.Fatalf("pieces of %d bytes: %v (-want +got):\n%s\n%q", size, err, diff, b.String())
					}
				}
			}
		})
	}
}

func TestAQuoteThatNeverClosesEndsTheReading(t *testing.T) {
	o := Options{SplitBytes: 50, Memory: Memory{RecordBytes: 100}}
	rows, err := placesOf(t, "id,v\n1,x\n2,\""+strings.Repeat("3,y\n", 100), o)
	if err == nil || !strings.Contains(err.Error(), "the record at byte 9 has no end") || len(rows) != 1 {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestAPlaceholderOfALongRecordIsNotARecord(t *testing.T) {
	for header, o := range map[string]Options{
		"id\n1\n": {}, "id,v\n1,x\n": {Dialect: tcsv.Dialect{Delimiter: ",", Quote: '\'', EOL: '\n'}}, "{\"id\":1,\"v\":\"x\"}\n": {Format: JSONLines},
	} {
		s, err := Open(t.Context(), itemOf(t, "a.csv", []byte(header)), o)
		must(t, err)
		raw := string((&longRecord{offset: 7, bytes: 1 << 24}).raw(s))
		must(t, s.Close())
		set := itemOf(t, "b.csv", []byte(header+raw+header))
		if o.Format == JSONLines {
			set = itemOf(t, "b.jsonl", []byte(header+raw))
		}
		if _, rows := valuesOf(t, set, o); len(rows) < 2 || len(rows[1]) != 1 || !strings.HasPrefix(rows[1][0], "Bad") {
			t.Errorf("%q is read as %q", raw, rows)
		}
	}
}
