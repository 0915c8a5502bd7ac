package server

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// engine/contract has the other refusals; it has no clock that stands still.
func TestADateIsOfTheQuarterOfAnHourAroundTheClock(t *testing.T) {
	at := &clock{time.Date(2024, 12, 31, 23, 59, 59, 0, time.UTC)}
	s := open(t, Options{Now: at.now})
	const outside, invalid = "Mismatch between system time and x-ots-date: ", "Invalid date format: "
	for date, want := range map[string]string{
		"2025-01-01T00:14:59.000Z": "", "2025-01-01T00:15:00.000Z": outside, "2024-12-31T23:44:59.000Z": "", "2024-12-31T23:44:58.999Z": outside,
		"2024-12-31T23:59:59Z": "", "2024-12-31T23:59:59.123456789Z": "", "2024-12-31T23:59:59.1234567890Z": invalid, "2024-12-31T23:59:59.Z": invalid,
		"2024-12-31T23:59:59,123Z": invalid, "2024-12-31T23:59:59.+12Z": invalid, "2024-12-31T23:59:59+00:00": invalid,
		"2024-12-32T23:59:59.000Z": invalid, "Z": invalid,
	} {
		a := raw(s, "ListTable", nil, func(h http.Header) { h.Set(wire.HeaderDate, date) })
		if want != "" {
			want += date + "."
		}
		if (a.status == 200) != (want == "") || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %q", date, a.status, a.body)
		}
	}
}

// A stream that holds more than it says is not inflated beyond that.
func TestABodyThatDoesNotInflateToItsSizeIsRefused(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t1", 1)
	whole := deflate([]byte("\n\x02t1"))
	bomb := deflate(make([]byte, 64<<20))
	changed := slices.Clone(whole)
	changed[len(changed)-1] ^= 1
	for name, tt := range map[string]struct {
		body []byte
		size int
		want int
	}{
		"whole":                         {whole, 4, 200},
		"cut off":                       {whole[:len(whole)-5], 4, 400},
		"without its checksum":          {whole[:len(whole)-4], 4, 400},
		"another checksum":              {changed, 4, 400},
		"empty":                         {nil, 4, 400},
		"shorter than it says":          {whole, 5, 400},
		"longer than it says":           {whole, 3, 400},
		"a length below 0":              {whole, -1, 400},
		"not compressed":                {[]byte("\n\x02t1"), 4, 400},
		"a bomb that says a little":     {bomb, 100, 400},
		"a bomb that says the most":     {bomb, wire.MaxBodyBytes, 400},
		"a bomb that says what it is":   {bomb, 64 << 20, 413},
		"five megabytes that inflate":   {deflate(make([]byte, wire.MaxBodyBytes)), wire.MaxBodyBytes, 400}, // no message
		"a byte more than five of them": {deflate(make([]byte, wire.MaxBodyBytes+1)), wire.MaxBodyBytes + 1, 413},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := raw(s, "DescribeTable", tt.body, func(h http.Header) {
			h.Set(wire.HeaderRequestCompress, "deflate")
			h.Set(wire.HeaderRequestSize, strconv.Itoa(tt.size))
		})
		runtime.ReadMemStats(&after)
		conformance.Equal(t, a.status, tt.want, "%s", name)
		if got := after.TotalAlloc - before.TotalAlloc; got > 40<<20 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}
