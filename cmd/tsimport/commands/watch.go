package commands

import (
	"context"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/status"
)

// stateWait limits the wait for a load's state. A load that is writing responds at once.
const stateWait = time.Second

// stateSource provides the state of a load, as *pipeline.Monitor does.
type stateSource interface {
	State(ctx context.Context) (*pipeline.State, error)
}

// signalHelp returns a help text with the signal that requests the state, or "" if there is none.
func signalHelp() string {
	if len(stateSignals) == 0 {
		return ""
	}
	return "\nSIGUSR1 shows the state of a running load on stderr, partition by partition."
}

// watchLoad serves the state of a running load, by signals and over HTTP, until stop is called.
func watchLoad(c *call, w *pipeline.Watch) (stop func(), err error) {
	w.Monitor = pipeline.NewMonitor()
	// Signals are handled before the address is shown, because its reader may send one at once.
	stopSignals := onStateSignals(w.Monitor, c.show)
	stopServing, err := serveStatus(c, w.Monitor)
	if err != nil {
		stopSignals()
		return nil, err
	}
	return func() { stopSignals(); stopServing() }, nil
}

// onStateSignals shows the state on each signal until stop is called, or that the load does not write yet.
func onStateSignals(load stateSource, show *display) (stop func()) {
	if len(stateSignals) == 0 {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, stateSignals...)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		begun := false
		for {
			select {
			case <-signals:
				begun = showState(ctx, load, show, begun)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(signals) // the runtime ignores these signals from here on
		cancel()
		done.Wait()
	}
}

// showState shows the state, or why there is none. begun tells it, and the result reports, whether there has been one.
func showState(ctx context.Context, load stateSource, show *display, begun bool) bool {
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	s, err := load.State(ctx)
	switch {
	case err == nil:
		_ = writeState(show, s) // an unread display does not stop a load
		return true
	case begun:
		show.say.Line("the load is ending")
	default:
		show.say.Line("the load has not started writing yet")
	}
	return begun
}

// serveStatus serves the load at the address of --status, if given, until stop is called.
func serveStatus(c *call, load stateSource) (stop func(), err error) {
	if !c.given.IsSet("status") {
		return func() {}, nil
	}
	address := c.of.Status
	if address == "" {
		// The system would choose an unpredictable port, open to all machines.
		return nil, usagef(`--status "": give an address of this machine, such as 127.0.0.1:0`)
	}
	server, err := status.Listen(address, load)
	if err != nil {
		return nil, usagef("--status %s: %v; give an address of this machine whose port is free, such as 127.0.0.1:0",
			address, client.OneLine(err.Error()))
	}
	// A port chosen by the system must be shown even with --quiet.
	if _, port, _ := net.SplitHostPort(address); port == "0" || !c.of.Quiet {
		c.show.say.Line("status: %s", server.URL())
	}
	if !server.Loopback() {
		// --quiet does not hide this warning.
		c.show.say.Warn("--status %s can be reached from other machines and has no authentication", address)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := server.Serve(); err != nil {
			c.say.Warn("%v; the load continues without it", err)
		}
	})
	return func() {
		server.Close()
		done.Wait()
	}, nil
}
