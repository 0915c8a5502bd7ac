package stages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/jobs/scaleout"
)

// Load is what a worker must know of the load; the rest is in the job directory.
type Load struct {
	Place string            // of the job directory
	Env   map[string]string // what the environment of a worker must have, unless it has it; no secrets
}

// opened are the job directories that this process has open, by their places. A worker has one.
var opened = struct {
	sync.Mutex
	jobs map[string]*job
	end  context.Context // of all tasks
	stop context.CancelFunc
}{jobs: map[string]*job{}}

// job is a job directory that this process has open, from its first task to the first one that fails: what a failed task leaves is
// closed with it.
type job struct {
	load  Load
	end   context.Context
	turn  chan struct{} // holds one token: who has it may call
	tasks chan task     // nil while it is closed
	ended chan error
}

// task is a task that the open job is to do.
type task struct {
	ctx    context.Context
	stage  string
	index  int
	answer chan error
}

// ErrEnding says that the process ends.
var ErrEnding = errors.New("the worker ends")

// do does a task when those of this process that were called before are done.
func (l *Load) do(ctx context.Context, stage string, index, of int) error {
	j, err := l.job()
	if err != nil {
		return err
	}
	select {
	case <-j.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-j.end.Done():
		return ErrEnding
	}
	defer func() { j.turn <- struct{}{} }()
	log.Infof(ctx, "tsimport: %s task %d of %d begins", stage, index, of)
	return j.do(task{ctx: ctx, stage: stage, index: index, answer: make(chan error, 1)})
}

// job returns the job directory of a load, which may not be open yet.
func (l *Load) job() (*job, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.end == nil {
		opened.end, opened.stop = context.WithCancel(context.Background())
	}
	j := opened.jobs[l.Place]
	if j == nil {
		for name, value := range l.Env {
			if _, has := os.LookupEnv(name); !has {
				if err := os.Setenv(name, value); err != nil {
					return nil, fmt.Errorf("set %s: %w", name, err)
				}
			}
		}
		j = &job{load: *l, end: opened.end, turn: make(chan struct{}, 1)}
		j.turn <- struct{}{}
		opened.jobs[l.Place] = j
	}
	return j, nil
}

// do opens the job directory, if it is not open, and does the task. One caller at a time.
func (j *job) do(t task) error {
	if j.tasks == nil {
		j.tasks, j.ended = make(chan task), make(chan error, 1)
		go func(tasks chan task, ended chan error) {
			ended <- commands.Work(j.end, j.load.Place, logged{}, func(ctx context.Context, of *scaleout.Job) error { return serve(ctx, of, tasks) })
		}(j.tasks, j.ended)
	}
	select {
	case j.tasks <- t:
	case err := <-j.ended: // it could not be opened
		j.tasks = nil
		return err
	}
	err := <-t.answer
	if err != nil {
		j.close()
	}
	return err
}

// close closes the job directory, if it is open.
func (j *job) close() {
	if j.tasks != nil {
		close(j.tasks)
		if err := <-j.ended; err != nil {
			log.Warnf(context.Background(), "tsimport: close %s: %v", j.load.Place, err)
		}
		j.tasks = nil
	}
}

// idleFor is how long a worker of a load that is done waits for its runner to end it.
const idleFor = 15 * time.Second

// Finished is sent to when a load is done and this process has had nothing to do for it since. Runners keep workers by mistake: Beam's Flink runner does
// when another TaskManager was lost.
var Finished = make(chan struct{}, 1)

// serve does tasks until there are none.
func serve(ctx context.Context, of *scaleout.Job, tasks <-chan task) error {
	for {
		var t task
		var more bool
		select {
		case t, more = <-tasks:
		case <-time.After(idleFor):
			if done, err := of.Finished(ctx); done && err == nil {
				select {
				case Finished <- struct{}{}:
				default: // it was said
				}
			}
			continue
		}
		if !more {
			return nil
		}
		within, cancel := context.WithCancelCause(ctx)
		unhook := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
		t.answer <- call(within, of, t)
		unhook()
		cancel(nil)
	}
}

func call(ctx context.Context, of *scaleout.Job, t task) error {
	switch t.stage {
	case scaleout.StageRead:
		return of.ReadSplit(ctx, t.index)
	case scaleout.StageWrite:
		return of.WriteShard(ctx, t.index)
	case scaleout.StageVerify:
		return of.Compare(ctx, t.index)
	case scaleout.StageFinish:
		_, err := of.Finish(ctx)
		return err
	}
	return fmt.Errorf("there is no stage %q", t.stage)
}

// Close ends the tasks of this process gently, and closes its job directories, unless that takes longer than ctx.
func Close(ctx context.Context) {
	opened.Lock()
	jobs := opened.jobs
	if opened.stop != nil {
		opened.stop()
	}
	opened.jobs, opened.end, opened.stop = map[string]*job{}, nil, nil // for the next load of this process
	opened.Unlock()
	for _, j := range jobs {
		select {
		case <-j.turn:
			j.close()
		case <-ctx.Done():
			return
		}
	}
}

// logged is what a job says, in the log of the runner.
type logged struct{}

func (logged) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		log.Info(context.Background(), string(bytes.TrimRight(line, "\n")))
	}
	return len(b), nil
}
