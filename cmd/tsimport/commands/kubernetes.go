package commands

import (
	"cmp"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/jobs/scaleout"
	"example.com/tsimport/jobs/scaleout/kubernetes"
	"example.com/tsimport/pipeline/options"
)

func manifestsCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name: "manifests", Usage: "print the Kubernetes Job of a load or job planned for many machines", ArgsUsage: "JOBDIR",
		Description: "Prints an Indexed Job, as YAML, for Kubernetes 1.29 or newer. Each of its pods is a worker. What\n" +
			"has no flag here can be patched with kubectl or Kustomize (docs/many-machines.md).",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`IMAGE` with this version of tsimport"},
			&cli.StringFlag{Name: "name",
				Usage: "`NAME` of the Job, without the plan's ID, which follows it (default: tsimport- and the table or job file)"},
			&cli.IntFlag{Name: "workers", Usage: "run `N` pods (default: as many as the load was planned for)"},
			&cli.StringFlag{Name: "secret", Usage: "`SECRET` with the access keys as environment variables"},
			&cli.StringFlag{Name: "volume", Usage: "volume claim with shared folders and where pods mount it, `CLAIM:PATH`"},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory of each pod, three quarters for rows", Value: "2GiB"},
		},
		Action: in.act(func(c *call) error {
			if c.NArg() != 1 {
				return usagef("tsimport manifests takes one job directory, not %d", c.NArg())
			}
			store, err := openJobDir(c, c.Args().First())
			if err != nil {
				return err
			}
			l, err := scaleout.ReadLoads(c.Context, store)
			if err != nil {
				return err
			}
			var p *scaleout.Plan
			var disk int64
			if l != nil {
				p, disk, err = planOfSeveral(c, store, l)
			} else if p, err = scaleout.ReadPlan(c.Context, store); err == nil {
				disk = p.DiskBytes()
			}
			if err != nil {
				return err
			}
			o, err := jobOf(c, store.String(), p, disk)
			if err != nil {
				return err
			}
			manifest, err := kubernetes.Manifest(*o)
			if err != nil {
				return usagef("%v", err)
			}
			_, err = results(c).Write(manifest)
			return err
		}),
	}
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func jobOf(c *call, place string, p *scaleout.Plan, disk int64) (*kubernetes.Options, error) {
	memory, err := options.ParseSize(c.String("memory"))
	if err != nil || memory < 256<<20 {
		return nil, usagef("--memory %q: want a size of at least 256MiB", c.String("memory"))
	}
	o := &kubernetes.Options{
		Name: c.String("name"), Plan: p.ID[:min(len(p.ID), planInNames)], Image: c.String("image"), JobDir: place,
		Workers: cmp.Or(c.Int("workers"), p.Workers), Secret: c.String("secret"), MemoryBytes: memory, DiskBytes: disk,
		Env: workerEnv(p), // access keys are in the secret or belong to a service account
	}
	if o.Name == "" {
		o.Name = "tsimport-" + notInNames.ReplaceAllString(strings.ToLower(path.Base(p.Job.Table)), "-")
		o.Name = strings.Trim(o.Name[:min(len(o.Name), kubernetes.MaxNameBytes)], "-")
	}
	if v := c.String("volume"); v != "" {
		var found bool
		if o.Claim, o.MountPath, found = strings.Cut(v, ":"); !found || o.Claim == "" ||
			!strings.HasPrefix(o.MountPath, "/") {
			return nil, usagef("--volume %q: want CLAIM:PATH, such as shared:/mnt", v)
		}
	}
	return o, nil
}

// placesOfWorkers lists variables with endpoints and regions that workers inherit from planning. None is a secret.
var placesOfWorkers = []string{"OSS_ENDPOINT", "OSS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION",
	"AWS_DEFAULT_REGION"}

// workerEnv returns environment variables with the workers' endpoints and regions, from plan, environment or profiles.
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

// planInNames is the number of characters of a plan's ID in the name of its Job.
const planInNames = 8
