package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"example.com/tsimport/ratelimit"
)

// lookEvery is how often a Job is looked at.
const lookEvery = 5 * time.Second

// Apply runs the stages with kubectl, one after the other: it applies each Job, which is not suspended any more, and waits until it is
// complete or has failed. A Job that is complete already is left as it is, so the same call continues after an interruption. Progress goes to
// say. When the context ends, the Job of the moment keeps running.
func Apply(ctx context.Context, o Options, say func(format string, a ...any)) error {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return fmt.Errorf("find kubectl: %w; without it, pipe the manifests of this command to what applies them", err)
	}
	k := &cluster{kubectl: kubectl, namespace: o.Namespace}
	manifests, err := Manifests(o)
	if err != nil {
		return err
	}
	for i, s := range o.Stages {
		if err := k.stage(ctx, o.JobName(s.Name), bytes.Replace(manifests[i], []byte("  suspend: true\n"), nil, 1), s.Tasks, say); err != nil {
			return err
		}
	}
	return nil
}

type cluster struct{ kubectl, namespace string }

// run calls kubectl with the text on its standard input.
func (k *cluster) run(ctx context.Context, text []byte, args ...string) ([]byte, error) {
	if k.namespace != "" {
		args = append(args, "--namespace", k.namespace)
	}
	cmd := exec.CommandContext(ctx, k.kubectl, args...)
	cmd.Stdin = bytes.NewReader(text)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&errs)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// stage applies the Job and waits for it.
func (k *cluster) stage(ctx context.Context, name string, manifest []byte, tasks int, say func(format string, a ...any)) error {
	if _, err := k.run(ctx, manifest, "apply", "-f", "-"); err != nil {
		return err
	}
	say("%s: %d tasks", name, tasks)
	last := -1
	for {
		s, err := k.state(ctx, name)
		if err != nil {
			return err
		}
		if s.Succeeded != last {
			last = s.Succeeded
			say("%s: %d of %d done", name, s.Succeeded, tasks)
		}
		for _, c := range s.Conditions {
			switch {
			case c.Status != "True":
			case c.Type == "Complete":
				return nil
			case c.Type == "Failed":
				return fmt.Errorf("job %s failed: %s: %s; see: kubectl logs --selector job-name=%s", name, c.Reason, c.Message, name)
			}
		}
		if err := ratelimit.Wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// jobState is the status of a Job.
type jobState struct {
	Succeeded  int `json:"succeeded"`
	Conditions []struct {
		Type, Status, Reason, Message string
	} `json:"conditions"`
}

func (k *cluster) state(ctx context.Context, name string) (*jobState, error) {
	text, err := k.run(ctx, nil, "get", "job", name, "-o", "json")
	if err != nil {
		return nil, err
	}
	var j struct {
		Status jobState `json:"status"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("read the state of job %s: %w", name, err)
	}
	return &j.Status, nil
}
