package commands

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing/synctest"
	"time"

	"example.com/tsimport/pipeline"
)

// fate is what happens to a pod. The zero fate is nothing.
type fate struct {
	dies    int           // with which request; 0 is none
	after   bool          // that request is applied, and its answer is lost
	within  time.Duration // after which it dies; 0 is never
	stopped time.Duration // after which it gets SIGTERM; 0 is never
	fails   int           // from which request on the service cannot be reached; 0 is none
	stalls  int           // the request, applied late, at which the pod outsleeps its lease; 0 is none
}

var errNoPower = errors.New("the pod is dead")

// pod is a process that runs the command: its link to the service, its signals and the moment of its death.
type pod struct {
	season      *season
	fate        fate
	service     http.RoundTripper
	interrupts  *interrupts
	requests    atomic.Int64
	dying, dead atomic.Bool
	still       atomic.Pointer[time.Time] // until then it stands still
	unplug      string                    // the name by which its machine has the state, of one beside another

	quiet, json bool // how it speaks
	code        int
	out, said   string
}

func (s *season) newPod(f fate) *pod {
	p := &pod{season: s, fate: f, service: s.engine.SameMemory()}
	hard, stop := context.WithCancelCause(context.WithValue(context.Background(), podOf{}, p))
	drain, stopGently := context.WithCancelCause(hard)
	p.interrupts = &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: stop, gentle: make(chan bool, 1)}
	return p
}

// podOf is the key of the pod that a command runs in, in the command's context.
type podOf struct{}

// run runs the command in the pod to its end. Of one that dies the disk is afterwards what it was when it died.
func (p *pod) run(args ...string) *pod {
	for after, what := range map[time.Duration]func(){p.fate.within: p.die, p.fate.stopped: p.term} {
		if after > 0 {
			defer time.AfterFunc(after, what).Stop()
		}
	}
	var out, said bytes.Buffer
	if p.quiet {
		args = append(args, "--quiet")
	}
	in := &invocation{args: args, interrupts: p.interrupts, show: newDisplay(&said)}
	if p.json {
		in.show.logJSON(args[0])
	}
	checked := &checkedOutput{Writer: &out}
	app := newApp(checked, in)
	args, err := flagsFirst(app, append([]string{"tsimport"}, args...))
	if err == nil {
		err = app.RunContext(p.interrupts.hard, args)
	}
	p.code = exitCode(in.show, checked.end(err), checked.silent(in.show))
	p.interrupts.stop(nil)
	time.Sleep(time.Millisecond) // a death of this very moment
	if p.dead.Load() && p.unplug == "" {
		p.season.restore()
	}
	p.out, p.said = out.String(), said.String()
	return p
}

func (p *pod) term() {
	cause := &pipeline.Interrupted{Signal: "terminated", ExitCode: 143}
	p.interrupts.stopGently(cause)
	if len(p.interrupts.gentle) == 0 {
		p.interrupts.stop(cause)
	}
}

// die ends the pod between any two things that it does: all others wait for something when its disk is looked at.
func (p *pod) die() {
	if p.interrupts.hard.Err() != nil || !p.dying.CompareAndSwap(false, true) {
		return
	}
	synctest.Wait()
	if p.unplug == "" {
		p.season.snapshot()
	} else {
		must(p.season.t, os.Remove(p.unplug)) // and no other machine has its disk
	}
	p.dead.Store(true)
	p.interrupts.stop(errNoPower)
}

func (p *pod) SameMemory() bool { return true }

func (p *pod) RoundTrip(r *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	select { // how long a request takes
	case <-time.After(5 * time.Millisecond):
	case <-r.Context().Done():
		return refuse(context.Cause(r.Context()))
	}
	n := int(p.requests.Add(1))
	if n == p.fate.stalls {
		until := time.Now().Add(90 * time.Second)
		p.still.Store(&until)
		// a process that is stopped does nothing with its state
		must(p.season.t, errors.Join(os.Rename(p.unplug, p.unplug+".off"), os.WriteFile(p.unplug, nil, 0o600)))
		time.AfterFunc(time.Until(until), func() {
			must(p.season.t, errors.Join(os.RemoveAll(p.unplug), os.Rename(p.unplug+".off", p.unplug)))
		})
	}
	if until := p.still.Load(); until != nil {
		time.Sleep(time.Until(*until))
	}
	if n == p.fate.dies && !p.fate.after {
		p.die()
	}
	if p.dead.Load() {
		return refuse(errNoPower)
	}
	if p.season.down || p.fate.fails > 0 && n >= p.fate.fails {
		return refuse(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	}
	a, err := p.service.RoundTrip(r)
	if n == p.fate.dies {
		p.die()
	}
	if p.dead.Load() && err == nil {
		_ = a.Body.Close()
		return nil, errNoPower
	}
	return a, err
}

func (s *season) snapshot() {
	must(s.t, os.RemoveAll(s.disk+".then"))
	must(s.t, copyTree(s.disk+".then", s.disk))
}

func (s *season) restore() {
	must(s.t, os.Chdir(filepath.Dir(s.disk)))
	must(s.t, os.RemoveAll(s.disk))
	must(s.t, os.Rename(s.disk+".then", s.disk))
	must(s.t, os.Chdir(s.machine))
}

// copyTree copies a folder, with one file for names that are hard links of one.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, name)
		at := filepath.Join(to, rel)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(at, info.Mode().Perm())
		}
		return errors.Join(copyFile(at, name, info.Mode().Perm()), os.Chtimes(at, info.ModTime(), info.ModTime()))
	})
}

func copyFile(to, from string, perm os.FileMode) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, perm))
}
