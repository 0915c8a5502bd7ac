package commands

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
)

// A run that is resumed, a load of a job and a worker do what was asked for: each option has the value that it has when it is typed.
func TestACommandThatIsNotTypedSaysTheSame(t *testing.T) {
	values := map[options.Kind]string{
		options.Plain: "text", options.Whole: "0", options.Number: "2.5", options.Size: "3MiB", options.Duration: "90s", options.Texts: "a", options.List: `a,"b,c"`,
		options.Lists: "d", options.Renamings: `"x=y"=z`, options.Typings: "a=integer",
	}
	for _, command := range []string{job.Load, job.Copy, job.Sync, job.Export} {
		flags := flagsOf(options.Having(command))
		for _, o := range options.OfCommand(command) {
			args := []string{"--" + o.Name}
			if value := values[o.Kind]; o.Kind != options.Switch {
				switch {
				case o.Kind == options.Whole && o.Name != "examples":
					value = "7"
				case o.Values != nil:
					value = o.Values[len(o.Values)-1]
				}
				args = append(args, value)
			}
			if o.Name == "metrics-file" {
				continue // of a job, not of its loads
			}
			must(t, given(t, options.Having(command), flags, append(args, "--", "in.csv"), func(c *call) error {
				kept, err := options.ReadCommand(written(c.given))
				must(t, err)
				again := new(invocation).again(t.Context(), kept, nil, nil, nil)
				for _, p := range options.OfCommand(command) {
					is, want := fmt.Sprint(p.Value(again.given)), valueOf(c, p)
					if want != nil && is != fmt.Sprint(want) || is != fmt.Sprint(p.Value(c.of)) || p.Default == "" && again.given.IsSet(p.Name) != c.IsSet(p.Name) {
						t.Errorf("%s %s: --%s is %v (%v), want %v (%v)", command, strings.Join(args, " "), p.Name, is, again.given.IsSet(p.Name), want, c.IsSet(p.Name))
					}
				}
				if again.NArg() != 1 || again.Args().First() != "in.csv" {
					t.Errorf("%s: %q", command, again.Args().Slice())
				}
				return nil
			}))
		}
	}
}

// valueOf is the value of an option as the flag package has it, nil of one that it keeps as a text.
func valueOf(c *call, o *options.Option) any {
	switch o.Kind {
	case options.Plain:
		if o.ByDialect {
			return nil
		}
		return c.String(o.Name)
	case options.Switch:
		return c.Bool(o.Name)
	case options.Whole:
		return c.Int(o.Name)
	case options.Number:
		return c.Float64(o.Name)
	case options.Duration:
		return c.Duration(o.Name)
	}
	return nil
}

// What was given as nothing comes before a run whose rejects are loaded, and before the environment. Half a target takes its other half
// from there.
func TestAZeroThatIsGivenIsNotOverruled(t *testing.T) {
	of := func(command string, given ...string) *options.Command {
		c := &options.Command{Name: command}
		for _, text := range given {
			name, value, _ := strings.Cut(text, "=")
			must(t, options.For(command, name).Set(c, []string{value}))
		}
		kept, err := options.ReadCommand(written(c))
		must(t, err)
		return kept
	}
	c := of("load", "trim=false", "version-column=", "columns=")
	c.After(of("load", "trim=true", "version-column=n", "columns=a,b", "flatten=true", "verify=false"))
	if c.Trim || c.VersionColumn != "" || len(c.Columns) > 0 || !c.Flatten || !c.IsSet("verify") {
		t.Errorf("%+v", c)
	}
	for name, value := range map[string]string{"DRY_RUN": "true", "STORE": "there", "ENDPOINT": "http://h", "INSTANCE": "i", "PROFILE": "p"} {
		t.Setenv("TSIMPORT_"+name, value)
	}
	for given, want := range map[string]string{"dry-run=false": "false there http://h i p", "store=here": "true here   ", "endpoint=http://x": "true  http://x i p", "profile=q": "true   i q"} {
		c := of("load", given)
		must(t, takeEnvironment(c))
		if got := fmt.Sprint(c.DryRun, " ", c.Store, " ", c.Endpoint, " ", c.Instance, " ", c.Profile); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
