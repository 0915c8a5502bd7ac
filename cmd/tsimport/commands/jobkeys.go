package commands

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
)

// notAKey is what to do instead of a key of a job file that a flag is not; "" if it is one.
func notAKey(flag string) string {
	if o := options.Find(flag); o != nil {
		return o.Instead
	}
	return ""
}

// jobVocabulary is the keys of a job file: the flags of the commands that a load may be.
func jobVocabulary() *job.Vocabulary {
	v := &job.Vocabulary{Commands: map[string][]job.Key{}, Refused: map[string]string{}}
	for _, g := range goneFlags {
		if g.of == "" && g.value == "" {
			v.Refused[g.name] = "it is gone: " + g.instead
		}
	}
	for command, flags := range commandsOfJobs() {
		for _, f := range flags {
			if k, ok := jobKey(command, f); ok {
				v.Commands[command] = append(v.Commands[command], k)
			} else if why := notAKey(f.Names()[0]); why != "" {
				v.Refused[f.Names()[0]] = why
			}
		}
	}
	for _, f := range flagsOf(options.Reaching) {
		v.Target = append(v.Target, f.Names()[0])
	}
	// An export and a copy name what they write otherwise.
	v.Commands[job.Copy] = append(v.Commands[job.Copy], job.Key{Name: "table", Usage: "table to copy to"})
	return v
}

// commandsOfJobs are the flags of the commands that a load of a job may be.
func commandsOfJobs() map[string][]cli.Flag {
	all := map[string][]cli.Flag{}
	for command, of := range map[string]options.Commands{job.Load: options.Load, job.Copy: options.Copy, job.Sync: options.Sync, job.Export: options.Export} {
		all[command] = append(flagsOf(of), flagNamed("timeout"))
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

// jobKinds are the kinds of options as those of keys.
var jobKinds = map[options.Kind]job.Kind{
	options.Switch: job.Bool, options.Whole: job.Whole, options.Number: job.Number, options.Duration: job.Duration, options.List: job.Names,
	options.Texts: job.List, options.Lists: job.List, options.Renamings: job.List, options.Typings: job.List,
}

// jobKey is a flag as a key.
func jobKey(command string, f cli.Flag) (k job.Key, ok bool) {
	name := f.Names()[0]
	if v, visible := f.(cli.VisibleFlag); notAKey(name) != "" || visible && !v.IsVisible() && name != "now" && name != "bad-inputs" {
		return k, false
	}
	k.Name = name
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
	}
	if o := options.For(command, name); o != nil {
		k.Kind, k.Values, k.OfJob, k.Shared = jobKinds[o.Kind], o.Values, o.Scope == options.OfJob, o.Scope == options.OfBoth
	}
	return k, true
}
