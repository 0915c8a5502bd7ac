package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pieces is an answer whose bytes come in one after the other, each after a pause.
type pieces struct {
	ctx   context.Context
	text  string
	pause time.Duration
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	select {
	case <-time.After(p.pause):
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
	n := copy(b[:1], p.text)
	p.text = p.text[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// slowly answers so.
type slowly time.Duration

func (pause slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: &pieces{r.Context(), "answer", time.Duration(pause)}}, nil
}

func TestAnAnswerThatComesInSlowlyIsReadToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		pause  time.Duration
		stalls bool
	}{"slow": {900 * time.Millisecond, false}, "stalled": {1100 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &transport{base: slowly(c.pause), run: t.Context(), timeout: time.Second, keys: &signedWith{CredentialsProvider: keys("s")}, accept: true, traffic: new(Traffic)}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service/ListTable", http.NoBody)
				must(t, err)
				began := time.Now()
				res, err := to.RoundTrip(r)
				took := time.Since(began)
				if c.stalls {
					if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nothing came in for 1s") || took != time.Second {
						t.Errorf("%v after %v", err, took)
					}
					return
				}
				if err != nil || took != 6*c.pause {
					t.Fatalf("%v after %v", err, took)
				}
				if body, err := io.ReadAll(res.Body); string(body) != "answer" || err != nil {
					t.Errorf("%q, %v", body, err)
				}
			})
		})
	}
}

// whole takes the body of a request as an engine in the same process does.
type whole struct{ pieces [][]byte }

func (w *whole) Write(p []byte) (int, error) {
	w.pieces = append(w.pieces, p)
	return len(p), nil
}

func TestABodyIsHandedOverInOnePieceWithoutACopy(t *testing.T) {
	sent := []byte("rows of a request")
	told := 0
	b := &requestBody{rest: sent, progress: func() { told++ }}
	if n, err := io.ReadFull(b, make([]byte, 4)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	var to whole
	for range 2 {
		_, err := b.WriteTo(&to)
		must(t, err)
	}
	if len(to.pieces) != 1 || &to.pieces[0][0] != &sent[4] || len(to.pieces[0]) != len(sent)-4 || told != 2 {
		t.Errorf("%q, progress %d times", to.pieces, told)
	}
	if n, err := b.Read(make([]byte, 4)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes more, %v", n, err)
	}
}
