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

// stateWait is how long the state of a load is waited for: one that writes answers at once.
const stateWait = time.Second

// stateSource tells the state of a load; *pipeline.Monitor does.
type stateSource interface {
	State(ctx context.Context) (*pipeline.State, error)
}

// signalHelp tells how to ask, where one can.
func signalHelp() string {
	if len(stateSignals) == 0 {
		return ""
	}
	return "\nSIGUSR1 shows the state of a running load on stderr, partition by partition."
}

// watchLoad lets a load be looked at while it runs: by signals, and over HTTP. stop ends that.
func watchLoad(c *call, w *pipeline.Watch) (stop func(), err error) {
	w.Monitor = pipeline.NewMonitor()
	// Before the address is shown: a signal that nobody listens to is lost, and who reads the address may send one at once.
	stopSignals := onStateSignals(w.Monitor, c.show)
	stopServing, err := serveStatus(c, w.Monitor)
	if err != nil {
		stopSignals()
		return nil, err
	}
	return func() { stopSignals(); stopServing() }, nil
}

// onStateSignals shows the state whenever a signal asks for it, until stop is called. What asks before the load writes is
// told so.
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
		signal.Stop(signals) // from here on the runtime takes no notice of them
		cancel()
		done.Wait()
	}
}

// showState shows the state once; begun says that there was one before.
func showState(ctx context.Context, load stateSource, show *display, begun bool) bool {
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	s, err := load.State(ctx)
	switch {
	case err == nil:
		_ = writeState(show, s) // an unread display is not a reason to stop
		return true
	case begun:
		show.say.Line("the load is ending")
	default:
		show.say.Line("the load has not started writing yet")
	}
	return begun
}

// serveStatus shows the load at the address of --status, if there is one, until stop is called.
func serveStatus(c *call, load stateSource) (stop func(), err error) {
	if !c.given.IsSet("status") {
		return func() {}, nil
	}
	address := c.of.Status
	if address == "" {
		// The system would take a port that nobody can know of beforehand, for all the world.
		return nil, usagef(`--status "": give an address of this machine, such as 127.0.0.1:0`)
	}
	server, err := status.Listen(address, load)
	if err != nil {
		return nil, usagef("--status %s: %v; give an address of this machine whose port is free, such as 127.0.0.1:0", address, client.OneLine(err.Error()))
	}
	// Who lets the system choose a port must be told which even when little else is said.
	if _, port, _ := net.SplitHostPort(address); port == "0" || !c.of.Quiet {
		c.show.say.Line("status: %s", server.URL())
	}
	if !server.Loopback() {
		// Whoever silences the load still has to know that others can look at it.
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
