package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// DefaultRequestTimeout is how long a request waits for progress: for each piece to be sent, then for the response.
const DefaultRequestTimeout = 30 * time.Second

// Target is one Tablestore instance.
type Target struct {
	Endpoint    string // http(s)://host[:port], no path
	Instance    string
	Credentials common.CredentialsProvider // asked for every request, because keys rotate
	// Transport, if not nil, replaces the network, for a store in the same process.
	Transport http.RoundTripper
	// AcceptUnsigned accepts responses whose signature a proxy removed, except responses to destructive operations.
	AcceptUnsigned bool
	// KeyPatience is how long requests are retried if keys that were accepted before are refused; 0 means not at all.
	KeyPatience time.Duration
	// Compress is CompressOff (or "") or CompressOn. It applies to a Connection; the SDK's client never compresses.
	Compress string
	// RequestTimeout is how long a request waits for progress; 0 means DefaultRequestTimeout.
	RequestTimeout time.Duration
	// Connections limits the connections of a Connection (0: no limit) and the idle ones of the SDK's client (0: 64).
	Connections int
}

// Traffic counts responses and bytes on the wire. It is safe for concurrent use.
type Traffic struct {
	BytesSent atomic.Int64 // bytes of request bodies
	Checked   atomic.Int64 // successful responses with a correct checksum
	Unchecked atomic.Int64 // successful responses without a checksum, from an endpoint that never sent one
	Replayed  atomic.Int64 // responses that had been received before, for another request
	Clock     Clock        // the service's clock, according to its responses

	proven       atomic.Bool  // a response had a valid signature
	refusedSince atomic.Int64 // first unsigned refusal of keys since a signed response, in ns since 1970; 0 if none

	answers recent
}

// New makes the SDK's client for the target. When ctx ends, all requests in flight end with it. The SDK's retries are
// off, because it would retry writes that may have been applied, ignore ctx and hide throttling.
func New(ctx context.Context, t Target, traffic *Traffic) (*tablestore.TableStoreClient, error) {
	if err := t.complete(); err != nil {
		return nil, err
	}
	traffic = cmp.Or(traffic, new(Traffic))
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	config.HTTPTimeout.RequestTimeout = LongestRequest(t.RequestTimeout) // transport ends one without progress earlier
	asked := &signedWith{CredentialsProvider: t.Credentials}
	config.Transport = &transport{base: t.Transport, run: ctx, timeout: t.RequestTimeout, keys: asked, traffic: traffic,
		access: access{credentials: t.Credentials, patience: t.KeyPatience}, accept: t.AcceptUnsigned,
		sameMemory: sameMemory(t.Transport)}
	if t.Transport == nil {
		config.Transport.(*transport).base = &renewed{make: func() *http.Transport { return network(t) }}
	}
	return tablestore.NewClientWithCredentialsProvider(t.Endpoint, t.Instance, asked, config), nil
}

// sameMemory reports whether a transport passes bodies within this process, so that they need no MD5.
func sameMemory(t http.RoundTripper) bool {
	s, ok := t.(interface{ SameMemory() bool })
	return ok && s.SameMemory()
}

// complete checks the target and fills in defaults.
func (t *Target) complete() error {
	t.Endpoint = strings.TrimRight(t.Endpoint, "/")
	if err := CheckEndpoint(t.Endpoint); err != nil {
		return err
	}
	if t.Instance == "" {
		return errors.New("no instance: give --instance or set TABLESTORE_INSTANCE")
	}
	if err := checkCompress(t.Compress); err != nil {
		return err
	}
	t.RequestTimeout = cmp.Or(t.RequestTimeout, DefaultRequestTimeout)
	t.Connections = cmp.Or(t.Connections, 64)
	return nil
}

