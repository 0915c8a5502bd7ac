package client

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/klauspost/compress/zlib"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
)

// seenBody is a request as it came: its body as it was sent, and what it says that it was before.
type seenBody struct {
	kind, size string
	sent       []byte
}

func (b *seenBody) plain(t *testing.T) string {
	t.Helper()
	if b.kind == "" {
		return string(b.sent)
	}
	r, err := zlib.NewReader(bytes.NewReader(b.sent))
	must(t, err)
	text, err := io.ReadAll(r)
	if err != nil || strconv.Itoa(len(text)) != b.size || b.kind != "deflate" {
		t.Errorf("%d bytes, said to be %s of %q; %v", len(text), b.size, b.kind, err)
	}
	return string(text)
}

// noting is a transport that notes bodies and answers as answer says; nil is a success.
func noting(seen *[]seenBody, answer func(b *seenBody) *http.Response) roundTrip {
	var mu sync.Mutex
	return func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		b := seenBody{r.Header.Get("x-ots-request-compress-type"), r.Header.Get("x-ots-request-compress-size"), body}
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, b)
		if answer != nil {
			if res := answer(&b); res != nil {
				return res, nil
			}
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	}
}

func refusing(status int, code string) *http.Response {
	message := append([]byte{0x0a, byte(len(code))}, code...)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(message))}
}

// compressible is a body of so many bytes, of which no two are alike.
func compressible(i, size int) string {
	return fmt.Sprintf("%08d%s", i, bytes.Repeat([]byte("abcd "), size/5))
}

func TestCompressedBodiesAreTheBodies(t *testing.T) {
	var seen []seenBody
	s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Compress: CompressOn, Transport: noting(&seen, nil)})
	noise := make([]byte, 100_000)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var want []string
	for i, size := range []int{0, 1000, 1 << 20, 2000, 4 << 20, 70_000, 100} {
		want = append(want, compressible(i, size), string(noise))
	}
	for _, body := range want {
		_, err := s.Post("BatchWriteRow", text(body))
		must(t, err)
	}
	for i, b := range seen {
		if got := b.plain(t); got != want[i] {
			t.Errorf("body %d is another: %d bytes, want %d", i, len(got), len(want[i]))
		}
		if packed := i%2 == 0 && len(want[i]) >= leastCompressed; packed != (b.kind != "") {
			t.Errorf("body %d of %d bytes: compressed %q", i, len(want[i]), b.kind)
		}
	}
}

func TestNothingIsCompressedUnlessItIsAskedFor(t *testing.T) {
	for _, mode := range []string{"", CompressOff} {
		var seen []seenBody
		s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Compress: mode, Transport: noting(&seen, nil)})
		if _, err := s.Post("BatchWriteRow", text(compressible(0, 10_000))); err != nil || seen[0].kind != "" {
			t.Errorf("%q: %q, %v", mode, seen[0].kind, err)
		}
	}
	if _, err := Connect(t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Compress: "zip"}, nil); err == nil {
		t.Error("an unknown mode is taken")
	}
}

func TestTheEngineTakesCompressedRequestsOverBothTransports(t *testing.T) {
	store := engine(t, server.Options{Faults: new(faults.Plan)})
	web := httptest.NewServer(store)
	defer web.Close()
	target := embedded(t, nil)
	target.Compress = CompressOn
	for _, network := range []bool{false, true} {
		if target.Transport = store.Transport(); network {
			target.Endpoint, target.Transport = web.URL, nil
		}
		// ListTable passes over what it does not know: field 99, of many bytes.
		body := append([]byte{0x9a, 0x06, 0x88, 0x27}, bytes.Repeat([]byte("abcde"), 1000)...)
		if _, err := sender(t, t.Context(), target).Post("ListTable", text(string(body))); err != nil {
			t.Errorf("network %v: %v", network, err)
		}
	}
}

// A service that does not know compression must not have rows rejected for it; what may have been applied is not sent again by the sender,
// but the next request is plain.
func TestARefusalOfTheFirstCompressedRequestIsNotOneOfItsRows(t *testing.T) {
	page := func() *http.Response {
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString("<html>bad request</html>"))}
	}
	refused := func(code string) func() *http.Response { return func() *http.Response { return refusing(400, code) } }
	for name, tt := range map[string]struct {
		refusal func() *http.Response
		taken   int    // compressed requests before it
		sent    string // C is compressed, p is plain
		errs    string // o is open, x is another error, - is none
	}{
		"parameter":           {refused("OTSParameterInvalid"), 0, "Cppp", "---"},
		"keys":                {refused("OTSAuthFailed"), 0, "Cppp", "---"},
		"operation":           {refused("OTSUnsupportedOperation"), 0, "Cppp", "---"},
		"an open outcome":     {page, 0, "Cpp", "o--"},
		"after one was taken": {refused("OTSParameterInvalid"), 1, "CCC", "-xx"},
	} {
		var seen []seenBody
		target := unsignedAt("http://x")
		target.Compress, target.Transport = CompressOn, noting(&seen, func(b *seenBody) *http.Response {
			if b.kind != "" && len(seen) > tt.taken {
				return tt.refusal()
			}
			return nil
		})
		s := sender(t, t.Context(), target)
		sent, errs := "", ""
		for i := range 3 {
			_, err := s.Post("BatchWriteRow", text(compressible(i, 10_000)))
			switch {
			case err == nil:
				errs += "-"
			case Classify(err).Open():
				errs += "o"
			default:
				errs += "x"
			}
		}
		for i, b := range seen {
			sent += map[bool]string{true: "C", false: "p"}[b.kind != ""]
			if body := compressible(i+3-len(seen), 10_000); i > 0 && b.plain(t) != body {
				t.Errorf("%s: request %d has another body", name, i)
			}
		}
		if sent != tt.sent || errs != tt.errs || seen[0].plain(t) != compressible(0, 10_000) {
			t.Errorf("%s: sent %s, errors %s; want %s, %s", name, sent, errs, tt.sent, tt.errs)
		}
	}
}
