package commands

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/transfer/lifecycle/apply"
	"example.com/tsimport/transfer/lifecycle/archive"
)

func ageCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "age",
		Usage: "apply a lifecycle policy to per-period tables: throughput, time to live, archive",
		Description: "Prints what the policy would change in tables that match the template. With --apply it makes these " +
			"changes,\nreserved throughput at most once in --throughput-interval, and exports expired tables as exact " +
			"archives, to a folder or an object store.\n" +
			"With --drop-expired too, it drops each expired table after comparing it with its archive, or without an\n" +
			"archive if the policy says drop; do not write to expired tables meanwhile. To continue a stopped run, give the " +
			"same command again. docs/age.md describes the policy.",
		Flags: append(flagsOf(options.Reaching|options.Ending), []cli.Flag{
			&cli.StringFlag{Name: "policy", Usage: "`FILE` with the policy, YAML"},
			&cli.StringFlag{Name: "table", Aliases: []string{"t"},
				Usage: "`TEMPLATE` of the tables' names, such as consume_{month}; {day} and {year} work too"},
			&cli.BoolFlag{Name: "apply", Usage: "make the changes (default: only show them)"},
			&cli.BoolFlag{Name: "drop-expired",
				Usage: "drop expired tables once their export is verified, and those that the policy drops without one"},
			&cli.DurationFlag{Name: "throughput-interval", Usage: "minimum `DURATION` between two changes of a table's " +
				"reserved throughput, as the service requires; 0 means none", Value: apply.DefaultInterval},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
			&cli.StringFlag{Name: "now", Usage: "take `TIME` (RFC 3339) for now", Hidden: true}, // for tests over months
		}...),
		Action: in.with(options.Reaching|options.Ending, ageTables),
	}
}

func ageRequest(c *call) (r apply.Request, err error) {
	switch {
	case c.Args().Present():
		return r, usagef("age takes no arguments (%q); tables are named with --table", c.Args().First())
	case c.String("policy") == "":
		return r, usagef("no policy: give --policy FILE; docs/age.md describes it")
	case c.String("table") == "":
		return r, usagef("no tables: give --table with a period in braces, as in consume_{month}")
	case c.Duration("throughput-interval") < 0:
		return r, usagef("--throughput-interval must not be negative, got %s", c.Duration("throughput-interval"))
	}
	r.DropExpired = c.Bool("drop-expired")
	if text := c.String("now"); text != "" {
		if r.Now, err = time.Parse(time.RFC3339, text); err != nil {
			return r, usagef("--now %q: want a time such as 2024-05-15T00:00:00Z", text)
		}
	}
	if r.Template, err = lifecycle.ParseTemplate(c.String("table")); err != nil {
		return r, usagef("--table: %v", err)
	}
	if r.Policy, err = lifecycle.Read(c.String("policy")); err != nil {
		return r, usagef("%v", err)
	}
	if err := r.Policy.Fits(r.Template); err != nil {
		return r, usagef("%v", err)
	}
	last := r.Policy.Classes[len(r.Policy.Classes)-1]
	switch {
	case r.DropExpired && !last.Expires():
		return r, usagef("--drop-expired needs archive or drop in the policy's last class; add one, or leave the flag out")
	case !last.Archives():
		return r, nil
	}
	stores := storesOf(c)
	if r.Archive, err = archive.At(c.Context, last.Archive, jobdir.Options{OSS: stores.OSS, S3: stores.S3}); err != nil {
		return r, usagef("policy %s: archive %v", c.String("policy"), err)
	}
	r.Archive.OnWait = c.waits(last.Archive, "archive")
	return r, nil
}

func ageTables(c *call) (err error) {
	r, err := ageRequest(c)
	if err != nil {
		return err
	}
	t, err := openTarget(c, access{readOnly: !c.Bool("apply")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.mustExist(); err != nil {
		return err
	}
	traffic := new(client.Traffic)
	sdk, err := client.New(c.Context, t.Target, traffic)
	if err != nil {
		return usagef("%v", err)
	}
	r.Admin = &client.Admin{Client: sdk, Context: c.Context}
	if r.Admin.AskTime(&traffic.Clock); !c.IsSet("now") {
		r.Now = traffic.Clock.Now() // a wrong clock must not make a table seem older
	}
	if warning := traffic.Clock.SkewWarning(); warning != "" {
		c.say.Warn("%s", warning)
	}
	if r.Target, err = t.identity(); err != nil {
		return err
	}
	plan, err := apply.Look(c.Context, r)
	if err != nil {
		return err
	}
	sayOthers(c, plan, t)
	var stopped error
	lack := slices.DeleteFunc(slices.Clone(plan.Items), func(i *apply.Item) bool { return !i.Exports() })
	if c.Bool("apply") {
		interval := cmp.Or(c.Duration("throughput-interval"), -1) // 0 would mean the default
		stopped = plan.Run(c.Context, apply.Pace{Clock: apply.Clock{Now: traffic.Clock.Now, Wait: apply.SystemClock.Wait},
			Interval: interval, Say: func(_ words.Kind, line string) { c.say.Line("%s", client.OneLine(line)) }})
	}
	var archived int64
	for _, i := range lack {
		if i.Export != nil {
			archived += i.Export.Rows
		}
	}
	endingOf(c).count("archived", archived)
	return ageResult(c, plan, t, stopped)
}

// ageResult shows the plan or its outcome, and returns the error that sets the exit code.
func ageResult(c *call, plan *apply.Plan, t *target, stopped error) error {
	counts := map[apply.State]int{}
	var codes []int
	first := ""
	for _, i := range plan.Items {
		if counts[i.State]++; i.State == apply.Failed {
			codes = append(codes, exitcode.Of(i.Err))
			first = cmp.Or(first, "; the first: "+client.OneLine(i.Err.Error()))
		}
	}
	said := fmt.Sprintf("%d tables changed, %d already matched the policy, %d failed", counts[apply.Done],
		counts[apply.Unchanged], counts[apply.Failed])
	result := stopped
	if len(codes) > 0 && stopped == nil {
		result = &exitError{code: exitcode.First(codes...)}
	}
	show := printAges
	if c.of.JSON {
		show = printAgesJSON
	}
	if err := show(c, plan, t, result); err != nil {
		return errors.Join(err, stopped)
	}
	switch {
	case result != nil:
		return endsWith(c, exitcode.Of(result), stopped,
			fmt.Sprintf("%s, %d not done; give the same command again to continue%s", said, counts[apply.Planned], first))
	case !c.Bool("apply") && counts[apply.Planned] > 0:
		c.say.Line("%d of %d tables would change; --apply changes them", counts[apply.Planned], len(plan.Items))
	case len(plan.Items) == 0: // already reported
	case !c.Bool("apply"):
		c.say.Line("all %d tables match the policy", len(plan.Items))
	default:
		c.say.Line("%s", said)
	}
	return nil
}

// identity returns the name of the instance or embedded store in manifests. It does not depend on how that is reached.
func (t *target) identity() (string, error) {
	if !t.embedded {
		return "instance " + t.Instance, nil
	}
	dir, err := filepath.Abs(t.dir)
	return "store " + dir, err
}

// sayOthers lists tables whose names only resemble the template.
func sayOthers(c *call, plan *apply.Plan, t *target) {
	if len(plan.Items) == 0 {
		c.say.Line("there is no table %s in %s", plan.Template, t.name)
	}
	for _, name := range plan.Others {
		c.say.Line("table %s has no %s in its name and is skipped", name, plan.Template.Unit)
	}
}
