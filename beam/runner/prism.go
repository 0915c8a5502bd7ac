package runner

import (
	"context"
	"log/slog"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	jobs "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	beamprism "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

// startPrism starts Beam's runner in this process, with which it ends.
func startPrism(ctx context.Context) (jobs.JobServiceClient, func(), error) {
	client, err := beamprism.CreateJobServer(context.WithoutCancel(ctx), beamprism.Options{})
	return client, func() {}, err
}

// silence keeps what Beam says to programmers away from users: steps of pipelines, and each failure several times. What they need is in the job
// directory.
func silence() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetLogger(silent{})
}

type silent struct{}

func (silent) Log(context.Context, log.Severity, int, string) {}
