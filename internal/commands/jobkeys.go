package commands

import (
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"tsimport/job"
)

// notInJobs are flags that a job file does not have as keys, with what to do instead.
var notInJobs = map[string]string{
	"run-dir":              "the job's folder has a run folder for each load; name the job's with tsimport run --run-dir",
	"accept-changed-input": "give tsimport run --accept-changed-input",
	"fresh":                "give tsimport run --fresh",
	"retry-rejects":        "give tsimport load --retry-rejects FOLDER, with the run folder of the load",
	"status":               "loads of a job run beside each other; give tsimport load --status",
	"plan":                 "it shows what would be done; give tsimport run --plan, or tsimport sync --plan",
	"json":                 "give tsimport run --json",
	"quiet":                "give tsimport run --quiet",
	"job-dir":              "it plans one load for many machines; give tsimport load --job-dir",
	"workers":              "it is for tsimport load --job-dir",
	"metrics-file":         "give tsimport run --metrics-file",
}

// ofJob are flags that say what all loads of a job have together; sharedByLoads are those that a load may have for itself, too.
var (
	ofJob         = []string{"memory", "max-rcu"}
	sharedByLoads = []string{"concurrency", "max-wcu", "max-rows-per-second", "max-bytes-per-second"}
)

// namesFlags are lists of names in one text.
var namesFlags = []string{"columns", "names"}

// jobVocabulary is the keys of a job file: the flags of the commands that a load may be.
func jobVocabulary() *job.Vocabulary {
	v := &job.Vocabulary{Commands: map[string][]job.Key{}, Refused: maps.Clone(notInJobs)}
	for _, g := range goneFlags {
		if g.of == "" && g.value == "" {
			v.Refused[g.name] = "it is gone: " + g.instead
		}
	}
	for command, flags := range commandsOfJobs() {
		for _, f := range flags {
			if k, ok := jobKey(f); ok {
				v.Commands[command] = append(v.Commands[command], k)
			}
		}
	}
	for _, f := range targetFlags() {
		v.Target = append(v.Target, f.Names()[0])
	}
	// An export and a copy name what they write otherwise.
	v.Commands[job.Copy] = append(v.Commands[job.Copy], job.Key{Name: "table", Usage: "table to copy to"})
	return v
}

// commandsOfJobs are the flags of the commands that a load of a job may be.
func commandsOfJobs() map[string][]cli.Flag {
	all := map[string][]cli.Flag{job.Load: loadCommandFlags(), job.Copy: copyFlags(), job.Sync: syncFlags(), job.Export: exportCommand().Flags}
	for command, flags := range all {
		all[command] = append(flags[:len(flags):len(flags)], timeoutFlag())
	}
	return all
}

// valuesOf are the texts of a flag that is set, one for each time.
func valuesOf(c *cli.Context, f cli.Flag) []string {
	name := f.Names()[0]
	if repeatable(f) {
		return textsOf(c, name)
	}
	return []string{fmt.Sprint(c.Value(name))}
}

// jobKey is a flag as a key.
func jobKey(f cli.Flag) (k job.Key, ok bool) {
	name := f.Names()[0]
	if _, refused := notInJobs[name]; refused {
		return k, false
	}
	if v, visible := f.(cli.VisibleFlag); visible && !v.IsVisible() && name != "now" {
		return k, false
	}
	k = job.Key{Name: name, OfJob: slices.Contains(ofJob, name), Shared: slices.Contains(sharedByLoads, name)}
	if d, documented := f.(cli.DocGenerationFlag); documented {
		k.Usage = d.GetUsage()
	}
	switch f.(type) {
	case *cli.BoolFlag:
		k.Kind = job.Bool
	case *cli.IntFlag, *cli.Int64Flag:
		k.Kind = job.Whole
	case *cli.Float64Flag:
		k.Kind = job.Number
	case *cli.DurationFlag:
		k.Kind = job.Duration
	case *cli.GenericFlag:
		k.Kind = job.List
	}
	if slices.Contains(namesFlags, name) {
		k.Kind = job.Names
	}
	return k, true
}
