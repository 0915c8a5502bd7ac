package client

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"tsimport/engine/server"
)

// The vendor's SDK sets the header by request; its enumeration begins with 0.
func TestAPriorityIsSentAndSignedAsTheSDKDoes(t *testing.T) {
	for name, priority := range map[string]tablestore.Priority{"low": tablestore.LOW, "normal": tablestore.NORMAL, "high": tablestore.HIGH} {
		request := &tablestore.DescribeTableRequest{TableName: "t"}
		var extension tablestore.RequestExtension
		extension.SetPriority(priority)
		request.SetRequestExtension(extension)
		if diff := signedUnlikeTheSDK(t, Target{Endpoint: "http://recorded", Instance: "i", AcceptUnsigned: true, Credentials: keys("secret"), Priority: name}, request); diff != "" {
			t.Errorf("%s (-SDK +ours):\n%s", name, diff)
		}
	}
}

func TestEveryTransportSendsThePriority(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	note := func(h http.Header) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, h.Get("x-ots-request-priority"))
	}
	s, err := server.Open("", server.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r.Header)
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	target := embedded(t, nil)
	inProcess := target.Transport
	for _, priority := range []string{"low", ""} {
		for _, network := range []bool{false, true} {
			target.Priority, target.Endpoint, target.Transport = priority, web.URL, nil
			if !network {
				target.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					note(r.Header)
					return inProcess.RoundTrip(r)
				})
			}
			one := sender(t, t.Context(), target)
			if _, err := one.Post("ListTable", text("")); err != nil {
				t.Errorf("priority %q, network %v: %v", priority, network, err)
			}
		}
	}
	if diff := cmp.Diff([]string{"0", "0", "", ""}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestAPriorityThatIsNoneIsRefused(t *testing.T) {
	target := embedded(t, nil)
	target.Priority = "urgent"
	if _, err := Connect(t.Context(), target, nil); err == nil {
		t.Error("no error")
	}
}
