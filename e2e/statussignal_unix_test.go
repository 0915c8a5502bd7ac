//go:build unix

package e2e

import (
	"syscall"
	"testing"
	"time"
)

func TestASignalShowsTheStateBeforeAndWhileALoadWrites(t *testing.T) {
	t.Parallel()
	w := watch(t, "--max-rows-per-second", "500", "-q")
	w.signal(syscall.SIGUSR1)
	w.says(`^tsimport: the load has not started writing yet$`, 1)
	w.feed()
	w.running()
	const header = `^tsimport: table t after \S+: [\d,]+ rows read, [1-9][\d,]* written, [1-9][\d,]* queued, .*; 1 partition`
	const lane = `^  partition 0 from the first key: \w+.*, [1-9][\d,]* queued`
	for n := range 3 {
		w.signal(syscall.SIGUSR1)
		w.says(header, n+1)
		w.says(lane, n+1)
	}
	w.signal(syscall.SIGTERM)
	w.end(143)
}

func TestASignalDuringTheWholeOfALoadDoesNotEndIt(t *testing.T) {
	t.Parallel()
	w := watch(t)
	<-w.feed()
	w.in.Close()
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // until the process has ended, at any moment of its work
		defer close(stopped)
		often := time.NewTicker(time.Millisecond)
		defer often.Stop()
		for {
			select {
			case <-stop:
				return
			case <-often.C:
				_ = w.Process.Signal(syscall.SIGUSR1)
			}
		}
	}()
	w.end(0)
	close(stop)
	<-stopped
	if s := readSummary(t, w.dir+"/run"); s.Written != fedRows || s.State != "finished" {
		t.Errorf("%+v", s)
	}
}
