package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync"
	"testing"
	"time"
)

// A trouble is what a hostileProxy does with one request. It returns the bytes to answer with, and whether the connection
// stays open after them. Forward sends the request on, as often as it is called, and returns the whole answer.
type trouble func(p *hostileProxy, forward func() []byte) (answer []byte, keep bool)

// hostileProxy stands between tsimport and a served store, as a bad network does. It reads and writes HTTP by itself: a
// library would hide what it is to do.
type hostileProxy struct {
	URL string

	server      string        // host:port of the store
	timeout     time.Duration // of the client's requests
	settle      time.Duration // after which no request may be applied any more; 0 is any time
	bandwidth   int           // bytes a second each way of a connection; 0 is unlimited
	connections int           // the most at a time, more are closed at once; 0 is unlimited
	// decide draws the trouble of the nth request (from 0) of an operation; nil is none.
	decide func(operation string, n int) trouble

	mu       sync.Mutex
	rnd      *rand.Rand
	requests map[string]int
	open     map[net.Conn]bool
	refused  int // connections closed because there were too many
	work     sync.WaitGroup
	listener net.Listener
}

// start begins to listen. At the end of the test nothing of the proxy runs.
func (p *hostileProxy) start(t testing.TB, server *served, seed uint64) {
	t.Helper()
	at, err := url.Parse(server.URL)
	must(t, err)
	p.server, p.rnd = at.Host, rand.New(rand.NewPCG(seed, 0))
	p.requests, p.open = map[string]int{}, map[net.Conn]bool{}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p.URL = "http://" + p.listener.Addr().String()
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close()
		p.mu.Lock()
		for c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.work.Wait()
	})
}

func (p *hostileProxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		full := p.connections > 0 && len(p.open) >= p.connections
		if full {
			p.refused++
		} else {
			p.open[c] = true
		}
		p.mu.Unlock()
		if full {
			c.Close()
			continue
		}
		p.work.Go(func() {
			p.serve(c)
			c.Close()
			p.mu.Lock()
			delete(p.open, c)
			p.mu.Unlock()
		})
	}
}

// serve takes the requests of a connection, one after the other.
func (p *hostileProxy) serve(c net.Conn) {
	r := bufio.NewReader(&slowReader{c, p.bandwidth})
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		begun := time.Now()
		act := p.next(path.Base(req.URL.Path))
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		answer, keep := act(p, func() []byte { return p.forward(req, body, begun) })
		if !p.write(c, answer) || !keep {
			return
		}
	}
}

func (p *hostileProxy) next(operation string) trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.requests[operation]
	p.requests[operation]++
	if act := p.decide(operation, n); act != nil {
		return act
	}
	return passOn
}

func (p *hostileProxy) write(c net.Conn, answer []byte) bool {
	for len(answer) > 0 {
		n := len(answer)
		if p.bandwidth > 0 {
			n = min(n, 1+p.bandwidth/20)
			time.Sleep(time.Duration(n) * time.Second / time.Duration(p.bandwidth)) // this is the slow line
		}
		if _, err := c.Write(answer[:n]); err != nil {
			return false
		}
		answer = answer[n:]
	}
	return true
}

// slowReader reads as fast as a slow line brings bytes.
type slowReader struct {
	io.Reader
	bandwidth int
}

func (r *slowReader) Read(b []byte) (int, error) {
	if r.bandwidth == 0 {
		return r.Reader.Read(b)
	}
	n, err := r.Reader.Read(b[:min(len(b), 1+r.bandwidth/20)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(r.bandwidth))
	return n, err
}

// forward sends a request to the store and returns its answer, head and body. One that this machine has held back for longer than
// settle allows is dropped: that nothing is applied later than that is what loads assume.
func (p *hostileProxy) forward(req *http.Request, body []byte, begun time.Time) []byte {
	if p.settle > 0 && time.Since(begun) > p.timeout+p.settle/2 {
		return page(504, "Gateway Timeout", "")
	}
	on := &http.Request{Method: req.Method, URL: &url.URL{Scheme: "http", Host: p.server, Path: req.URL.Path}, Host: req.Host,
		Header: req.Header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	res, err := http.DefaultTransport.RoundTrip(on)
	if err != nil {
		return page(502, "Bad Gateway", "")
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return page(502, "Bad Gateway", "")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n", res.Status)
	res.Header.Set("Content-Length", fmt.Sprint(len(answer)))
	res.Header.Write(&b) // into memory
	b.WriteString("\r\n")
	b.Write(answer)
	return b.Bytes()
}

// page is the answer of a proxy, which knows nothing of the protocol.
func page(status int, title, header string) []byte {
	html := fmt.Sprintf("<html><head><title>%d %s</title></head><body>%s</body></html>\n", status, title, title)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/html\r\n%sContent-Length: %d\r\n\r\n%s", status, title, header, len(html), html)
}

func passOn(p *hostileProxy, forward func() []byte) ([]byte, bool) { return forward(), true }

func cutBefore(p *hostileProxy, forward func() []byte) ([]byte, bool) { return nil, false }

func cutAfter(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	forward()
	return nil, false
}

// truncated sends the head and a part of the body of an answer.
func truncated(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	answer := forward()
	return answer[:p.between(1, len(answer))], false
}

// applyLate sends a request on when its sender has given it up.
func applyLate(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	time.Sleep(p.timeout + time.Duration(p.between(0, int(p.timeout/2)))) // this is the delay
	forward()
	return nil, false
}

// stalled sends a part of an answer and then nothing until its receiver has given up.
func stalled(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	forward()
	time.Sleep(p.timeout + p.timeout/4)
	return nil, false
}

// flipped turns one bit in the body of an answer.
func flipped(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	answer := forward()
	head := bytes.Index(answer, []byte("\r\n\r\n")) + 4
	if head < len(answer) {
		answer[p.between(head, len(answer))] ^= 1 << p.between(0, 8)
	}
	return answer, true
}

// replayed sends a request twice, as a proxy that tries again does, and gives the first answer.
func replayed(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	answer := forward()
	forward()
	return answer, true
}

func garbage(p *hostileProxy, forward func() []byte) ([]byte, bool) {
	forward()
	return []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 SSH-2.0-OpenSSH_9.2\r\n\r\n"), false
}

// answered gives a page of a proxy instead of the answer, before or after the request was applied.
func answered(status int, applied bool) trouble {
	return func(p *hostileProxy, forward func() []byte) ([]byte, bool) {
		if applied {
			forward()
		}
		header := ""
		if status/100 == 3 {
			header = "Location: http://127.0.0.1:1/elsewhere\r\n"
		}
		return page(status, http.StatusText(status), header), true
	}
}

// between draws a number from low to high - 1.
func (p *hostileProxy) between(low, high int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return low + p.rnd.IntN(high-low)
}
