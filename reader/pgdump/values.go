package pgdump

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/reader/record"
)

var (
	errBoolean  = errors.New("want t or f")
	errBytes    = errors.New(`want \x and hexadecimal digits, or bytes with escapes such as \001`)
	errZone     = errors.New("want a time with an offset, such as 2024-02-29 12:34:56+01")
	errInterval = errors.New("want an interval, such as 1 year 2 days 03:04:05")
)

// appendBytes appends the bytes that a text stands for: in hexadecimal, or escaped as with bytea_output = escape.
func appendBytes(dst, text []byte) ([]byte, error) {
	if digits, is := bytes.CutPrefix(text, []byte(`\x`)); is {
		out, err := hex.AppendDecode(dst, digits)
		if err != nil {
			return dst, errBytes
		}
		return out, nil
	}
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			return append(dst, text...), nil
		}
		dst, text = append(dst, text[:n]...), text[n+1:]
		if len(text) > 0 && text[0] == '\\' {
			dst, text = append(dst, '\\'), text[1:]
			continue
		}
		if len(text) < 3 {
			return dst, errBytes
		}
		b, err := strconv.ParseUint(string(text[:3]), 8, 8)
		if err != nil {
			return dst, errBytes
		}
		dst, text = append(dst, byte(b)), text[3:]
	}
	return dst, nil
}

// appendZoned appends a time with an offset as UTC, as a live server returns it.
func appendZoned(dst, text []byte) ([]byte, error) {
	if utc, is := bytes.CutSuffix(text, []byte("+00")); is && isTime(utc) {
		return append(record.AppendTimestamp(dst, utc), 'Z'), nil
	}
	value := string(text)
	if value == "infinity" || value == "-infinity" {
		return append(dst, value...), nil
	}
	value, era := strings.CutSuffix(value, " BC")
	day, clock, ok := strings.Cut(value, " ")
	sign := strings.LastIndexAny(clock, "+-")
	if !ok || sign < 0 {
		return dst, errZone
	}
	parts := strings.Split(day, "-")
	if len(parts) != 3 {
		return dst, errZone
	}
	year, err1 := strconv.Atoi(parts[0])
	hms, fraction, _ := strings.Cut(clock[:sign], ".")
	at, err2 := time.Parse("01-02 15:04:05", parts[1]+"-"+parts[2]+" "+hms)
	seconds, err3 := offset(clock[sign:])
	if parts[1] == "02" && parts[2] == "29" && err2 != nil { // Parse takes year 0 for a leap year
		return dst, errZone
	}
	if err1 != nil || err2 != nil || err3 != nil || strings.Trim(fraction, "0123456789") != "" {
		return dst, errZone
	}
	if era {
		year = 1 - year
	}
	utc := time.Date(year, at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second()-seconds, 0, time.UTC)
	year = utc.Year()
	if era = year < 1; era {
		year = 1 - year
	}
	digits := strconv.Itoa(year)
	dst = append(append(dst, "0000"[min(4, len(digits)):]...), digits...)
	layout := "-01-02T15:04:05"
	if era {
		layout = "-01-02 15:04:05"
	}
	dst = utc.AppendFormat(dst, layout)
	if fraction != "" {
		dst = append(append(dst, '.'), fraction...)
	}
	if era {
		return append(dst, "+00 BC"...), nil
	}
	return append(dst, 'Z'), nil
}

// isTime reports whether text looks like YYYY-MM-DD HH:MM:SS, perhaps with a longer year or a fraction.
func isTime(text []byte) bool {
	const form = "-01-31 23:59:59"
	at := bytes.IndexByte(text, '-')
	if at < 4 || len(text) < at+len(form) {
		return false
	}
	for i, c := range text {
		f := byte('0') // highest last digit of the year, and of a fraction
		if i == at+len(form) {
			f = '.'
		} else if i >= at && i < at+len(form) {
			f = form[i-at]
		}
		if c != f && (f < '0' || f > '9' || c < '0' || c > '9') {
			return false
		}
	}
	month, day, hour, minute := text[at+1:at+3], text[at+4:at+6], text[at+7:at+9], text[at+10:at+12]
	return string(month) >= "01" && string(month) <= "12" && string(day) >= "01" && string(day) <= "31" &&
		string(hour) <= "23" && string(minute) <= "59" && text[at+13] <= '5' && text[len(text)-1] != '.'
}

func offset(text string) (seconds int, err error) {
	unit := 3600
	for i, part := range strings.Split(text[1:], ":") {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || len(part) != 2 || i > 2 {
			return 0, errZone
		}
		seconds += int(n) * unit
		unit /= 60
	}
	if text[0] == '-' {
		return -seconds, nil
	}
	return seconds, nil
}

// appendInterval appends an interval in ISO 8601, as a live server returns it. Dumps have it in style postgres.
func appendInterval(dst, text []byte) ([]byte, error) {
	var months, days int64
	fields := strings.Fields(string(text))
	var clock string
	if n := len(fields); n%2 == 1 {
		clock, fields = fields[n-1], fields[:n-1]
	}
	for i := 0; i < len(fields); i += 2 {
		n, err := strconv.ParseInt(fields[i], 10, 32)
		if err != nil {
			return dst, errInterval
		}
		switch strings.TrimSuffix(fields[i+1], "s") {
		case "year":
			months += 12 * n
		case "mon":
			months += n
		case "day":
			days = n
		default:
			return dst, errInterval
		}
	}
	hours, minutes, seconds, err := readClock(clock)
	if err != nil || clock == "" && len(fields) == 0 {
		return dst, errInterval
	}
	from := len(dst)
	dst = append(dst, 'P')
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	part(months/12, 'Y')
	part(months%12, 'M')
	part(days, 'D')
	if hours != 0 || minutes != 0 || seconds != "" {
		dst = append(dst, 'T')
		part(hours, 'H')
		part(minutes, 'M')
		if seconds != "" {
			dst = append(append(dst, seconds...), 'S')
		}
	}
	if len(dst) == from+1 {
		dst = append(dst, "T0S"...)
	}
	return dst, nil
}

// readClock parses [-]HH:MM:SS[.ffffff]. The sign applies to each part. Seconds are text, "" if 0.
func readClock(clock string) (hours, minutes int64, seconds string, err error) {
	if clock == "" {
		return 0, 0, "", nil
	}
	digits, negative := strings.CutPrefix(clock, "-")
	digits = strings.TrimPrefix(digits, "+")
	parts := strings.Split(digits, ":")
	if len(parts) != 3 || strings.Trim(digits, "0123456789:.") != "" {
		return 0, 0, "", errInterval
	}
	h, err1 := strconv.ParseInt(parts[0], 10, 64)
	m, err2 := strconv.ParseInt(parts[1], 10, 64)
	whole, fraction, pointed := strings.Cut(parts[2], ".")
	s, err3 := strconv.ParseInt(whole, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || m > 59 || s > 60 || strings.Contains(fraction, ".") {
		return 0, 0, "", errInterval
	}
	if negative {
		h, m = -h, -m
	}
	if fraction = strings.TrimRight(fraction, "0"); s != 0 || fraction != "" {
		if negative {
			seconds = "-"
		}
		seconds += strconv.FormatInt(s, 10)
		if pointed && fraction != "" {
			seconds += "." + fraction
		}
	}
	return h, m, seconds, nil
}
