package server

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

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
