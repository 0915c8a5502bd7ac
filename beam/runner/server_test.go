package runner

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	jobs "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	model "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"example.com/tsimport/internal/conformance"
)

// fakeServer is a job server that takes jobs and does nothing; stream says how they go.
type fakeServer struct {
	jobs.UnimplementedJobServiceServer
	options   *structpb.Struct
	workers   []*model.Environment // of the pipeline
	cancelled atomic.Bool
	ends      bool         // when it is cancelled
	asked     atomic.Int64 // for its state
	stream    func(to jobs.JobService_GetMessageStreamServer) error
}

func (f *fakeServer) Prepare(_ context.Context, r *jobs.PrepareJobRequest) (*jobs.PrepareJobResponse, error) {
	f.options = r.PipelineOptions
	for _, env := range r.Pipeline.Components.Environments {
		f.workers = append(f.workers, env)
		if len(env.Dependencies) > 0 {
			return nil, errors.New("the job has files that nobody sends")
		}
	}
	return &jobs.PrepareJobResponse{PreparationId: "p"}, nil
}

func (f *fakeServer) Run(context.Context, *jobs.RunJobRequest) (*jobs.RunJobResponse, error) {
	return &jobs.RunJobResponse{JobId: "job-7"}, nil
}

func (f *fakeServer) Cancel(context.Context, *jobs.CancelJobRequest) (*jobs.CancelJobResponse, error) {
	f.cancelled.Store(true)
	return &jobs.CancelJobResponse{}, nil
}

func (f *fakeServer) GetState(context.Context, *jobs.GetJobStateRequest) (*jobs.JobStateEvent, error) {
	state := jobs.JobState_RUNNING
	if f.asked.Add(1) > 2 && f.cancelled.Load() && f.ends {
		state = jobs.JobState_CANCELLED
	}
	return &jobs.JobStateEvent{State: state}, nil
}

func (f *fakeServer) GetMessageStream(_ *jobs.JobMessagesRequest, to jobs.JobService_GetMessageStreamServer) error {
	return f.stream(to)
}

