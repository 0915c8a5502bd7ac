package kubernetes

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/exitcode"
)

// Limits of Kubernetes for Indexed Jobs with a limit of attempts for each index.
const (
	maxIndexes     = 100_000
	maxParallelism = 10_000 // of a Job with more than as many indexes, and the most of its indexes that may fail
)

// MaxNameBytes bounds the name of a load's Jobs: a pod's name, 63 characters at most, has it, the plan, the stage and the index.
const MaxNameBytes = 34

// attempts are how often a pod of one index may fail before the index has.
const attempts = 6

// scratchDir is where a pod keeps what does not fit in memory, and its run folders. It ends with the pod.
const scratchDir = "/data"

// Options are what the manifests say beside the plan.
type Options struct {
	Name      string // of the Jobs, before the plan and the stage: letters, digits and hyphens
	Plan      string // its ID: Jobs of an earlier plan are others
	Namespace string // "" is that of kubectl
	Image     string // of this version of tsimport
	JobDir    string // as workers open it
	Workers   int    // pods that run at a time
	Stages    []Stage

	// Secret has the access key as environment variables. ServiceAccount has its rights by OIDC. Both may be "".
	Secret, ServiceAccount string
	// Claim is a volume claim that is mounted at MountPath, for a job directory or inputs in a shared folder. "" is none.
	Claim, MountPath string
	// Env is for every pod; no secrets.
	Env []EnvVar
	// CPU is requested, in cores; MemoryBytes is requested and the limit.
	CPU         string
	MemoryBytes int64
}

// Stage is a stage of the job directory with its number of tasks.
type Stage struct {
	Name  string // as tsimport work --stage takes it
	Tasks int
}

// EnvVar is an environment variable of a container.
type EnvVar struct{ Name, Value string }

var nameOfJobs = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,32}[a-z0-9])?$`)

// Check refuses what Kubernetes would refuse, or what pods could not reach.
func (o *Options) Check() error {
	if !nameOfJobs.MatchString(o.Name) {
		return fmt.Errorf("%q cannot be the name of Jobs: want at most %d lower-case letters, digits and hyphens, a letter first", o.Name, MaxNameBytes)
	}
	if o.Image == "" {
		return fmt.Errorf("no image: name one that has this version of tsimport")
	}
	for _, s := range o.Stages {
		if s.Tasks > maxIndexes {
			return fmt.Errorf("%d tasks to %s: an Indexed Job has at most %d; make splits larger", s.Tasks, s.Name, maxIndexes)
		}
	}
	if strings.Contains(o.JobDir, "://") {
		return nil
	}
	if o.Claim == "" {
		return fmt.Errorf("pods do not reach the folder %s: name the volume claim that holds it and where it is mounted, or use oss:// or s3://", o.JobDir)
	}
	if o.JobDir != o.MountPath && !strings.HasPrefix(o.JobDir, strings.TrimSuffix(o.MountPath, "/")+"/") {
		return fmt.Errorf("the job directory %s is not below %s, where the volume claim %s is mounted", o.JobDir, o.MountPath, o.Claim)
	}
	return nil
}

// Manifests returns the Job of each stage as YAML. All but the first are suspended: each stage needs the results of the one before.
func Manifests(o Options) ([][]byte, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var all [][]byte
	for i, s := range o.Stages {
		var text bytes.Buffer
		j := jobOf{
			Options: &o, Stage: s, Suspended: i > 0, Job: o.JobName(s.Name), Parallelism: min(max(o.Workers, 1), s.Tasks, maxParallelism), Attempts: attempts,
			FinalCodes: finalCodes, Scratch: scratchDir, Memory: o.MemoryBytes >> 20, OwnMemory: o.MemoryBytes / 4 * 3 >> 20,
		}
		if s.Tasks > maxParallelism {
			j.MaxFailed = maxParallelism
		}
		if err := jobTemplate().Execute(&text, j); err != nil {
			return nil, fmt.Errorf("write the manifest of stage %s: %w", s.Name, err)
		}
		all = append(all, text.Bytes())
	}
	return all, nil
}

// JobName is the name of the Job of a stage.
func (o *Options) JobName(stage string) string { return o.Name + "-" + o.Plan + "-" + stage }

// jobOf is what the manifest of a stage says.
type jobOf struct {
	*Options
	Stage                            Stage
	Suspended                        bool
	Job, Scratch                     string
	Parallelism, Attempts, MaxFailed int
	FinalCodes                       []int
	Memory, OwnMemory                int64 // MiB: of the pod, and what the program may take of it
}

//go:embed job.yaml
var jobYAML string

// jobTemplate is made when it is needed: most commands write no manifest. A module of its own decodes manifests into the API's types (k8s/).
var jobTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("job").Funcs(template.FuncMap{"scalar": scalar}).Parse(jobYAML))
})

// scalar is a text as YAML has it, in one line.
func scalar(text string) (string, error) {
	out, err := yaml.Marshal(text)
	if line := strings.TrimSuffix(string(out), "\n"); err != nil || !strings.Contains(line, "\n") {
		return line, err
	}
	out, err = json.Marshal(text)
	return string(out), err
}

// finalCodes are exit codes of a task after which another attempt would end alike. Those of Finish that say how the load ended are among them.
var finalCodes = []int{exitcode.Usage, exitcode.Rejects, exitcode.ErrorLimit, exitcode.Refused, exitcode.Differences, exitcode.NoInput}
