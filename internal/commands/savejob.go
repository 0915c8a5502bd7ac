package commands

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tsimport/internal/atomicfile"
	"tsimport/internal/suggest"
	"tsimport/job"
	"tsimport/reader/input"
)

const saveJobUsage = "write the command as a job to `FILE` and load nothing; secrets of addresses become variables (docs/jobs.md)"

// saveJob writes a command as a job file.
func saveJob(c *cli.Context, show *display, command string) error {
	path := c.String("save-job")
	l := job.Single{Command: command, From: c.Args().Slice()}
	f := &job.File{}
	vocabulary := jobVocabulary()
	var target []job.Setting
	for _, flag := range c.Command.Flags {
		name := flag.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		if why, ok := notInJobs[name]; ok {
			if name != "save-job" {
				say(c, show, "note: --%s is not in the job: %s", name, why)
			}
			continue
		}
		s := job.Setting{Key: name, Values: valuesOf(c, flag)}
		switch {
		case name == "table":
			l.Name = s.Values[0]
			l.Settings = append(l.Settings, s)
		case slices.Contains(vocabulary.Target, name):
			target = append(target, s)
		case slices.Contains(ofJob, name) || slices.Contains(sharedByLoads, name):
			f.Common = append(f.Common, s)
		default:
			l.Settings = append(l.Settings, s)
		}
	}
	if command == job.Copy && len(l.From) == 2 {
		l.Name = l.From[1]
		l.Settings = append(l.Settings, job.Setting{Key: "table", Values: []string{l.From[1]}})
		l.From = l.From[:1]
	}
	target = fromVariables(c, target)
	var secrets []string
	for i, from := range l.From {
		if input.Redact(from) != from {
			name := fmt.Sprintf("INPUT_%d", i+1)
			l.From[i] = "${" + name + "}"
			secrets = append(secrets, name+" to "+input.Redact(from))
		}
	}
	if !job.IsName(l.Name) {
		l.Name = "load"
	}
	if l.Value("table") == l.Name {
		l.Settings = slices.DeleteFunc(l.Settings, func(s job.Setting) bool { return s.Key == "table" })
	}
	f.Loads = []job.Single{l}
	text, err := f.Marshal(vocabulary, target)
	if err != nil {
		return usagef("--save-job: %v", err)
	}
	if err := atomicfile.WriteNew(c.Context, path, 0o644, text); err != nil {
		return fmt.Errorf("save job: %w", err)
	}
	say(c, show, "saved: %s; to run it: %s run %s", path, commandName(), suggest.Arg(path))
	if len(secrets) > 0 {
		say(c, show, "before that, set %s, with its secrets", strings.Join(secrets, ", "))
	}
	return nil
}

// fromVariables adds where the environment says the target is.
func fromVariables(c *cli.Context, target []job.Setting) []job.Setting {
	if c.String("store") != "" || c.String("endpoint") == "" && os.Getenv(endpointEnv) == "" {
		return target
	}
	for _, name := range []string{"endpoint", "instance"} {
		if variable := olderNames[name]; c.String(name) == "" && os.Getenv(variable) != "" {
			target = append(target, job.Setting{Key: name, Values: []string{"${" + variable + "}"}})
		}
	}
	return target
}