// CheckEndpoint returns an error if the endpoint is invalid. It does not repeat an endpoint that may contain a secret.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(strings.TrimRight(endpoint, "/"))
	switch {
	case err != nil:
		return errors.New("endpoint: not a URL; want http(s)://host or http(s)://host:port")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint: want only http(s)://host or http(s)://host:port; access keys come from the environment")
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "":
		return fmt.Errorf("endpoint %q: want http(s)://host or http(s)://host:port", endpoint)
	}
	return nil
}

func network(t Target) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
		MaxIdleConnsPerHost:   t.Connections,
		IdleConnTimeout:       idleTimeout,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: t.RequestTimeout,
		DisableCompression:    true,
		WriteBufferSize:       64 << 10,
	}
}

func dial(ctx context.Context, kind, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext(ctx, kind, address)
	if err == nil {
		keepUnsentLow(c)
	}
	return c, err
}

// renewed is a network that renews its connections. The SDK's client would never replace a busy connection.
type renewed struct {
	make func() *http.Transport

	mu    sync.Mutex
	now   *http.Transport
	until time.Time
}

func (n *renewed) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	if time.Now().After(n.until) {
		if n.now != nil {
			n.now.CloseIdleConnections() // busy ones close after they have been idle for a while
		}
		n.now, n.until = n.make(), time.Now().Add(linkAge)
	}
	base := n.now
	n.mu.Unlock()
	return base.RoundTrip(r)
}

// transport ties every request to the run's context and checks every response; the SDK can do neither. It removes the
// address of a redirect, so that the redirect is not followed.
type transport struct {
	base       http.RoundTripper
	run        context.Context
	timeout    time.Duration // the maximum time without received bytes
	keys       *signedWith
	traffic    *Traffic
	access     access
	accept     bool // accepts responses without a signature
	sameMemory bool
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.GetBody != nil && repeatable[r.URL.Path] {
		return t.hedged(r)
	}
	return t.once(r)
}

func (t *transport) once(r *http.Request) (*http.Response, error) {
	t.traffic.BytesSent.Add(max(r.ContentLength, 0))
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(t.run, func() { cancel(context.Cause(t.run)) })()
	stalled := time.AfterFunc(t.timeout, func() { cancel(context.DeadlineExceeded) })
	defer stalled.Stop()
	sent := time.Now()
	res, err := t.base.RoundTrip(r.WithContext(ctx))
	if err == nil {
		received := time.Now()
		res.Body = &progress{res.Body, func() { stalled.Reset(t.timeout) }}
		if res, err = t.read(r, res); err == nil {
			t.traffic.Clock.Answered(res.Header, sent, received)
		}
	}
	if err != nil && t.run.Err() != nil {
		// The run was stopped, so the connection's error does not matter.
		return nil, &stopped{context.Cause(t.run)}
	}
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return nil, fmt.Errorf("no data arrived for %v: %w", t.timeout, context.DeadlineExceeded)
	}
	return res, err
}

// progress is a response's body that reports every received piece.
type progress struct {
	io.ReadCloser
	came func()
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if n > 0 {
		p.came()
	}
	return n, err
}

// read reads and checks the response, and returns it with its body in memory.
func (t *transport) read(r *http.Request, res *http.Response) (*http.Response, error) {
	p := pageFor(r)
	var memory []byte
	if p != nil {
		memory = p.body[:0]
	}
	body, err := t.traffic.receive(memory, r.URL.Path, t.keys.keysOf(r.Header), t.accept, res, t.sameMemory)
	switch success := res.StatusCode >= 200 && res.StatusCode < 300; {
	case err == nil && success:
		if p != nil {
			p.body = body
			body, err = p.take(body)
		} else {
			err = checkRows(r.URL.Path, body)
		}
		if err == nil {
			err = t.access.seen(r.URL.Path, nil)
		}
	case err == nil:
		if passing := new(keysRefused); errors.As(t.access.seen(r.URL.Path,
			refusal(res.StatusCode, body, res.Header.Get(headerRequestID))), &passing) {
			err = passing // the SDK decodes other refusals
		}
	}
	if err != nil {
		t.access.unsigned(err)
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	record(r, res)
	return res, nil
}
