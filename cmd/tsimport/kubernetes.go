package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"tsimport/pipeline/options"
	"tsimport/scaleout"
	"tsimport/scaleout/kubernetes"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// planRunner says what the runner's manifests are to hold but for the stages, nil without a runner. It refuses wrong flags before the load is
// planned.
func planRunner(c *cli.Context) (*kubernetes.Options, error) {
	if c.String("runner") == "" {
		for _, f := range scaleFlags() {
			if name := f.Names()[0]; c.IsSet(name) && (name == "image" || name == "apply" || strings.HasPrefix(name, "k8s-")) {
				return nil, usagef("--%s is for --runner k8s", name)
			}
		}
		return nil, nil
	}
	if c.String("runner") != "k8s" {
		return nil, usagef("--runner %q: want k8s; for flink and prism use tsimport-beam", c.String("runner"))
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
		o.Name = strings.Trim("tsimport-"+notInNames.ReplaceAllString(strings.ToLower(c.String("table")), "-"), "-")
	}
	if v := c.String("k8s-volume"); v != "" {
		var found bool
		if o.Claim, o.MountPath, found = strings.Cut(v, ":"); !found || o.Claim == "" || !strings.HasPrefix(o.MountPath, "/") {
			return nil, usagef("--k8s-volume %q: want CLAIM:PATH, such as shared:/mnt", v)
		}
	}
	// What pods take from their environment; the access keys come from the secret or the service account.
	for _, e := range []struct{ name, flag string }{
		{"TABLESTORE_ENDPOINT", "endpoint"}, {"TABLESTORE_INSTANCE", "instance"}, {"OSS_ENDPOINT", "oss-endpoint"}, {"OSS_REGION", "oss-region"}, {"AWS_ENDPOINT_URL", "s3-endpoint"},
	} {
		if value := c.String(e.flag); value != "" {
			o.Env = append(o.Env, kubernetes.EnvVar{Name: e.name, Value: value})
		}
	}
	if err := o.Check(); err != nil {
		return nil, usagef("--runner k8s: %v", err)
	}
	return o, nil
}

// runOn prints the manifests of the plan, or applies them.
func runOn(c *cli.Context, interrupts *interrupts, show *display, o *kubernetes.Options, p *scaleout.Plan) error {
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
		return kubernetes.Apply(interrupts.drain, *o, func(format string, a ...any) { say(c, show, format, a...) })
	}
	manifests, err := kubernetes.Manifests(*o)
	if err != nil {
		return usagef("--runner k8s: %v", err)
	}
	say(c, show, "apply the Jobs with kubectl; all but the first are suspended: resume each when the one before is complete, or give --apply (docs/kubernetes.md)")
	_, err = fmt.Fprintf(results(c), "%s", bytes.Join(manifests, []byte("---\n")))
	return err
}
