package parquet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// TestDaysOfTheHybridCalendarAreThoseOfSpark compares with the table of switches in Spark's RebaseDateTime, and with the dates that its own
// tests have.
func TestDaysOfTheHybridCalendarAreThoseOfSpark(t *testing.T) {
	switches := []int64{-719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745, -354220, -317695, -244645, -208120, -171595, -141427}
	diffs := []int64{2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0}
	for day := switches[0]; day < firstGregorian; day++ {
		at, found := slices.BinarySearch(switches, day)
		if !found {
			at--
		}
		conformance.MustEqual(t, gregorian(day), day+diffs[at], "day %d", day)
	}
	for day, want := range map[int64]string{-141428: "1582-10-04", -719164: "0001-01-01", -719165: "0000-12-31", -719163 - 366: "0000-01-02", -244646: "1300-02-29 is 03-01"} {
		if got := time.Unix(gregorian(day)*secondsOfDay, 0).UTC().Format(time.DateOnly); got != want && want[5:10] != "02-29" || want[5:10] == "02-29" && got != "1300-03-01" {
			t.Errorf("day %d is %s, want %s", day, got, want)
		}
	}
	// Each four hundred Julian years are three days longer.
	for _, day := range []int64{-5_000_000, -719_470, -300_000} {
		conformance.Equal(t, gregorian(day-146_100*10_000), gregorian(day)-146_097*10_000, "day %d", day)
	}
}

