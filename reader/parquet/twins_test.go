package parquet

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tsimport/internal/conformance"
	"tsimport/reader/jsontext"
	"tsimport/reader/record"
)

// TestParquetTwinsHoldTheValuesOfTheirCSVFiles compares cell by cell. Whoever made the kylo files read the times with
// a 12 hour clock (12:07:04Z became 00:07:04Z), made what did not fit a type null, and cut comments that hold quotes or
// commas; parquet-go reads the same from the Parquet files.
func TestParquetTwinsHoldTheValuesOfTheirCSVFiles(t *testing.T) {
	dir := conformance.Dir(t)
	type twin struct{ parquet, csv string }
	var twins []twin
	for _, n := range []string{"2", "3", "4", "5"} {
		twins = append(twins, twin{"parquet/kylo/samples/sample-data/parquet/userdata" + n + ".parquet", "real/kylo/csv/userdata" + n + ".csv"})
	}
	for _, n := range []string{"earthquakes", "seattle-weather", "stocks", "wind"} {
		twins = append(twins, twin{"real/mosaic/" + n + ".parquet", "real/mosaic/" + n + ".csv"})
	}
	compared := 0
	for _, w := range twins {
		if _, err := os.Stat(filepath.Join(dir, w.parquet)); err != nil && dir == conformance.Part(t) {
			continue // the part has only the small ones
		}
		compared++
		t.Run(filepath.Base(w.parquet), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, w.parquet))
			if err != nil {
				t.Fatal(err)
			}
			c, err := os.Open(filepath.Join(dir, w.csv))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			lines, err := csv.NewReader(c).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			lines = lines[1:]
			row, wrong := 0, 0
			_, _, err = loadAll(b, w.parquet, Options{}, func(r *record.Record) {
				for i := range r.Fields {
					if row < len(lines) && wrong < 5 && !equalCell(&r.Fields[i], lines[row][i]) &&
						!(filepath.Dir(w.csv) == "real/kylo/csv" && kyloCell(&r.Fields[i], lines[row][i], i)) {
						wrong++
						t.Errorf("row %d column %d: %s, the CSV has %q", row, i, show(&r.Fields[i]), lines[row][i])
					}
				}
				row++
			})
			if err != nil || row != len(lines) {
				t.Errorf("%d rows for %d lines: %v", row, len(lines), err)
			}
		})
	}
	if compared < 2 {
		t.Errorf("only %d pairs were compared", compared)
	}
}

func show(d *record.Datum) string {
	if d.Kind == record.String {
		return fmt.Sprintf("%q", d.Bytes)
	}
	return string(jsontext.Append(nil, d))
}

func equalCell(d *record.Datum, cell string) bool {
	switch d.Kind {
	case record.Null:
		return cell == ""
	case record.String:
		return string(d.Bytes) == cell
	case record.Integer, record.Decimal:
		want, ok := new(big.Rat).SetString(cell)
		have, _ := new(big.Rat).SetString(string(jsontext.Append(nil, d)))
		return ok && want.Cmp(have) == 0
	case record.Double:
		want, err := strconv.ParseFloat(cell, 64)
		return err == nil && want == d.Double
	case record.Date:
		return cell == time.Unix(d.Int*86400, 0).UTC().Format("2006-01-02")
	case record.Timestamp:
		want, err := time.Parse(time.RFC3339, cell)
		return err == nil && want.Equal(jsontext.Moment(d))
	}
	return false
}

func kyloCell(d *record.Datum, cell string, column int) bool {
	const id, salary, comments = 1, 10, 12
	switch {
	case d.Kind == record.Timestamp && strings.Contains(cell, "T12:"):
		return equalCell(d, strings.Replace(cell, "T12:", "T00:", 1))
	case column == comments:
		return true
	case column == id || column == salary:
		_, err := strconv.ParseFloat(cell, 64)
		return d.Kind == record.Null && err != nil
	}
	return false
}
