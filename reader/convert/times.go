package convert

import (
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// appendTime appends a date, time or timestamp as in RFC 3339, with its unit's digits and, if it has one, its zone.
func appendTime(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Date:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(d.Int)).AppendFormat(dst, time.DateOnly)
	case record.TimeOfDay:
		return d.Moment().AppendFormat(dst, time.TimeOnly+fractions[d.Unit])
	}
	layout := "2006-01-02T15:04:05" + fractions[d.Unit]
	if !d.Local {
		layout += "Z"
	}
	return d.Moment().AppendFormat(dst, layout)
}

var fractions = map[record.Unit]string{record.Millis: ".000", record.Micros: ".000000", record.Nanos: ".000000000"}

// timestampValue converts a time to the column's unit, since 1970-01-01T00:00:00Z.
func timestampValue(v *table.Value, spec *table.Time, d *record.Datum) *table.Reason {
	var at time.Time
	local := false // whether at is a wall-clock time, stored as UTC
	switch d.Kind {
	case record.Text, record.String:
		zone := time.UTC
		if spec.Zoned {
			zone = spec.Zone
		}
		var err error
		if at, err = time.ParseInLocation(spec.Layout, string(d.Bytes), zone); err != nil {
			if spec.Layout == time.RFC3339 {
				return wrong("not a time like %q; timestamp(%%Y-%%m-%%d %%H:%%M:%%S,ZONE) names another form", spec.Layout)
			}
			return wrong("not a time like %q", spec.Layout)
		}
		local = !spec.Zoned
	case record.Timestamp:
		at, local = d.Moment(), d.Local
	case record.Date:
		at, local = time.Date(1970, 1, 1+int(d.Int), 0, 0, 0, 0, time.UTC), true
	default:
		return wrong("not a time")
	}
	if local {
		wall, ok := at, false
		if at, ok = table.LocalTime(wall, spec.Zone); !ok {
			return outOfRange(fmt.Sprintf("clocks in %s skipped %s when set forward", spec.Zone, wall.Format(time.DateTime)))
		}
	}
	perUnit := int64(time.Second) / spec.Unit
	if int64(at.Nanosecond())%perUnit != 0 {
		return &table.Reason{Code: table.CodeRange, Message: "the time has more digits than the column's unit keeps"}
	}
	if s := at.Unix(); s > math.MaxInt64/spec.Unit-1 || s < math.MinInt64/spec.Unit+1 {
		return outOfRange("the time does not fit in 64 bits")
	}
	*v = table.Value{Type: table.Integer, Int: at.Unix()*spec.Unit + int64(at.Nanosecond())/perUnit}
	return nil
}

// layouts lists layouts with a name. Any other layout is Go's or strptime's.
var layouts = map[string]string{
	"": time.RFC3339, "rfc3339": time.RFC3339, "datetime": time.DateTime, "date": time.DateOnly, "rfc1123": time.RFC1123,
}

var strptime = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'b': "Jan", 'B': "January", 'e': "_2",
	'I': "03", 'p': "PM", 'z': "-0700", 'Z': "MST", 'a': "Mon", 'A': "Monday", 'j': "002", 'f': "000000", 'T': "15:04:05",
	'F': "2006-01-02", '%': "%",
}

// ParseTime parses the argument of timestamp(layout,zone,unit). The layout is a name, Go's or strptime's. The zone is
// an IANA name (default UTC). The unit is s, ms, us or ns (default ms).
func ParseTime(text string) (*table.Time, error) {
	layout, zone, unit := text, "UTC", "ms"
	parts := strings.Split(text, ",")
	if n := len(parts); n > 1 {
		if _, ok := timeUnits[strings.TrimSpace(parts[n-1])]; ok {
			unit, parts = strings.TrimSpace(parts[n-1]), parts[:n-1]
		}
		if n := len(parts); n > 1 {
			zone, parts = strings.TrimSpace(parts[n-1]), parts[:n-1]
		}
		layout = strings.Join(parts, ",")
	}
	if named, ok := layouts[strings.ToLower(layout)]; ok {
		layout = named
	} else if strings.Contains(layout, "%") {
		var err error
		if layout, err = fromStrptime(layout); err != nil {
			return nil, err
		}
	}
	if time.Unix(0, 0).UTC().Format(layout) == time.Unix(987654321, 5e8).UTC().Format(layout) {
		return nil, fmt.Errorf("time layout %q names no part of a time", layout)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %w", zone, err)
	}
	return &table.Time{Layout: layout, Zone: location, Unit: timeUnits[unit], Zoned: namesZone(layout)}, nil
}

func namesZone(layout string) bool {
	in := func(name string, offset int) string {
		return time.Date(2001, 2, 3, 4, 5, 6, 0, time.FixedZone(name, offset)).Format(layout)
	}
	return in("AAT", 3600) != in("BBT", 7200)
}

var timeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "µs": 1e6, "ns": 1e9}

func fromStrptime(pattern string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		if i == len(pattern) || strptime[pattern[i]] == "" {
			return "", fmt.Errorf("time layout %q: unknown directive at %q", pattern, pattern[i-1:])
		}
		b.WriteString(strptime[pattern[i]])
	}
	return b.String(), nil
}
