package server

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tsimport/engine/wire"
)

func TestRequestsThatAreNotProvenAreRefused(t *testing.T) {
	at := &clock{time.Date(2024, 12, 31, 23, 59, 59, 0, time.UTC)}
	s := open(t, Options{Now: at.now})
	for name, v := range map[string]struct {
		change func(http.Header)
		status int
		want   string
	}{
		"as it should be":    {nil, 200, ""},
		"Go's date":          {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59.123111Z") }, 200, ""},
		"no fraction":        {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59Z") }, 200, ""},
		"a token":            {func(h http.Header) { h.Set("x-ots-ststoken", "T") }, 200, ""},
		"15 minutes ahead":   {func(h http.Header) { h.Set(wire.HeaderDate, "2025-01-01T00:14:59.000Z") }, 200, ""},
		"more than that":     {func(h http.Header) { h.Set(wire.HeaderDate, "2025-01-01T00:15:00.000Z") }, 403, "Mismatch between system time and x-ots-date: 2025-01-01T00:15:00.000Z."},
		"15 minutes behind":  {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:44:59.000Z") }, 200, ""},
		"later than that":    {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:44:58.999Z") }, 403, "Mismatch between system time and x-ots-date: 2024-12-31T23:44:58.999Z."},
		"nine digits":        {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59.123456789Z") }, 200, ""},
		"ten digits":         {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59.1234567890Z") }, 400, "Invalid date format: 2024-12-31T23:59:59.1234567890Z."},
		"a fraction of none": {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59.Z") }, 400, "Invalid date format"},
		"a comma":            {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59,123Z") }, 400, "Invalid date format"},
		"a sign":             {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59.+12Z") }, 400, "Invalid date format"},
		"another zone":       {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-31T23:59:59+00:00") }, 400, "Invalid date format"},
		"no such day":        {func(h http.Header) { h.Set(wire.HeaderDate, "2024-12-32T23:59:59.000Z") }, 400, "Invalid date format"},
		"only a Z":           {func(h http.Header) { h.Set(wire.HeaderDate, "Z") }, 400, "Invalid date format: Z."},
		"no key id":          {func(h http.Header) { h.Del(wire.HeaderAccessKeyID) }, 400, "Missing header: x-ots-accesskeyid."},
		"no instance":        {func(h http.Header) { h.Del(wire.HeaderInstance) }, 400, "Missing header: x-ots-instancename."},
		"no version":         {func(h http.Header) { h.Del(wire.HeaderAPIVersion) }, 400, "Missing header: x-ots-apiversion."},
		"no date":            {func(h http.Header) { h.Del(wire.HeaderDate) }, 400, "Missing header: x-ots-date."},
		"a bad date":         {func(h http.Header) { h.Set(wire.HeaderDate, "yesterday") }, 400, "Invalid date format: yesterday."},
		"no MD5":             {func(h http.Header) { h.Del(wire.HeaderMD5) }, 400, "Missing header: x-ots-contentmd5."},
		"a wrong MD5":        {func(h http.Header) { h.Set(wire.HeaderMD5, "1B2M2Y8AsgTpgAmY7PhCfA==") }, 403, "Mismatch between MD5 value"},
		"a stranger":         {func(h http.Header) { h.Set(wire.HeaderAccessKeyID, "nobody") }, 403, "The AccessKeyID does not exist."},
		"another instance":   {func(h http.Header) { h.Set(wire.HeaderInstance, "other") }, 403, "The instance is not found."},
		"a wrong signature":  {func(h http.Header) { h.Set(wire.HeaderSignature, "xxx") }, 403, "Signature mismatch."},
		"another version":    {func(h http.Header) { h.Set(wire.HeaderAPIVersion, "2014-08-08") }, 400, "Unsupported API version"},
		"V4 without a day":   {func(h http.Header) { h.Set(wire.HeaderSignatureV4, "xxx") }, 400, "Missing header: x-ots-signdate."},
		"V4 without region":  {func(h http.Header) { h.Set(wire.HeaderSignatureV4, "xxx"); h.Set(wire.HeaderSignDate, "20241231") }, 400, "Missing header: x-ots-signregion."},
		"V4 of no day":       {func(h http.Header) { v4(h); h.Set(wire.HeaderSignDate, "20241232") }, 400, "Invalid date format: 20241232."},
		"V4 of another day":  {func(h http.Header) { v4(h); h.Set(wire.HeaderSignDate, "20241230") }, 403, "Signature mismatch."},
		"V4 elsewhere":       {func(h http.Header) { v4(h); h.Set(wire.HeaderSignRegion, "cn-beijing") }, 403, "Signature mismatch."},
		"V2 beside V4":       {func(h http.Header) { v4(h); h.Set(wire.HeaderSignature, "xxx") }, 200, ""},
		"V4 wrongly signed":  {func(h http.Header) { v4(h); h.Set(wire.HeaderSignatureV4, "xxx") }, 403, "Signature mismatch."},
		"V4 rightly signed":  {v4, 200, ""},
		"a low priority":     {func(h http.Header) { h.Set(wire.HeaderPriority, "0") }, 200, ""},
		"a high priority":    {func(h http.Header) { h.Set(wire.HeaderPriority, "2") }, 200, ""},
		"an odd priority":    {func(h http.Header) { h.Set(wire.HeaderPriority, "3") }, 400, "Invalid request priority: 3."},
		"an odd compression": {func(h http.Header) { h.Set(wire.HeaderRequestCompress, "gzip") }, 400, "Unsupported compress type"},
	} {
		a := raw(s, "ListTable", nil, v.change)
		if a.status != v.status || !strings.Contains(string(a.body), v.want) {
			t.Errorf("%s: %d %q", name, a.status, a.body)
		}
		if signed := a.header.Get("Authorization") != ""; signed != (name != "a stranger" && name != "no key id") {
			t.Errorf("%s: Authorization %q", name, a.header.Get("Authorization"))
		}
	}
}

func v4(h http.Header) {
	h.Set(wire.HeaderSignDate, "20241231")
	h.Set(wire.HeaderSignRegion, "cn-hangzhou")
	derived := wire.DeriveKeyV4(DefaultAccessKeySecret, "20241231", "cn-hangzhou")
	h.Set(wire.HeaderSignatureV4, wire.SignV4(derived, "/ListTable", h))
}

func TestAnswersAreSignedAndMeasured(t *testing.T) {
	s := open(t, Options{})
	for _, op := range []string{"ListTable", "DescribeTable", "NoSuchThing", "SQLQuery"} {
		a := raw(s, op, nil, nil)
		want := "OTS " + DefaultAccessKeyID + ":" + wire.SignResponse(DefaultAccessKeySecret, "/"+op, a.header)
		if a.header.Get("Authorization") != want || a.header.Get(wire.HeaderMD5) != md5Text(a.body) || a.header.Get(wire.HeaderRequestID) == "" {
			t.Errorf("%s: %v", op, a.header)
		}
	}
}

func TestUnknownAndUnimplementedOperationsGetDifferentErrors(t *testing.T) {
	s := open(t, Options{})
	if a := raw(s, "Nonsense", nil, nil); a.status != 400 || !strings.Contains(string(a.body), "Unsupported operation: Nonsense.") {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a := raw(s, "tunnel/create", nil, nil); a.status != 400 || !strings.Contains(string(a.body), "OTSUnsupportedOperation") {
		t.Errorf("%d %q", a.status, a.body)
	}
	r := signed(s, "ListTable", nil)
	r.Method = http.MethodGet
	if resp, err := s.Transport().RoundTrip(r); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Error(resp, err)
	}
}

func TestABodyOfFiveMegabytesIsTheLimit(t *testing.T) {
	s := open(t, Options{})
	for n, want := range map[int]int{wire.MaxBodyBytes: 400, wire.MaxBodyBytes + 1: 413} {
		resp, err := s.Transport().RoundTrip(signed(s, "PutRow", make([]byte, n)))
		if err != nil || resp.StatusCode != want {
			t.Error(n, resp, err)
		}
	}
}

func TestBodiesAreDeflatedBothWays(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t1", 1)
	body := deflate([]byte("\n\x02t1"))
	compressed := func(size string) *answer {
		return raw(s, "DescribeTable", body, func(h http.Header) {
			h.Set(wire.HeaderRequestCompress, "deflate")
			h.Set(wire.HeaderRequestSize, size)
			h.Set(wire.HeaderResponseCompress, "deflate")
		})
	}
	a := compressed("4")
	if a.status != 200 || a.header.Get(wire.HeaderResponseCompress) != "deflate" || a.header.Get(wire.HeaderMD5) != md5Text(a.body) {
		t.Fatalf("%d %v", a.status, a.header)
	}
	for _, size := range []string{"3", "5", "-1", "x", ""} {
		if a := compressed(size); a.status != 400 {
			t.Errorf("size %q: %d", size, a.status)
		}
	}
	if a := compressed("5242881"); a.status != 413 {
		t.Error(a.status)
	}
}

// A stream that holds more than it says is not inflated beyond that.
func TestABodyThatDoesNotInflateToItsSizeIsRefused(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t1", 1)
	whole := deflate([]byte("\n\x02t1"))
	bomb := deflate(make([]byte, 200<<20))
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
		"not compressed":                {[]byte("\n\x02t1"), 4, 400},
		"a bomb that says a little":     {bomb, 100, 400},
		"a bomb that says the most":     {bomb, wire.MaxBodyBytes, 400},
		"a bomb that says what it is":   {bomb, 200 << 20, 413},
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
		if a.status != tt.want {
			t.Errorf("%s: %d, want %d", name, a.status, tt.want)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 40<<20 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}
