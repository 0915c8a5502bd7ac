package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is the network between tsimport and a served store. It counts requests.
type proxy struct {
	*httptest.Server
	requests atomic.Int64
}

// answer is an answer of a store or of a trouble. A status of 0 cuts the connection.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// trouble is what a hostile network does with one request. Each call of forward forwards the request.
type trouble func(forward func() answer) answer

// troubledTimeout is the time-out of requests through a hostile network. It is short, so that late ones arrive soon. No
// request is applied later than troubledSettle after its time-out, even on a slow machine.
const (
	troubledTimeout = 700 * time.Millisecond
	troubledSettle  = 2 * time.Second
)

// startProxy starts a proxy that stops when the test ends. decide draws the trouble of a request; nil means none.
func startProxy(t testing.TB, s *served, decide func(operation string) trouble) *proxy {
	p, deciding := new(proxy), sync.Mutex{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		p.requests.Add(1)
		forward := func() answer {
			if time.Since(begun) > troubledTimeout+troubledSettle/2 {
				return page(http.StatusGatewayTimeout) // delayed by this machine: loads assume that the request is not applied
			}
			on, err := http.NewRequest(r.Method, s.URL+r.URL.Path, bytes.NewReader(body))
			if err != nil {
				panic(err)
			}
			on.Header, on.Host = r.Header, r.Host
			var text []byte
			res, err := http.DefaultTransport.RoundTrip(on)
			if err == nil {
				defer res.Body.Close()
				text, err = io.ReadAll(res.Body)
			}
			if err != nil {
				return page(http.StatusBadGateway)
			}
			return answer{res.StatusCode, res.Header, text}
		}
		act := trouble(func(forward func() answer) answer { return forward() })
		if decide != nil {
			deciding.Lock()
			if t := decide(path.Base(r.URL.Path)); t != nil {
				act = t
			}
			deciding.Unlock()
		}
		a := act(forward)
		if a.status == 0 {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), a.header)
		if w.Header().Get("Content-Length") == "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
		}
		w.WriteHeader(a.status)
		w.Write(a.body) // the receiver may be gone
		if w.Header().Get("Content-Length") != fmt.Sprint(len(a.body)) {
			panic(http.ErrAbortHandler) // in the middle of an answer
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func page(status int) answer {
	header := http.Header{"Content-Type": {"text/html"}}
	if status/100 == 3 {
		header.Set("Location", "http://127.0.0.1:1/elsewhere")
	}
	return answer{status, header, fmt.Appendf(nil, "<html><body>%s</body></html>\n", http.StatusText(status))}
}

func unsigned(forward func() answer) answer {
	a := forward()
	a.header.Del("Authorization")
	return a
}

// troubles returns a hostile network's faults by name. at, from 0 to 1, sets their place in an answer, and their delay.
func troubles(at float64) map[string]trouble {
	after := func(a answer) trouble { return func(forward func() answer) answer { forward(); return a } }
	before := func(a answer) trouble { return func(func() answer) answer { return a } }
	in := func(a answer) int { return int(at * float64(len(a.body))) }
	all := map[string]trouble{
		"cut before": before(answer{}),
		"cut after":  after(answer{}),
		"truncated": func(forward func() answer) answer {
			a := forward()
			if len(a.body) > 0 {
				a.header.Set("Content-Length", fmt.Sprint(len(a.body)))
				a.body = a.body[:in(a)]
			}
			return a
		},
		"late": func(forward func() answer) answer { // forwarded when the sender has given up
			time.Sleep(troubledTimeout + time.Duration(at*float64(troubledTimeout/2)))
			forward()
			return answer{}
		},
		"stalled": func(forward func() answer) answer {
			forward()
			time.Sleep(troubledTimeout + troubledTimeout/4)
			return answer{}
		},
		"flipped": func(forward func() answer) answer { // flips one bit
			a := forward()
			if len(a.body) > 0 {
				a.body[in(a)] ^= 1 << (int(at*8000) % 8)
			}
			return a
		},
		"garbage": after(answer{200, http.Header{}, []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 " +
			"SSH-2.0-OpenSSH_9.2\r\n\r\n")}),
		"unsigned": unsigned,
		"replayed": func(forward func() answer) answer { a := forward(); forward(); return a }, // like a retrying proxy
	}
	for _, status := range []int{301, 302, 303, 307, 308, 400, 403, 404, 408, 413, 421, 429, 431, 500, 502, 503, 504} {
		all[fmt.Sprint(status, " before")], all[fmt.Sprint(status, " after")] = before(page(status)), after(page(status))
	}
	return all
}

// drawTroubles gives one in four requests a trouble that is not excluded, up to most times.
func drawTroubles(seed uint64, most int, without ...string) func(operation string) trouble {
	rnd := rand.New(rand.NewPCG(seed, 1))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(troubles(0))),
		func(name string) bool { return slices.Contains(without, name) })
	described := false
	return func(operation string) trouble {
		first := operation == "DescribeTable" && !described // at the first request, a trouble looks like a wrong endpoint
		described = described || first
		if most == 0 || first || operation == "CreateTable" || rnd.IntN(4) > 0 {
			return nil
		}
		most--
		return troubles(rnd.Float64())[names[rnd.IntN(len(names))]]
	}
}
