package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/pipeline/plan"
)

// Names of runners.
const (
	flink = "flink"
	prism = "prism"
)

// Offer is the runner as load offers it.
func Offer() *commands.Runner {
	return &commands.Runner{
		Name:  "tsimport-beam",
		Names: []string{flink, prism},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "job-endpoint", Usage: "--runner flink: `HOST:PORT` of Beam's job server, which submits to Flink; prism needs none"},
			&cli.IntFlag{Name: "parallelism", Usage: "--runner: how many `TASKS` run at a time; 0 means what Flink is configured for"},
			&cli.StringFlag{Name: "environment", Usage: "--runner: `WHERE` tasks run: process:COMMAND on each TaskManager, docker:IMAGE, external:HOST:PORT of a pool of workers, or loopback, in this process (prism's default)"},
		},
		Check: func(c *cli.Context) error { _, err := optionsOf(c); return err },
		Run: func(ctx context.Context, c *cli.Context, l *commands.RunnerLoad) error {
			o, err := optionsOf(c)
			if err != nil {
				return err
			}
			return run(ctx, o, l)
		},
	}
}

// options are what a user says of the runner.
type options struct {
	runner      string
	endpoint    string // of the job server; "" starts Prism in this process
	parallelism int    // 0 is the runner's own
	environment environment
}

func optionsOf(c *cli.Context) (*options, error) {
	o := &options{runner: c.String("runner"), endpoint: c.String("job-endpoint"), parallelism: c.Int("parallelism")}
	if o.runner == flink && o.endpoint == "" {
		return nil, plan.Usagef("--runner flink: give --job-endpoint, where Beam's job server is (docs/flink.md)")
	}
	if o.parallelism < 0 {
		return nil, plan.Usagef("--parallelism %d: want 0 or more", o.parallelism)
	}
	text := c.String("environment")
	if text == "" && o.runner == prism {
		text = loopback
	}
	var err error
	if o.environment, err = parseEnvironment(text); err != nil {
		return nil, plan.Usagef("--environment %q: %v", text, err)
	}
	return o, nil
}

// Kinds of environments.
const (
	loopback = "loopback"
	process  = "process"
	docker   = "docker"
	external = "external"
)

// environment says where a runner has tasks done.
type environment struct {
	kind string
	what string // command, image or address
}

func parseEnvironment(text string) (environment, error) {
	kind, what, _ := strings.Cut(text, ":")
	switch kind {
	case "":
		return environment{}, fmt.Errorf("say where tasks run: process:COMMAND, docker:IMAGE, external:HOST:PORT or loopback")
	case loopback:
		if what != "" {
			return environment{}, fmt.Errorf("loopback takes nothing more")
		}
	case process, docker, external:
		if what == "" {
			return environment{}, fmt.Errorf("want something after %s:", kind)
		}
	default:
		return environment{}, fmt.Errorf("want process:COMMAND, docker:IMAGE, external:HOST:PORT or loopback")
	}
	return environment{kind, what}, nil
}
