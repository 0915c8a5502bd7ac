package parquet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Spark before 3.0, and later versions in legacy mode, count days before 1582-10-15 by the Julian calendar: its
// 0001-01-01 is 0000-12-30 in Parquet's proleptic Gregorian calendar. We return the dates that Spark wrote. Keys and
// versions are from Spark's DataSourceUtils, the arithmetic from RebaseDateTime.

const (
	sparkPrefix  = "org.apache.spark."
	maxSparkText = 256 // length of the longest version or zone
)

// calendar is the calendar of a leaf's dates and times.
type calendar struct {
	hybrid bool   // whether dates up to 1582-10-04 are Julian
	zone   string // time zone of timestamps; may be ""
	utc    bool
}

var utcNames = []string{"UTC", "GMT", "Z", "Zulu", "UCT", "Universal", "Greenwich", "GMT0", "GMT+0", "GMT-0", "+00:00",
	"UTC+00:00", "GMT+00:00"}

// settleCalendar sets the calendar by Spark's footer entries. As in Spark, versions (since 2.4.1) compare as text.
func (l *leaf) settleCalendar(f *footer) {
	first, key := "3.0.0", "legacyDateTime"
	switch {
	case l.physical == physInt96 && l.kind == record.Timestamp:
		first, key = "3.1.0", "legacyINT96"
	case l.kind == record.Date, l.kind == record.Timestamp && !l.local:
	default:
		return
	}
	_, hybrid := f.spark[key]
	if version, says := f.spark["version"]; says {
		hybrid = hybrid || version < first
	} else if _, rows := f.spark["sql.parquet.row.metadata"]; rows {
		hybrid = hybrid || strings.HasPrefix(string(f.writer), "parquet-mr ")
	}
	zone := f.spark["timeZone"]
	l.calendar = calendar{hybrid: hybrid, zone: zone, utc: slices.Contains(utcNames, strings.TrimPrefix(zone, "Etc/"))}
}

const (
	firstGregorian = -141427 // 1582-10-15, in days since 1970
	year1900       = -25567  // from here on, zones have the same offsets in both calendars
)

// rebase converts dates and times to the Gregorian calendar. It refuses times before 1900, except in UTC, as ambiguous.
func (l *leaf) rebase(d *record.Datum) *table.Reason {
	day := int64(1)
	if d.Kind == record.Timestamp {
		day = secondsOfDay * int64(d.Unit)
	}
	days := floorDiv(d.Int, day)
	if d.Kind == record.Timestamp && !l.calendar.utc && days < year1900 {
		raw := fmt.Sprintf("%d of %d a second since 1970 in Spark's old calendar", d.Int, int64(d.Unit))
		*d = record.Datum{Kind: record.String, Bytes: []byte(raw)} // a time kept among the rejects would be wrong
		return &table.Reason{Column: l.path, Code: table.CodeRange, Value: raw,
			Message: fmt.Sprintf("a timestamp before 1900 that Spark wrote in its old calendar and in the zone %q cannot be "+
				"converted exactly; write the file again with Spark 3 or later, without legacy mode",
				cmp.Or(l.calendar.zone, "unknown"))}
	}
	if days < firstGregorian {
		d.Int += (gregorian(days) - days) * day // cannot overflow: far from the limits of 64 bits, or towards 0
	}
	return nil
}

// gregorian returns the Gregorian day with the same date as a Julian day, or 1 March for a missing 29 February.
func gregorian(days int64) int64 {
	year := floorDiv(4*(days+719470)+3, 1461) // Julian year, beginning on 1 March
	return days + 2 - floorDiv(year, 100) + floorDiv(year, 400)
}

func floorDiv(a, b int64) int64 {
	if q := a / b; a%b >= 0 {
		return q
	}
	return a/b - 1
}
