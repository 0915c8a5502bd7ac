package kubernetes

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/exitcode"
)

// maxWorkers is Kubernetes' limit for parallel pods of an Indexed Job that limits attempts per index.
const maxWorkers = 10_000

// MaxNameBytes limits the name of a load's Job: a pod's name, at most 63 characters, adds the plan and the index.
const MaxNameBytes = 40

// Options holds the settings of the manifest that are not in the plan. Others can be added with a patch.
type Options struct {
	Name    string // name of the Job, without the plan: letters, digits and hyphens
	Plan    string // ID of the plan: another plan has another Job
	Image   string // image with this version of tsimport
	JobDir  string // name by which workers open the job directory
	Workers int
	// Secret is the name of a Secret with the access key as environment variables; "" means none.
	Secret string
	// Claim is a volume claim mounted at MountPath, for a job directory or inputs in a shared folder. "" means none.
	Claim, MountPath string
	// Env holds variables for every pod. It must not contain secrets.
	Env []EnvVar
	// MemoryBytes is both requested and the limit. DiskBytes is only requested.
	MemoryBytes, DiskBytes int64
}

// EnvVar is an environment variable of a container.
type EnvVar struct{ Name, Value string }

var nameOfJob = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

// check refuses values that Kubernetes would refuse, and places that pods could not reach.
func (o *Options) check() error {
	switch {
	case !nameOfJob.MatchString(o.Name):
		return fmt.Errorf("%q cannot be the name of a Job: want at most %d lower-case letters, digits and hyphens, a "+
			"letter first, no hyphen last", o.Name, MaxNameBytes)
	case o.Image == "":
		return fmt.Errorf("no image: give --image with the name of an image that has this version of tsimport")
	case o.Workers < 1 || o.Workers > maxWorkers:
		return fmt.Errorf("--workers %d: a Job runs 1 to %d pods at a time", o.Workers, maxWorkers)
	case strings.Contains(o.JobDir, "://"):
	case o.Claim == "":
		return fmt.Errorf("pods cannot reach the folder %s: name the volume claim that holds it and its mount path "+
			"(--volume CLAIM:PATH), or use oss:// or s3://", o.JobDir)
	case o.JobDir != o.MountPath && !strings.HasPrefix(o.JobDir, strings.TrimSuffix(o.MountPath, "/")+"/"):
		return fmt.Errorf("job directory %s is not below %s, where volume claim %s is mounted (--volume); change one",
			o.JobDir, o.MountPath, o.Claim)
	}
	return nil
}

//go:embed job.yaml
var jobYAML string

// Manifest returns the Job as YAML.
func Manifest(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t := template.Must(template.New("job").Funcs(template.FuncMap{"scalar": scalar}).Parse(jobYAML))
	var text bytes.Buffer
	err := t.Execute(&text, struct {
		*Options
		Job                     string
		Attempts                int // per index; an index whose pods have failed this often is given up
		EndAll, EndOne          []int
		Memory, OwnMemory, Disk int64 // in MiB; Memory is the pod's, OwnMemory the program's limit
	}{
		&o, o.Name + "-" + o.Plan, 6, []int{exitcode.ErrorLimit, exitcode.Refused},
		[]int{exitcode.Usage, exitcode.Rejects, exitcode.Differences, exitcode.NoInput}, o.MemoryBytes >> 20,
		o.MemoryBytes / 4 * 3 >> 20, o.DiskBytes >> 20,
	})
	return text.Bytes(), err
}

// scalar formats a text as a YAML scalar on one line.
func scalar(text string) (string, error) {
	out, err := yaml.Marshal(text)
	line := strings.TrimSuffix(string(out), "\n")
	if strings.Contains(line, "\n") {
		out, err = json.Marshal(text)
		line = string(out)
	}
	return line, err
}
