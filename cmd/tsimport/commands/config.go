package commands

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/tablestore/accesskey"
	"example.com/tsimport/internal/tablestore/profile"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/input"
)

func configCommand(in *invocation) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "show defaults, too"},
		&cli.IntFlag{Name: "parallel", Usage: "`N` loads at a time, as for tsimport run (default: as the file says, or 1)"},
	}
	for _, o := range options.Of(options.Load) {
		if o.Instead == "" {
			flags = append(flags, flagOf(o, o.Hidden))
		}
	}
	return &cli.Command{
		Name:      "config",
		Usage:     "show the options of a load, and where each value comes from",
		ArgsUsage: "[JOB.yaml [NAME...]]",
		Description: "Takes the flags of tsimport load. The first that gives a value counts: flag, environment, job file, " +
			"profile, default; but a target in a job file (endpoint, instance, profile, store) precedes the environment's. " +
			"Connects to nothing and shows no secrets.",
		Flags:  flags,
		Action: in.with(options.Reaching, showConfig),
	}
}

type origin struct{ key, value, from string }

func showConfig(c *call) error {
	w := tabwriter.NewWriter(results(c), 0, 0, 2, ' ', 0)
	if !c.Args().Present() {
		rows, err := originsOf(c, job.Load, options.Of(options.Load), nil, "")
		if err != nil {
			return err
		}
		writeOrigins(w, rows)
		return w.Flush()
	}
	file, err := readJobFile(c, c.Args().Tail())
	if err != nil {
		return jobError(err)
	}
	common, err := job.ResolveSettings(file.Path, file.Common, os.LookupEnv)
	if err != nil {
		return jobError(err)
	}
	for i, l := range file.Loads {
		resolved, err := l.Resolve(file.Path, os.LookupEnv)
		if err != nil {
			return jobError(err)
		}
		rows, err := originsOf(c, l.Command, options.OfCommand(l.Command), slices.Concat(resolved.Settings, common),
			file.Path)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s:\t%s\t%s\n", l.Name, l.Command, strings.Join(redactedAll(resolved.From), " "))
		writeOrigins(w, rows)
	}
	return w.Flush()
}

func writeOrigins(w *tabwriter.Writer, rows []origin) {
	for _, r := range rows {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.key, printable(input.Redact(r.value)), printable(r.from))
	}
}

// originsOf returns the origins of the values of the options in all. settings are those of a job file, or nil.
func originsOf(c *call, command string, all []*options.Option, settings []job.Setting, file string) (rows []origin,
	err error) {
	values := map[string]string{}
	for _, o := range all { // flags of this command include values from the environment
		name, f := o.Name, flagOf(o, false)
		if !o.InJobs(command) {
			continue
		}
		r := origin{key: name, from: "default"}
		if g, ok := f.(cli.DocGenerationFlag); ok {
			r.value = cmp.Or(g.GetDefaultText(), g.GetValue())
		}
		i := slices.IndexFunc(settings, func(s job.Setting) bool { return s.Key == name })
		value, variable, ok := fromEnvironment(name)
		first := namesTarget(settings) && slices.Contains(targetKeys, name) &&
			(!c.IsSet(name) || slices.Contains(c.in.ofEnv, name))
		switch {
		case i >= 0 && (first || !ok && !c.IsSet(name)):
			r.value, r.from = strings.Join(settings[i].Values, " "), fmt.Sprintf("%s:%d", file, settings[i].Line())
		case ok && (!c.IsSet(name) || strings.Join(valuesOf(c.line, f), "\n") == value):
			r.value, r.from = value, variable
		case c.IsSet(name):
			r.value, r.from = strings.Join(valuesOf(c.line, f), " "), "flag"
		}
		if r.from != "default" {
			values[name] = r.value
		}
		if r.from != "default" || c.Bool("all") {
			rows = append(rows, r)
		}
	}
	of := new(profile.Profile)
	if name := values["profile"]; name != "" {
		if of, err = profile.Find(name); err != nil {
			return nil, usagef("--profile: %v", err)
		}
	}
	if values["store"] != "" {
		return rows, nil
	}
	if values["endpoint"] == "" && of.Endpoint != "" {
		rows = append(rows, origin{"endpoint", of.Endpoint, of.EndpointFrom})
	}
	if cmp.Or(values["endpoint"], of.Endpoint) == "" {
		return append(rows, origin{"store", defaultStore, "default"}), nil
	}
	if values["instance"] == "" && of.Instance != "" {
		rows = append(rows, origin{"instance", of.Instance, of.InstanceFrom})
	}
	return append(rows, keyOrigin(of)), nil
}

func keyOrigin(of *profile.Profile) origin {
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		if p, err := accesskey.Environment(family, ""); p != nil || err != nil {
			return keyFrom(family+"_ACCESS_KEY_ID", p, err)
		}
	}
	if of.Name == "" {
		return origin{"access key", "not looked for", "the provider chain of the vendor's library"}
	}
	p, from, err := of.Keys()
	return keyFrom(from, p, err)
}

// keyFrom returns the first characters of an access key ID, or the reason why there is none.
func keyFrom(from string, p common.CredentialsProvider, err error) origin {
	if err != nil {
		return origin{"access key", err.Error(), from}
	}
	id := p.GetCredentials().GetAccessKeyID()
	return origin{"access key", id[:min(4, len(id))] + "…", from}
}
