package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/pool"
	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/harness"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"

	"example.com/tsimport/beam/stages"
)

// endWithin is how long tasks may take to end gently when the runner is gone. It is less than the term of a lease.
const endWithin = 20 * time.Second

// Called reports whether the arguments are those with which runners start the boot program of Beam's containers.
func Called(args []string) bool {
	for _, a := range args[min(1, len(args)):] {
		if name := strings.TrimLeft(a, "-"); strings.HasPrefix(a, "-") && (strings.HasPrefix(name, "provision_endpoint") || strings.HasPrefix(name, "worker_pool")) {
			return true
		}
	}
	return false
}

// endpoints is what a runner says to the boot program.
type endpoints struct {
	id, provision, control, logging string
	pool                            bool
	port                            int
}

func parse(args []string, stderr io.Writer) (*endpoints, error) {
	e := new(endpoints)
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&e.id, "id", "", "name of the worker")
	f.StringVar(&e.provision, "provision_endpoint", "", "where the worker asks for the other places")
	f.StringVar(&e.control, "control_endpoint", "", "where the worker gets its tasks")
	f.StringVar(&e.logging, "logging_endpoint", "", "where the worker's log goes")
	f.BoolVar(&e.pool, "worker_pool", false, "serve a pool: start a worker for each that a runner asks for")
	f.IntVar(&e.port, "worker_pool_port", 50000, "port of the pool")
	for _, unused := range []string{"artifact_endpoint", "semi_persist_dir", "status_endpoint", "options"} {
		f.String(unused, "", "not used")
	}
	if err := f.Parse(args[1:]); err != nil {
		return nil, err
	}
	e.id = strings.Trim(e.id, "'") // Prism quotes it as for a shell, and calls none
	if !e.pool && (e.id == "" || e.provision == "") {
		return nil, fmt.Errorf("a runner must give --id and --provision_endpoint")
	}
	return e, nil
}

// Main is the process. It returns the exit code.
func Main(args []string, stderr io.Writer) int {
	e, err := parse(args, stderr)
	if err == nil {
		if e.pool {
			err = servePool(e.port, stderr)
		} else {
			err = e.work()
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "tsimport-beam: worker: %v\n", err)
		return 1
	}
	return 0
}

// work does what the runner says until its control stream ends. The harness of Beam's SDK is called directly: started by its own init
// hook, it would stay when that stream ends without an error, and hold what the worker holds.
func (e *endpoints) work() error {
	beam.Init()
	ctx := grpcx.WriteWorkerID(context.Background(), e.id)
	info, err := tools.ProvisionInfo(ctx, e.provision)
	if err != nil {
		return fmt.Errorf("ask %s: %w", e.provision, err)
	}
	if url := info.GetControlEndpoint().GetUrl(); url != "" {
		e.control = url
	}
	if url := info.GetLoggingEndpoint().GetUrl(); url != "" {
		e.logging = url
	}
	hooks.SerializeHooksToOptions() // the harness enables what it finds there: the hook that sends the log to the runner
	ends := make(chan error, 1)
	go func() {
		ends <- harness.MainWithOptions(ctx, e.logging, e.control, harness.Options{RunnerCapabilities: info.GetRunnerCapabilities()})
	}()
	select {
	case err = <-ends:
	case <-stages.Finished: // its runner has forgotten it
	case <-orphaned(): // its runner was killed, and the harness may not hear of it
		err = errors.New("the process that has started this worker is gone")
	}
	end()
	return err
}

// end ends tasks gently, or leaves them if that takes too long: who continues them waits for their leases.
func end() {
	within, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		stages.Close(within)
		close(closed)
	}()
	select {
	case <-closed:
	case <-within.Done():
	}
}

// orphaned is closed when the process that has started this one is gone.
func orphaned() <-chan struct{} {
	parent, gone := os.Getppid(), make(chan struct{})
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		close(gone)
	}()
	return gone
}

// servePool starts a process for each worker that a runner asks for.
func servePool(port int, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := context.Background()
	server, err := pool.New(ctx, port, self)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop(ctx) }()
	fmt.Fprintf(stderr, "tsimport-beam: pool of workers at port %d\n", port)
	return server.ServeAndWait()
}
