package enginetest

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/wire"
)

// Engine is a running Tablestore. It is safe for concurrent use.
type Engine struct {
	URL, Instance, AccessKeyID, AccessKeySecret string

	server *server.Server
}

// Start starts an engine that stops when the test ends. An error fails the test. The engine leaves nothing on disk.
func Start(t testing.TB) *Engine {
	t.Helper()
	s, err := server.Open("", server.Options{InMemory: true, Log: log.New(io.Discard, "", 0)})
	if err != nil {
		t.Fatalf("start an engine: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Close()
		t.Fatalf("start an engine: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeListener(ctx, l, server.Limits{}) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("stop the engine: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("stop the engine: %v", err)
		}
	})
	return &Engine{
		URL: fmt.Sprintf("http://%s", l.Addr()), Instance: server.DefaultInstance,
		AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret, server: s,
	}
}

// Sign makes body the body of res, and sets the checksum and signature that the engine would send with it.
func Sign(res *http.Response, path string, body []byte) *http.Response {
	sum := md5.Sum(body)
	res.Header.Set(wire.HeaderMD5, base64.StdEncoding.EncodeToString(sum[:]))
	res.Header.Set("Authorization", "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse(server.DefaultAccessKeySecret,
		path, res.Header))
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res
}

// Client returns a client of the official SDK with default settings.
func (e *Engine) Client() *tablestore.TableStoreClient {
	return tablestore.NewClient(e.URL, e.Instance, e.AccessKeyID, e.AccessKeySecret)
}

// Reset deletes all tables and resets the clock.
func (e *Engine) Reset(t testing.TB) {
	t.Helper()
	if err := e.server.Reset(context.Background()); err != nil {
		t.Fatalf("reset the engine: %v", err)
	}
}

// Advance moves the clock of timestamps, time to live and deviation forward. Requests still need the real date.
func (e *Engine) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	if err := e.server.Advance(d); err != nil {
		t.Fatal(err)
	}
}

func (e *Engine) Now() time.Time { return e.server.Now() }
