package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	jobs "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	model "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/runnerlib"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// model of the environment. Beam's own functions are not used because they have the worker binary sent to the runner, which our workers do not need: a
// command or an image has it.
func (e environment) model() (*model.Environment, error) {
	env, err := graphx.CreateEnvironment(context.Background(), graphx.URNEnvExternal, func(context.Context) string { return e.what })
	if err != nil {
		return nil, err
	}
	env.Dependencies = nil
	var payload proto.Message
	switch e.kind {
	case process:
		env.Urn, payload = graphx.URNEnvProcess, &model.ProcessPayload{Command: e.what}
	case docker:
		env.Urn, payload = graphx.URNEnvDocker, &model.DockerPayload{ContainerImage: e.what}
	default:
		return env, nil
	}
	env.Payload, err = proto.Marshal(payload)
	return env, err
}

// submitted is a job that a runner has taken.
type submitted struct {
	client jobs.JobServiceClient
	id     string
}

// dialWithin bounds how long the job server may take to answer first.
const dialWithin = 30 * time.Second

func dial(ctx context.Context, endpoint string) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	// The blocking dial is what Beam's SDK itself uses: it says at once that nobody is there.
	//nolint:staticcheck
	c, err := grpc.DialContext(ctx, endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock(), grpc.FailOnNonTempDialError(true))
	if err != nil {
		return nil, fmt.Errorf("reach the job server at %s: %w", endpoint, err)
	}
	return c, nil
}

// submit has the pipeline run by the runner, and returns when it has taken the job.
func submit(ctx context.Context, client jobs.JobServiceClient, name string, p *beam.Pipeline, o *options) (*submitted, error) {
	edges, _, err := p.Build()
	if err != nil {
		return nil, err
	}
	env, err := o.environment.model()
	if err != nil {
		return nil, err
	}
	pipeline, err := graphx.Marshal(edges, &graphx.Options{Environment: env})
	if err != nil {
		return nil, err
	}
	asked, err := tools.OptionsToProto(jobOptions(name, o.parallelism))
	if err != nil {
		return nil, err
	}
	prepared, err := client.Prepare(ctx, &jobs.PrepareJobRequest{Pipeline: pipeline, PipelineOptions: asked, JobName: name})
	if err != nil {
		return nil, fmt.Errorf("prepare the job: %w", err)
	}
	token := prepared.GetStagingSessionToken()
	if url := prepared.GetArtifactStagingEndpoint().GetUrl(); url != "" {
		if token, err = runnerlib.Stage(ctx, prepared.GetPreparationId(), url, "", token); err != nil {
			return nil, fmt.Errorf("say that the job has no files: %w", err)
		}
	}
	run, err := client.Run(ctx, &jobs.RunJobRequest{PreparationId: prepared.GetPreparationId(), RetrievalToken: token})
	if err != nil {
		return nil, fmt.Errorf("run the job: %w", err)
	}
	return &submitted{client, run.GetJobId()}, nil
}

// jobOptions are Beam's options of the job. In Flink's mode BATCH a stage's output is kept, so that of a job whose worker or TaskManager is lost only the
// lost part runs again; its default runs everything again.
func jobOptions(name string, parallelism int) map[string]any {
	o := map[string]any{
		"beam:option:job_name:v1":                 name,
		"beam:option:execution_mode_for_batch:v1": "BATCH",
		"beam:option:experiments:v1":              []string{"beam_fn_api"},
		"beam:option:go_options:v1":               map[string]any{"options": map[string]string{}},
	}
	if parallelism > 0 {
		o["beam:option:parallelism:v1"] = parallelism
	}
	return o
}

// ended is how a job ended, as the runner says it.
type ended struct {
	state jobs.JobState_Enum
	// lost says that the runner cannot be asked any more. The job may run.
	lost error
	why  string // the last error that the runner has told
}

// follow hears the runner until the job has ended. Started is called when it runs.
func (s *submitted) follow(ctx context.Context, started func()) (e ended) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.client.GetMessageStream(ctx, &jobs.JobMessagesRequest{JobId: s.id})
	if err != nil {
		return ended{lost: err}
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) && final(e.state) {
			return e
		}
		if err != nil {
			if final(e.state) {
				return e
			}
			e.lost = err
			return e
		}
		if r := m.GetMessageResponse(); r != nil && r.GetImportance() >= jobs.JobMessage_JOB_MESSAGE_ERROR {
			e.why = r.GetMessageText()
		}
		if r := m.GetStateResponse(); r != nil {
			if e.state = r.GetState(); e.state == jobs.JobState_RUNNING {
				started()
			}
			if e.state == jobs.JobState_DONE || e.state == jobs.JobState_CANCELLED {
				return e
			}
			if final(e.state) { // why it failed may be told only now
				defer time.AfterFunc(tellWithin, cancel).Stop()
			}
		}
	}
}

// tellWithin bounds how long a runner whose job has failed is listened to.
const tellWithin = 10 * time.Second

func final(s jobs.JobState_Enum) bool {
	return s == jobs.JobState_DONE || s == jobs.JobState_FAILED || s == jobs.JobState_CANCELLED
}

// cancel tells the runner to end the job.
func (s *submitted) cancel(ctx context.Context) error {
	_, err := s.client.Cancel(ctx, &jobs.CancelJobRequest{JobId: s.id})
	return err
}

// state asks the runner how the job is.
func (s *submitted) state(ctx context.Context) (jobs.JobState_Enum, error) {
	e, err := s.client.GetState(ctx, &jobs.GetJobStateRequest{JobId: s.id})
	return e.GetState(), err
}

// rootCause is the part of a runner's message that says what happened: the last cause of a stack of Java, in one line.
func rootCause(text string) string {
	at := strings.LastIndex(text, "Caused by: ")
	if at >= 0 {
		text = text[at+len("Caused by: "):]
	}
	if at := strings.Index(text, "\n\tat "); at >= 0 {
		text = text[:at]
	}
	text = strings.Join(strings.Fields(text), " ")
	const most = 1000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
