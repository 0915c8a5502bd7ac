//go:build unix

package commands

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"golang.org/x/sys/unix"
)

func TestStateIsShownForEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show, load := newDisplay(&out), &fakeLoad{}
		begun := showState(t.Context(), load, show, false)
		load.state = runningState()
		begun = showState(t.Context(), load, show, begun)
		begun = showState(t.Context(), load, show, begun)
		load.state = nil
		showState(t.Context(), load, show, begun)
		const before, after = "tsimport: the load has not started writing yet\n", "tsimport: the load is ending\n"
		text := out.String()
		conformance.True(t, strings.HasPrefix(text, before) && strings.Count(text, "1,000,000 rows read") == 2 &&
			strings.HasSuffix(text, after), "shown:\n%s", text)
	})
}

type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func TestSignalShowsTheStateOnlyWhileRunning(t *testing.T) {
	written := make(lines)
	stop := onStateSignals(&fakeLoad{runningState()}, newDisplay(written))
	for range 3 {
		must(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		text := <-written
		conformance.True(t, strings.HasPrefix(text, "tsimport: table cards"), "shown: %s", text)
	}
	stop()
	delivered := make(chan os.Signal, 1)
	signal.Notify(delivered, syscall.SIGUSR1)
	defer signal.Stop(delivered)
	must(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	<-delivered
	select {
	case text := <-written:
		t.Errorf("shown after the end: %s", text)
	default:
	}
}

// asking is a display whose reader requests the state when it reads an address, and waits until the signal has arrived.
type asking chan string

func (a asking) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "tsimport: status: ") {
		delivered := make(chan os.Signal, 1)
		signal.Notify(delivered, syscall.SIGUSR1)
		defer signal.Stop(delivered)
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			return 0, err
		}
		<-delivered
	}
	a <- string(b)
	return len(b), nil
}

func TestSignalsAreHandledBeforeTheAddressIsShown(t *testing.T) {
	shown := make(asking, 2)
	of := &options.Command{Name: job.Load}
	must(t, options.For(job.Load, "status").Set(of, []string{"127.0.0.1:0"}))
	stop, err := watchLoad(new(invocation).again(t.Context(), of, io.Discard, nil, newDisplay(shown)), new(pipeline.Watch))
	must(t, err)
	defer stop()
	<-shown
	conformance.Equal(t, <-shown, "tsimport: the load has not started writing yet\n", "shown")
}

func TestStopDoesNotWaitForAnUnresponsiveLoad(t *testing.T) {
	asked := make(chan bool)
	load := &hanging{asked: asked}
	var out bytes.Buffer
	stop := onStateSignals(load, newDisplay(&out))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	<-asked
	stop()
	conformance.Equal(t, out.String(), "tsimport: the load has not started writing yet\n", "shown")
}

// hanging is a load that reports the first request for its state but never responds. Only the context ends the wait.
type hanging struct {
	once  sync.Once
	asked chan bool
}

func (h *hanging) State(ctx context.Context) (*pipeline.State, error) {
	h.once.Do(func() { close(h.asked) })
	<-ctx.Done()
	return nil, ctx.Err()
}

var neverFreed [][]byte

var crashes = map[string]func(){
	"a panic": func() { go panic("broken"); select {} },
	"SIGQUIT": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGQUIT); select {} },
	"no memory": func() {
		_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		for {
			neverFreed = append(neverFreed, make([]byte, 64<<20))
		}
	},
}

// Schedulers retry after a crash, but not after exit code 2, which means bad usage.
func TestCrashExitCodeIsNotBadUsage(t *testing.T) {
	const which = "TSIMPORT_TEST_CRASH"
	if crash := crashes[os.Getenv(which)]; crash != nil {
		crashLoudly()
		crash()
	}
	for name := range crashes {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env, c.Dir = append(os.Environ(), which+"="+name), t.TempDir()
		err := c.Run()
		ended := new(exec.ExitError)
		conformance.MustTrue(t, errors.As(err, &ended), "%s: %v", name, err)
		status := ended.Sys().(syscall.WaitStatus)
		conformance.True(t, status.Signaled() && status.Signal() == syscall.SIGABRT && !status.CoreDump(),
			"%s: %v", name, ended)
	}
}