// TestSparksOldCalendarIsReadAsTheDatesThatWereWritten covers each place of a time in a file, each key of the footer and each zone.
func TestSparksOldCalendarIsReadAsTheDatesThatWereWritten(t *testing.T) {
	const noDate, day, hour = -719164, 86400, 3600
	int96 := func(days, seconds int64) pq.Value {
		nanos := uint64(seconds) * 1e9
		return pq.Int96Value(deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(days + julianEpoch)})
	}
	date, micros, millis := pq.Date(), pq.Timestamp(pq.Microsecond), pq.Timestamp(pq.Millisecond)
	local := pq.TimestampAdjusted(pq.Microsecond, false)
	const version, zone, legacy, legacy96 = sparkPrefix + "version", sparkPrefix + "timeZone", sparkPrefix + "legacyDateTime", sparkPrefix + "legacyINT96"
	const row = sparkPrefix + "sql.parquet.row.metadata"
	old := []string{version, "2.4.8", zone, "UTC"}
	utc := pq.Leaf(pq.Int96Type)
	shift := int64(2 * day)
	for name, c := range map[string]struct {
		keys []string
		node pq.Node
		v    pq.Value
		want int64 // shift of the value in seconds; isRefused is a reject
	}{
		"a date":                       {old, date, pq.Int32Value(noDate), shift},
		"a date whose zone is unknown": {old[:2], date, pq.Int32Value(noDate), shift},
		"the last Julian day":          {old, date, pq.Int32Value(firstGregorian - 1), -10 * day},
		"the first Gregorian day":      {old, date, pq.Int32Value(firstGregorian), 0},
		"microseconds":                 {old, micros, pq.Int64Value(noDate*day*1e6 + 1), shift},
		"milliseconds":                 {old, millis, pq.Int64Value(noDate*day*1e3 + hour), shift},
		"before the first day of 1":    {old, micros, pq.Int64Value(noDate*day*1e6 - 1), shift},
		"INT96":                        {old, utc, int96(noDate, hour), shift},
		"a local time":                 {old, local, pq.Int64Value(noDate * day * 1e6), 0},
		"an integer":                   {old, pq.Int(32), pq.Int32Value(noDate), 0},
		"a time in another zone":       {[]string{version, "2.4.8", zone, "Asia/Shanghai"}, micros, pq.Int64Value(year1900*day*1e6 - 1), isRefused},
		"one of 1900 in another zone":  {[]string{version, "2.4.8", zone, "Asia/Shanghai"}, micros, pq.Int64Value(year1900 * day * 1e6), 0},
		"a time in an unknown zone":    {old[:2], micros, pq.Int64Value(noDate * day * 1e6), isRefused},
		"INT96 in an unknown zone":     {old[:2], utc, int96(noDate, 0), isRefused},
		"INT96 of today":               {old[:2], utc, int96(20000, 0), 0},
		"the first of 64 bits":         {old, micros, pq.Int64Value(-1 << 63), 2180 * day},
		"Spark 3":                      {[]string{version, "3.0.0"}, date, pq.Int32Value(noDate), 0},
		"legacy mode":                  {[]string{version, "3.5.1", legacy, ""}, date, pq.Int32Value(noDate), shift},
		"legacy mode for INT96 alone":  {[]string{version, "3.5.1", legacy96, "", zone, "UTC"}, micros, pq.Int64Value(noDate * day * 1e6), 0},
		"INT96 in legacy mode":         {[]string{version, "3.5.1", legacy96, "", zone, "Etc/UTC"}, utc, int96(noDate, 0), shift},
		"INT96 of Spark 3.0":           {[]string{version, "3.0.3", zone, "UTC"}, utc, int96(noDate, 0), shift},
		"INT96 of Spark 3.1":           {[]string{version, "3.1.0", zone, "UTC"}, utc, int96(noDate, 0), 0},
		"rows of Spark by parquet-mr":  {[]string{row, "{}", "writer", "parquet-mr version 1.8.2"}, date, pq.Int32Value(noDate), shift},
		"rows of Spark by another":     {[]string{row, "{}"}, date, pq.Int32Value(noDate), 0},
		"a file that is not Spark's":   {nil, date, pq.Int32Value(noDate), 0},
	} {
		var options []pq.WriterOption
		for i := 0; i < len(c.keys); i += 2 {
			if c.keys[i] == "writer" {
				options = append(options, pq.CreatedBy("parquet-mr", "1.8.2", "x"))
				continue
			}
			options = append(options, pq.KeyValueMetadata(c.keys[i], c.keys[i+1]))
		}
		read := func(options ...pq.WriterOption) (d, text record.Datum, bad [2]*table.Reason) {
			b := write(t, pq.NewSchema("s", pq.Group{"c": c.node}), []pq.Row{{c.v.Level(0, 0, 0)}}, options...)
			_, _, err := loadAll(b, "x", Options{}, func(r *record.Record) { d, bad[0] = r.Fields[0], r.Bad })
			must(t, err)
			b = write(t, pq.NewSchema("s", pq.Group{"c": pq.Group{"n": c.node}}), []pq.Row{{c.v.Level(0, 0, 0)}}, options...)
			if _, _, err := loadAll(b, "x", Options{}, func(r *record.Record) {
				text, bad[1] = r.Fields[0], r.Bad
				text.Bytes = slices.Clone(text.Bytes)
			}); err != nil {
				t.Fatal(err)
			}
			return d, text, bad
		}
		plain, _, _ := read()
		got, nested, bad := read(options...)
		if c.want == isRefused {
			if bad[0] == nil || bad[0].Column != "c" || bad[1] == nil || bad[1].Column != "c.n" {
				t.Errorf("%s is not refused: %v", name, bad)
			}
			if got.Kind != record.String || strings.HasPrefix(string(nested.Bytes), `{"n":"0000-`) {
				t.Errorf("%s: the reject is %+v, nested %s: a wrong time that can be loaded", name, got, nested.Bytes)
			}
			continue
		}
		unit := max(int64(plain.Unit), 1)
		if plain.Kind == record.Date {
			plain.Int, got.Int = plain.Int*day, got.Int*day
		}
		if bad[0] != nil || bad[1] != nil || got.Int-plain.Int != c.want*unit {
			t.Errorf("%s: %d from %d (%v)", name, got.Int, plain.Int, bad)
		}
		if c.want == shift && name != "before the first day of 1" && fmt.Sprintf("%.16s", nested.Bytes) != `{"n":"0001-01-01` {
			t.Errorf("%s, nested: %s", name, nested.Bytes)
		}
	}
}

const isRefused = 1 << 40
