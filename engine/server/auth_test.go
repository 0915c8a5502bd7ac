package server

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
		body       []byte
		size, want int
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

func TestWithASecretOfItsOwnTheServerAsksForItBelowEngine(t *testing.T) {
	const secret = "another-secret"
	for _, v := range []struct {
		secret, addr, password string
		tls                    bool
		want                   int
	}{
		{"", "192.0.2.1:5000", "", false, 200}, {secret, "192.0.2.1:5000", secret, false, 403}, {secret, "[2001:db8::1]:5000", secret, false, 403},
		{secret, "", secret, false, 403}, {secret, "192.0.2.1:5000", secret, true, 200}, {secret, "192.0.2.1:5000", "", true, 401},
		{secret, "127.0.0.1:5000", "", false, 401}, {secret, "127.0.0.1:5000", "wrong", false, 401}, {secret, "127.0.0.1:5000", secret, false, 200},
		{secret, "[::1]:5000", secret, false, 200}, {secret, "[::ffff:127.0.0.1]:5000", secret, false, 200},
	} {
		s := open(t, Options{AccessKeySecret: v.secret})
		r := httptest.NewRequest(http.MethodGet, "http://localhost/_engine/stats", nil)
		r.RemoteAddr = v.addr
		if v.password != "" {
			r.SetBasicAuth(DefaultAccessKeyID, v.password)
		}
		if v.tls {
			r.TLS = new(tls.ConnectionState)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		conformance.Equal(t, w.Code, v.want, "%+v: %q", v, w.Body)
	}
}

func TestAccountsThatNoSDKCouldUseAreRefused(t *testing.T) {
	for name, v := range map[string]struct {
		o  Options
		ok bool
	}{
		"the defaults":           {Options{}, true},
		"3 bytes":                {Options{Instance: "abc"}, true},
		"16 bytes":               {Options{Instance: "a234567890123-56"}, true},
		"2 bytes":                {Options{Instance: "ab"}, false},
		"17 bytes":               {Options{Instance: "a2345678901234567"}, false},
		"a digit first":          {Options{Instance: "1abc"}, false},
		"a hyphen first":         {Options{Instance: "-abc"}, false},
		"a hyphen last":          {Options{Instance: "abc-"}, false},
		"an underscore":          {Options{Instance: "a_b_c"}, false},
		"not ASCII":              {Options{Instance: "实例"}, false},
		"every sign of a key id": {Options{AccessKeyID: "STS.aZ09+/_-"}, true},
		"a key id with a space":  {Options{AccessKeyID: "a b"}, false},
		"a key id with a line":   {Options{AccessKeyID: "a\nb"}, false},
		"a secret":               {Options{AccessKeySecret: "aZ09+/=!~"}, true},
		"a secret with a space":  {Options{AccessKeySecret: "hidden words"}, false},
		"a secret not in ASCII":  {Options{AccessKeySecret: "hidden密"}, false},
	} {
		err := v.o.Check()
		if (err == nil) != v.ok || err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRequestIDsAreUniqueAlsoAfterARestart(t *testing.T) {
	seen := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			s := open(t, Options{})
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 100 {
						id := raw(s, "ListTable", nil, nil).header.Get(wire.HeaderRequestID)
						mu.Lock()
						if id == "" || seen[id] {
							t.Errorf("request id %q again", id)
						}
						seen[id] = true
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Millisecond) // of the bubble's clock: a restart takes longer than a microsecond
		}
	})
	conformance.Equal(t, len(seen), 800, "ids")
}
