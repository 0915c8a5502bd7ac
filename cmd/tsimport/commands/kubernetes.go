package commands

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/jobs/scaleout"
	"example.com/tsimport/jobs/scaleout/kubernetes"
	"example.com/tsimport/pipeline/options"
)

func manifestsCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name: "manifests", Usage: "print or apply the Kubernetes Jobs of a load that was planned for many machines", ArgsUsage: "JOBDIR",
		Description: "An Indexed Job for each stage of what tsimport load --job-dir has planned, as YAML (docs/kubernetes.md). With --apply the exit code is\n" +
			"that of the whole load.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`IMAGE` with this version of tsimport"},
			&cli.BoolFlag{Name: "apply", Usage: "run the stages with kubectl, one after the other, and wait for each"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the Jobs, before that of the stage (default: tsimport- and the table)"},
			&cli.StringFlag{Name: "namespace", Usage: "`NAMESPACE` of the Jobs (default: that of kubectl)"},
			&cli.StringFlag{Name: "secret", Usage: "`SECRET` with the access keys as environment variables"},
			&cli.StringFlag{Name: "service-account", Usage: "`ACCOUNT` of the pods, which gives them rights by OIDC"},
			&cli.StringFlag{Name: "volume", Usage: "volume claim with shared folders and where pods mount it, `CLAIM:PATH`"},
			&cli.StringFlag{Name: "cpu", Usage: "processors that each pod asks for, in `CORES` such as 2 or 500m", Value: "1"},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory of each pod, of which three quarters are for rows", Value: "2GiB"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		},
		Action: in.act(func(c *call) error {
			if c.NArg() != 1 {
				return usagef("tsimport manifests takes one job directory, not %d", c.NArg())
			}
			store, err := openJobDir(c, c.Args().First())
			if err != nil {
				return err
			}
			p, err := scaleout.ReadPlan(c.Context, store)
			if err != nil {
				return err
			}
			o, err := jobsOf(c, store, p)
			if err != nil {
				return err
			}
			if c.Bool("apply") {
				return applyJobs(c, o, store, p)
			}
			manifests, err := kubernetes.Manifests(*o)
			if err != nil {
				return usagef("%v", err)
			}
			c.say.Line("apply the Jobs with kubectl; all but the first are suspended: resume each when the one before is complete, or give --apply (docs/kubernetes.md)")
			_, err = fmt.Fprintf(results(c), "%s", bytes.Join(manifests, []byte("---\n")))
			return err
		}),
	}
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// jobsOf is what the manifests of a plan say.
func jobsOf(c *call, store jobdir.Store, p *scaleout.Plan) (*kubernetes.Options, error) {
	memory, err := options.ParseSize(c.String("memory"))
	if err != nil || memory < 256<<20 {
		return nil, usagef("--memory %q: want a size of at least 256MiB", c.String("memory"))
	}
	o := &kubernetes.Options{
		Name: c.String("name"), Namespace: c.String("namespace"), Image: c.String("image"), JobDir: store.String(), Workers: p.Workers,
		Secret: c.String("secret"), ServiceAccount: c.String("service-account"), CPU: c.String("cpu"), MemoryBytes: memory,
		Plan: p.ID[:min(len(p.ID), planInNames)],
		Env:  workerEnv(p), // the access keys come from the secret or the service account
	}
	if o.Name == "" {
		o.Name = "tsimport-" + notInNames.ReplaceAllString(strings.ToLower(path.Base(p.Job.Table)), "-")
		o.Name = strings.Trim(o.Name[:min(len(o.Name), kubernetes.MaxNameBytes)], "-")
	}
	if v := c.String("volume"); v != "" {
		var found bool
		if o.Claim, o.MountPath, found = strings.Cut(v, ":"); !found || o.Claim == "" || !strings.HasPrefix(o.MountPath, "/") {
			return nil, usagef("--volume %q: want CLAIM:PATH, such as shared:/mnt", v)
		}
	}
	compared := 0
	if p.Verify {
		compared = len(p.Shards)
	}
	for _, s := range []kubernetes.Stage{{Name: "read", Tasks: len(p.Splits)}, {Name: "write", Tasks: len(p.Shards)}, {Name: "verify", Tasks: compared}, {Name: "finish", Tasks: 1}} {
		if s.Tasks > 0 {
			o.Stages = append(o.Stages, s)
		}
	}
	if err := o.Check(); err != nil {
		return nil, usagef("%v", err)
	}
	return o, nil
}

// placesOfWorkers are the variables of endpoints and regions that workers get from the planning command. None is a secret.
var placesOfWorkers = []string{"OSS_ENDPOINT", "OSS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"}

// workerEnv are the endpoints and regions for workers, as environment variables, from the plan, the environment and, for the two tables of
// a copy, profiles.
func workerEnv(p *scaleout.Plan) (env []kubernetes.EnvVar) {
	places := map[string]string{}
	for _, text := range os.Environ() {
		name, value, _ := strings.Cut(text, "=")
		if strings.HasPrefix(name, endpointEnv+"_") || strings.HasPrefix(name, instanceEnv+"_") {
			places[name] = value
		}
	}
	for _, name := range placesOfWorkers {
		places[name] = os.Getenv(name)
	}
	places[endpointEnv], places[instanceEnv] = p.Endpoint, p.Instance
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if value := places[name]; value != "" {
			env = append(env, kubernetes.EnvVar{Name: name, Value: value})
		}
	}
	return env
}

// planInNames is how much of a plan's ID stands in the names of its Jobs.
const planInNames = 8

// applyJobs has the Jobs of a plan run.
func applyJobs(c *call, o *kubernetes.Options, store jobdir.Store, p *scaleout.Plan) error {
	failed := kubernetes.Apply(c.interrupts.drain, *o, c.say.Line)
	// What counts is in the job directory: finish fails as a Job where it has said that records were rejected.
	s, err := scaleout.ReadSummary(c.interrupts.hard, store, p)
	if s == nil && failed == nil && err == nil {
		err = fmt.Errorf("all Jobs are complete, and %s has no summary: processes had another job directory, or it was changed", store)
	}
	if s == nil {
		return errors.Join(failed, err)
	}
	return endWork(c, s, err)
}