func (f *fakeServer) start(t *testing.T) (endpoint string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	conformance.Must(t, err)
	s := grpc.NewServer()
	jobs.RegisterJobServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func stateMessage(s jobs.JobState_Enum) *jobs.JobMessagesResponse {
	return &jobs.JobMessagesResponse{Response: &jobs.JobMessagesResponse_StateResponse{StateResponse: &jobs.JobStateEvent{State: s}}}
}

func errorMessage(text string) *jobs.JobMessagesResponse {
	return &jobs.JobMessagesResponse{Response: &jobs.JobMessagesResponse_MessageResponse{MessageResponse: &jobs.JobMessage{Importance: jobs.JobMessage_JOB_MESSAGE_ERROR, MessageText: text}}}
}

func (l *prismLoad) onFlink(endpoint string) (int, string) {
	return l.load("--runner", "flink", "--job-endpoint", endpoint, "--parallelism", "3", "--environment", "process:/usr/bin/tsimport-beam")
}

const stack = `java.lang.RuntimeException: Error received from SDK harness
	at org.apache.beam.runners.fnexecution.control.FnApiControlClient$ResponseStreamObserver.onNext(FnApiControlClient.java:180)
Caused by: java.util.concurrent.ExecutionException: lost its TaskManager
	at java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
	... 6 more`

func TestAFailedJobSaysWhyAndTheSameCommandContinues(t *testing.T) {
	l := newPrismLoad(t, 5_000)
	f := &fakeServer{stream: func(to jobs.JobService_GetMessageStreamServer) error {
		return errors.Join(to.Send(stateMessage(jobs.JobState_RUNNING)), to.Send(errorMessage(stack)), to.Send(stateMessage(jobs.JobState_FAILED)))
	}}
	code, said := l.onFlink(f.start(t))
	if code != 1 || !strings.Contains(said, "job job-7 of flink is FAILED: java.util.concurrent.ExecutionException: lost its TaskManager; the same command continues the load") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	o := f.options.GetFields()
	conformance.Equal(t, o["beam:option:execution_mode_for_batch:v1"].GetStringValue(), "BATCH", "mode")
	conformance.Equal(t, o["beam:option:parallelism:v1"].GetNumberValue(), 3, "parallelism")
	if code, said := l.load("--runner", "prism"); code != 3 { // on another runner
		t.Fatalf("exit code %d\n%s", code, said)
	}
	l.check()
}

func TestALoadEndsWithoutItsJobServer(t *testing.T) {
	l := newPrismLoad(t, 5_000)
	worked := make(chan int, 1)
	f := &fakeServer{stream: func(to jobs.JobService_GetMessageStreamServer) error {
		err := to.Send(stateMessage(jobs.JobState_RUNNING))
		go func() { // as the runner does that runs on without its job server
			code, _ := l.call("tsimport", "work", "--job-dir", l.job)
			worked <- code
		}()
		return errors.Join(err, errors.New("killed"))
	}}
	code, said := l.onFlink(f.start(t))
	if code != 3 || !strings.Contains(said, "does not answer any more") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	conformance.Equal(t, <-worked, 3, "work: exit code")
	l.check()
}

// A job of which neither its server nor its directory says anything any more is given up in the end.
func TestALoadThatGivesNoSignOfLifeIsGivenUp(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Second
	l := newPrismLoad(t, 100)
	f := &fakeServer{stream: func(to jobs.JobService_GetMessageStreamServer) error {
		return errors.Join(to.Send(stateMessage(jobs.JobState_RUNNING)), errors.New("killed"))
	}}
	code, said := l.onFlink(f.start(t))
	if code != 1 || !strings.Contains(said, "no sign of life for 1s; the same command continues it") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if code, said := l.load("--runner", "prism"); code != 3 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	l.check()
}

// TestWorkersRunWhereTheCommandSays also shows that a job that ends well without doing the load, which had other workers, or another job
// directory, is not a load.
func TestWorkersRunWhereTheCommandSays(t *testing.T) {
	for _, c := range []struct {
		environment, urn string
		payload          func(p []byte) (string, error)
		want             string
	}{
		{"docker:registry.example/tsimport-beam:1", "beam:env:docker:v1", func(p []byte) (string, error) {
			d := new(model.DockerPayload)
			err := proto.Unmarshal(p, d)
			return d.GetContainerImage(), err
		}, "registry.example/tsimport-beam:1"},
		{"process:/opt/tsimport-beam", "beam:env:process:v1", func(p []byte) (string, error) {
			d := new(model.ProcessPayload)
			err := proto.Unmarshal(p, d)
			return d.GetCommand(), err
		}, "/opt/tsimport-beam"},
		{"external:127.0.0.1:7", "beam:env:external:v1", func(p []byte) (string, error) {
			d := new(model.ExternalPayload)
			err := proto.Unmarshal(p, d)
			return d.GetEndpoint().GetUrl(), err
		}, "127.0.0.1:7"},
	} {
		l := newPrismLoad(t, 100)
		f := &fakeServer{stream: func(to jobs.JobService_GetMessageStreamServer) error {
			return to.Send(stateMessage(jobs.JobState_DONE))
		}}
		code, said := l.load("--runner", "flink", "--job-endpoint", f.start(t), "--environment", c.environment)
		if code != 1 || !strings.Contains(said, "has no summary") {
			t.Errorf("%s: exit code %d\n%s", c.environment, code, said)
		}
		found := false
		for _, env := range f.workers {
			if env.Urn != c.urn {
				continue
			}
			got, err := c.payload(env.Payload)
			found = true
			if err != nil || got != c.want {
				t.Errorf("%s: workers in %q, %v; want %q", c.environment, got, err, c.want)
			}
		}
		conformance.Equal(t, found, true, "%s: the job has the environments %v", c.environment, f.workers)
	}
}

func TestAJobIsCancelledWhenAnotherAttemptWouldEndAlike(t *testing.T) {
	for why, spoil := range map[string]func(l *prismLoad){
		"damaged": damage,
		"read task 0: ": func(l *prismLoad) {
			if err := os.Remove(l.files[0]); err != nil {
				l.Error(err)
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			l := newPrismLoad(t, 5_000)
			f := &fakeServer{ends: true, stream: func(to jobs.JobService_GetMessageStreamServer) error {
				err := to.Send(stateMessage(jobs.JobState_RUNNING))
				spoil(l)
				_, _ = l.call("tsimport", "work", "--job-dir", l.job, "--stage", "read", "--index", "0")
				<-to.Context().Done() // the runner would try it again and again
				return err
			}}
			if code, said := l.onFlink(f.start(t)); code != 2 || !f.cancelled.Load() || !strings.Contains(said, why) || !strings.Contains(said, "job-7 of flink is CANCELLED") {
				t.Fatalf("exit code %d, cancelled %v\n%s", code, f.cancelled.Load(), said)
			}
		})
	}
}

// A runner may say that it cancels a job which runs on: workers are told to stop by the job directory, and the job is said to be what it is.
func TestAnInterruptStopsTheWorkersAndSaysHowTheJobIs(t *testing.T) {
	defer func(was time.Duration) { cancelWithin = was }(cancelWithin)
	for says, ends := range map[string]bool{"job-7 of flink is CANCELLED": true, "job-7 of flink is still running": false} {
		t.Run(says, func(t *testing.T) {
			if !ends {
				cancelWithin = 3 * time.Second // of two minutes
			}
			l := newPrismLoad(t, 5_000)
			f := &fakeServer{ends: ends, stream: func(to jobs.JobService_GetMessageStreamServer) error {
				err := to.Send(stateMessage(jobs.JobState_RUNNING))
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
				<-to.Context().Done()
				return err
			}}
			if code, said := l.onFlink(f.start(t)); code != 130 || !f.cancelled.Load() || !strings.Contains(said, says) {
				t.Fatalf("exit code %d, cancelled %v\n%s", code, f.cancelled.Load(), said)
			}
			if code, said := l.call("tsimport", "work", "--job-dir", l.job); code != 1 || !strings.Contains(said, "the job was stopped") {
				t.Errorf("a worker that the runner starts again: exit code %d\n%s", code, said)
			}
			if code, said := l.load("--runner", "prism"); code != 3 {
				t.Fatalf("the same command: exit code %d\n%s", code, said)
			}
			l.check()
		})
	}
}

func TestTheRootCauseIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		stack:       "java.util.concurrent.ExecutionException: lost its TaskManager",
		"":          "",
		"one\n two": "one two",
	} {
		conformance.Equal(t, rootCause(text), want, "%q", text)
	}
	if got := rootCause(strings.Repeat("ü", 1000)); len(got) > 1010 {
		t.Errorf("%d bytes", len(got))
	}
}

// damage leaves something in place of a split's result.
func damage(l *prismLoad) {
	name := filepath.Join(l.job, "splits", "000000.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("{"), 0o600)); err != nil {
		l.Error(err)
	}
}
