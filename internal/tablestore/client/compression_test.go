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

	"tsimport/engine/faults"
	"tsimport/engine/server"
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
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := s.Post("BatchWriteRow", text(body)); err != nil {
			t.Fatal(err)
		}
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

// A service that does not know compression must not have rows rejected for it.
func TestARefusalOfTheFirstCompressedRequestIsNotOneOfItsRows(t *testing.T) {
	for _, code := range []string{"OTSParameterInvalid", "OTSAuthFailed", "OTSUnsupportedOperation"} {
		var seen []seenBody
		s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Compress: CompressOn, Transport: noting(&seen, func(b *seenBody) *http.Response {
			if b.kind != "" {
				return refusing(400, code)
			}
			return nil
		})})
		for i := range 3 {
			if _, err := s.Post("BatchWriteRow", text(compressible(i, 10_000))); err != nil {
				t.Errorf("%s: %v", code, err)
			}
		}
		if len(seen) != 4 || seen[0].kind == "" || seen[1].kind != "" || seen[1].plain(t) != seen[0].plain(t) || seen[3].kind != "" {
			t.Errorf("%s: %d requests", code, len(seen))
		}
	}
}

func TestARefusalAfterACompressedRequestWasTakenIsTheRequests(t *testing.T) {
	var seen []seenBody
	s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Compress: CompressOn, Transport: noting(&seen, func(b *seenBody) *http.Response {
		if len(seen) > 1 {
			return refusing(400, "OTSParameterInvalid")
		}
		return nil
	})})
	for i, want := range []bool{true, false} {
		if _, err := s.Post("BatchWriteRow", text(compressible(i, 10_000))); (err == nil) != want {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d requests", len(seen))
	}
}

// What may have been applied is not sent again by the sender, but the next request is plain.
func TestAnOpenOutcomeOfTheFirstCompressedRequestIsNotRepeated(t *testing.T) {
	var seen []seenBody
	s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Compress: CompressOn, Transport: noting(&seen, func(b *seenBody) *http.Response {
		if b.kind != "" {
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString("<html>bad request</html>"))}
		}
		return nil
	})})
	if _, err := s.Post("BatchWriteRow", text(compressible(0, 10_000))); !Classify(err).Open() || len(seen) != 1 {
		t.Errorf("%v after %d requests", err, len(seen))
	}
	if _, err := s.Post("BatchWriteRow", text(compressible(1, 10_000))); err != nil || len(seen) != 2 {
		t.Errorf("%v after %d requests", err, len(seen))
	}
}

func TestTheEngineTakesCompressedRequestsOverBothTransports(t *testing.T) {
	store, err := server.Open("", server.Options{InMemory: true, Faults: new(faults.Plan)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
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
