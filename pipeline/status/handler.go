package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/tsimport/pipeline"
)

// Load is implemented by *pipeline.Monitor. State may block until ctx ends, and then returns an error.
type Load interface {
	State(ctx context.Context) (*pipeline.State, error)
}

// patience is how long a request waits for the load. A load that is writing answers at once.
const patience = time.Second

// Errors that say why there is no state.
var (
	errNotBegun = errors.New("the load has not started writing yet")
	errEnding   = errors.New("the load no longer answers; it is ending")
)

const frontPage = `tsimport is loading.

/status   the state of the load as JSON
/metrics  the same as metrics for Prometheus
`

type handler struct {
	load    Load
	process *prometheus.Registry // metrics of the Go runtime and the process
	begun   atomic.Bool          // the load has answered once
}

// Handler returns a handler for /, /status and /metrics.
func Handler(load Load) http.Handler {
	h := &handler{load: load, process: prometheus.NewRegistry()}
	h.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, frontPage)
	})
	mux.HandleFunc("GET /status", h.status)
	mux.HandleFunc("GET /metrics", h.metrics)
	return mux
}

// state requests the load's state, and waits at most patience for it.
func (h *handler) state(ctx context.Context) (*pipeline.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := h.load.State(ctx)
	switch {
	case err == nil:
		h.begun.Store(true)
		return s, nil
	case h.begun.Load():
		return nil, errEnding
	}
	return nil, errNotBegun
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	s, err := h.state(r.Context())
	if err != nil {
		answer(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
		return
	}
	answer(w, http.StatusOK, s)
}

func answer(w http.ResponseWriter, code int, value any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		code = http.StatusInternalServerError
		text.Reset()
		fmt.Fprintf(&text, "{\"error\":%q}\n", "show the state as JSON: "+err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // it does not matter if a client does not read the answer
}

// metrics answers even without a state, to show that the process is alive and what it uses.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request) {
	s, _ := h.state(r.Context()) // nil after an error
	load := prometheus.NewRegistry()
	load.MustRegister(collector{s})
	all := prometheus.Gatherers{load, h.process}
	promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}
