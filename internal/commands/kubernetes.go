package commands

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tsimport/internal/jobdir"
	"tsimport/pipeline/options"
	"tsimport/scaleout"
	"tsimport/scaleout/kubernetes"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// planRunner says what the runner's manifests are to hold but for the stages, nil without a runner. It refuses wrong flags before the load is
// planned.
func planRunner(c *cli.Context) (*kubernetes.Options, error) {
	if asked := c.String("runner"); asked != "k8s" {
		runner, run := runnerOf(c)
		switch {
		case asked == "" || run:
		case runner != nil:
			return nil, usagef("--runner %q: want k8s, %s", asked, strings.Join(runner.Names, " or "))
		default:
			return nil, usagef("--runner %q: want k8s; for flink and prism use tsimport-beam", asked)
		}
		for _, f := range scaleFlags() {
			if name := f.Names()[0]; c.IsSet(name) && (name == "image" || name == "apply" || strings.HasPrefix(name, "k8s-")) {
				return nil, usagef("--%s is for --runner k8s", name)
			}
		}
		return nil, nil
	}
	memory, err := options.ParseSize(c.String("k8s-memory"))
	if err != nil || memory < 256<<20 {
		return nil, usagef("--k8s-memory %q: want a size of at least 256MiB", c.String("k8s-memory"))
	}
	o := &kubernetes.Options{
		Name: c.String("k8s-name"), Namespace: c.String("k8s-namespace"), Image: c.String("image"), JobDir: c.String("job-dir"), Workers: c.Int("workers"),
		Secret: c.String("k8s-secret"), ServiceAccount: c.String("k8s-service-account"), CPU: c.String("k8s-cpu"), MemoryBytes: memory,
	}
	if o.Name == "" {
		name := cmp.Or(c.String("table"), path.Base(c.Args().Get(1))) // of a copy, its second table
		o.Name = "tsimport-" + notInNames.ReplaceAllString(strings.ToLower(name), "-")
		o.Name = strings.Trim(o.Name[:min(len(o.Name), kubernetes.MaxNameBytes)], "-")
	}
	if v := c.String("k8s-volume"); v != "" {
		var found bool
		if o.Claim, o.MountPath, found = strings.Cut(v, ":"); !found || o.Claim == "" || !strings.HasPrefix(o.MountPath, "/") {
			return nil, usagef("--k8s-volume %q: want CLAIM:PATH, such as shared:/mnt", v)
		}
	}
	if err := o.Check(); err != nil {
		return nil, usagef("--runner k8s: %v", err)
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

// missingSummary is an error if all Jobs are complete and the load has not ended.
func missingSummary(missing bool, store jobdir.Store) error {
	if !missing {
		return nil
	}
	return fmt.Errorf("all Jobs are complete, and %s has no summary: pods had another job directory, or it was changed", store)
}

// runOn prints the manifests of the plan, or applies them.
func runOn(c *cli.Context, interrupts *interrupts, show *display, o *kubernetes.Options, store jobdir.Store, p *scaleout.Plan) error {
	o.Plan = p.ID[:min(len(p.ID), planInNames)]
	o.Env = workerEnv(p) // the access keys come from the secret or the service account
	compared := 0
	if p.Verify {
		compared = len(p.Shards)
	}
	for _, s := range []kubernetes.Stage{{Name: "read", Tasks: len(p.Splits)}, {Name: "write", Tasks: len(p.Shards)}, {Name: "verify", Tasks: compared}, {Name: "finish", Tasks: 1}} {
		if s.Tasks > 0 {
			o.Stages = append(o.Stages, s)
		}
	}
	if c.Bool("apply") {
		failed := kubernetes.Apply(interrupts.drain, *o, func(format string, a ...any) { say(c, show, format, a...) })
		// What counts is in the job directory: finish fails as a Job where it has said that records were rejected.
		s, err := scaleout.ReadSummary(interrupts.hard, store, p)
		if s == nil {
			return errors.Join(failed, err, missingSummary(failed == nil && err == nil, store))
		}
		return endWork(c, show, s, err)
	}
	manifests, err := kubernetes.Manifests(*o)
	if err != nil {
		return usagef("--runner k8s: %v", err)
	}
	say(c, show, "apply the Jobs with kubectl; all but the first are suspended: resume each when the one before is complete, or give --apply (docs/kubernetes.md)")
	_, err = fmt.Fprintf(results(c), "%s", bytes.Join(manifests, []byte("---\n")))
	return err
}
