package client

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/internal/table"
)

// shared says that it hands bodies over in the same memory.
type shared struct{ http.RoundTripper }

func (shared) SameMemory() bool { return true }

func TestInTheSameMemoryNoMD5IsMadeOfABody(t *testing.T) {
	flips := false
	plan := &faults.Plan{Only: func(operation string) bool { return operation == "DescribeTable" }, Decide: func(faults.Request) (f faults.Fault) {
		if flips {
			f = faults.Fault{Action: faults.FlipBit, Bit: 9}
		}
		return f
	}}
	s := engine(t, server.Options{Faults: plan})
	target := Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Credentials: keys(server.DefaultAccessKeySecret),
		Transport: shared{roundTrip(func(r *http.Request) (*http.Response, error) {
			res, err := s.SameMemory().RoundTrip(r)
			if err == nil && res.Header.Get(headerMD5) != "" {
				t.Errorf("an answer to %s has an MD5", r.URL.Path)
			}
			return res, err
		})},
	}
	traffic := new(Traffic)
	connection, err := Connect(context.Background(), target, traffic)
	must(t, err)
	must(t, admin(t, target).Create("t", stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1}))
	if _, err := connection.Sender().Post("DescribeTable", text("\n\x01t")); err != nil {
		t.Error(err)
	}
	if checked, unchecked := traffic.Checked.Load(), traffic.Unchecked.Load(); checked != 0 || unchecked != 0 {
		t.Errorf("%d answers checked, %d not", checked, unchecked)
	}
	target.Transport = shared{s.Transport()}
	for transport, err := range describe(t, target) {
		if refused := transport == "our connection"; (err != nil) != refused { // the SDK makes an MD5 in any case
			t.Errorf("%s, to a server that compares: %v", transport, err)
		}
	}
	flips, target.Transport = true, s.SameMemory()
	for transport, err := range describe(t, target) {
		if !errors.Is(err, errChecksum) {
			t.Errorf("%s, with a bit flipped: %v", transport, err)
		}
	}
}
