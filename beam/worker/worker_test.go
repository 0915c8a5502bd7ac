package worker

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	fn "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	model "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"google.golang.org/grpc"

	"example.com/tsimport/internal/conformance"
)

// fakeRunner is a runner whose control streams end at once.
type fakeRunner struct {
	fn.UnimplementedProvisionServiceServer
	fn.UnimplementedBeamFnControlServer
	fn.UnimplementedBeamFnLoggingServer
	address string
	ends    error // of control streams
}

func (f *fakeRunner) GetProvisionInfo(context.Context, *fn.GetProvisionInfoRequest) (*fn.GetProvisionInfoResponse, error) {
	at := &model.ApiServiceDescriptor{Url: f.address}
	return &fn.GetProvisionInfoResponse{Info: &fn.ProvisionInfo{ControlEndpoint: at, LoggingEndpoint: at, StatusEndpoint: at}}, nil
}

func (f *fakeRunner) Control(fn.BeamFnControl_ControlServer) error { return f.ends }

func (f *fakeRunner) Logging(to fn.BeamFnLogging_LoggingServer) error {
	for {
		if _, err := to.Recv(); err != nil {
			return err
		}
	}
}

// A worker that its runner no longer controls would hold memory and leases: those that Beam's own hook starts stay when the stream ends well.
func TestAWorkerEndsWithItsControlStream(t *testing.T) {
	for name, c := range map[string]struct {
		ends error
		code int
	}{
		"well":       {nil, 0},
		"with error": {errors.New("the runner is gone"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			conformance.Must(t, err)
			f := &fakeRunner{address: l.Addr().String(), ends: c.ends}
			s := grpc.NewServer()
			fn.RegisterProvisionServiceServer(s, f)
			fn.RegisterBeamFnControlServer(s, f)
			fn.RegisterBeamFnLoggingServer(s, f)
			go func() { _ = s.Serve(l) }()
			t.Cleanup(s.Stop)
			ended := make(chan int, 1)
			var said bytes.Buffer
			go func() {
				ended <- Main([]string{"tsimport-beam", "--id=1-1", "--provision_endpoint=" + f.address, "--semi_persist_dir=/tmp", "--artifact_endpoint=nowhere:1"}, &said)
			}()
			select {
			case code := <-ended:
				conformance.Equal(t, code, c.code, "exit code\n%s", said.String())
			case <-time.After(5 * time.Minute):
				t.Fatal("the worker stays")
			}
		})
	}
}

func TestOnlyRunnersCallWorkers(t *testing.T) {
	for args, want := range map[string]bool{
		"tsimport-beam --id=1-1 --provision_endpoint=localhost:1 --logging_endpoint=x": true,
		"tsimport-beam -provision_endpoint localhost:1":                                true,
		"tsimport-beam --worker_pool":                                                  true,
		"tsimport-beam load a.csv --job-dir d":                                         false,
		"tsimport-beam load provision_endpoint":                                        false,
		"tsimport-beam":                                                                false,
	} {
		conformance.Equal(t, Called(strings.Fields(args)), want, "%s", args)
	}
}

func TestPrismQuotesTheName(t *testing.T) {
	e, err := parse([]string{"tsimport-beam", "--id='job-1[x]_go'", "--provision_endpoint=localhost:1"}, new(bytes.Buffer))
	if err != nil || e.id != "job-1[x]_go" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestAWorkerThatIsCalledWronglySaysSo(t *testing.T) {
	for _, args := range []string{"tsimport-beam --provision_endpoint=localhost:1", "tsimport-beam --provision_endpoint=a --nonsense=1"} {
		var said bytes.Buffer
		if code := Main(strings.Fields(args), &said); code != 1 || said.Len() == 0 {
			t.Errorf("%s: exit code %d, %q", args, code, said.String())
		}
	}
}
