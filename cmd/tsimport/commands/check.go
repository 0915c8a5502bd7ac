package commands

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/verify"
)

func checkCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "validate files without a table; with --unique, find repeated and colliding keys",
		ArgsUsage: "FILE... | ADDRESS",
		Description: inputsHelp + "\n" + lookedHelp + "\n" +
			"Takes the flags of tsimport load that describe the rows. Reads all files; writes nothing.\n" +
			"Exit code 0: no record would be rejected, no keys collide; 1: reading failed; 2: bad usage; 3: some would be\n" +
			"rejected; 6: --unique found a key made of different values, or --fail-on-duplicates a repeated key; 7: no input.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "unique", Usage: "find keys that several records have, and whether rows or key values differ"},
			&cli.BoolFlag{Name: "fail-on-duplicates",
				Usage: "exit with 6 if several records have one key, even if their rows are equal; implies --unique"},
			&cli.IntFlag{Name: "examples", Usage: "show at most `N` rejects, repeats and collisions each", Value: 10},
		}, flagsOf(options.Check)...),
		Action: in.with(options.Check, check),
	}
}

func check(c *call) error {
	if err := refuseArchives(c); err != nil {
		return err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	var closeTable func() error
	if cfg.Read.Sources, closeTable, err = lookedAt(c, cfg.Inputs, false); err != nil {
		return err
	}
	defer closeTable()
	switch {
	case len(cfg.Target.Key) == 0 && cfg.Read.Sources == nil && !c.IsSet("source-table"): // sources may know their keys
		return usagef("no key: give --pk NAME[:TYPE][=EXPR], once for each primary-key column in order")
	case c.Int("examples") < 0:
		return usagef("--examples %d: want 0 or more", c.Int("examples"))
	}
	cfg.Target.Table = cmp.Or(cfg.Target.Table, "check")
	cfg.Target.Name, cfg.Target.Create, cfg.Target.Absent = "check", true, true
	request := cfg.Request()
	request.RunDir = ""
	limitMemory(cfg.Limits.Memory, false)
	progress := new(verify.Progress)
	stop := watchComparison(c, "check: %s records read, %s keys compared", progress)
	r, err := verify.Check(c.Context, verify.CheckConfig{
		Request: request, Unique: c.Bool("unique") || c.Bool("fail-on-duplicates"), Examples: c.Int("examples"),
		Memory: cfg.Limits.Memory, TempDir: cfg.Limits.TempDir, Progress: progress,
	})
	stop()
	if err != nil {
		return err
	}
	if err := printed(c, r, func(w io.Writer) error { return writeCheck(w, r, &cfg) }); err != nil {
		return err
	}
	switch {
	case r.Collisions > 0, r.Repeated > 0 && c.Bool("fail-on-duplicates"):
		return &exitError{code: exitcode.Differences}
	case r.Rejected > 0:
		return &exitError{code: exitcode.Rejects}
	}
	return nil
}

func writeCheck(w io.Writer, r *verify.CheckResult, cfg *pipeline.Config) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s records read, %s would be rejected (%v, %s rows/s)\n", words.Grouped(r.Read),
		words.Grouped(r.Rejected),
		round(time.Duration(r.Seconds*float64(time.Second))), words.Grouped(int64(r.RowsPerSecond)))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", printable(n))
	}
	for _, code := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(&b, "%s: %s\n", code, words.Grouped(r.Reasons[code]))
	}
	for _, e := range r.Rejects {
		fmt.Fprintf(&b, "rejected  %s, record %s: ", printable(e.File), words.Grouped(e.Record))
		if e.Column != "" {
			fmt.Fprintf(&b, "column %s: ", printable(e.Column))
		}
		fmt.Fprintf(&b, "%s\n", printable(e.Message))
	}
	for _, h := range r.HotKeys {
		what := "one value is never split"
		if h.Share == 1 {
			what = oneValue
		}
		fmt.Fprintf(&b, "hot spot: %s of the rows have %s as %s, the partition key; %s\n", allOr(h.Share), printable(h.Value),
			printable(h.Column), what)
	}
	if r.Unique {
		writeKeys(&b, r, &cfg.Write)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeKeys(b *strings.Builder, r *verify.CheckResult, write *pipeline.Write) {
	fmt.Fprintf(b, "%s, %s with an earlier key", counted(r.Keys, "key"), counted(r.Repeated, "record"))
	if r.Collisions > 0 {
		fmt.Fprintf(b, "; different values make the same key: %s, %s that another one would replace",
			counted(r.Collisions, "key"), counted(r.Colliding, "record"))
	}
	b.WriteString("\n")
	if r.Repeated > 0 {
		fmt.Fprintf(b, "of these, %s equal to the first with the key, %s different", words.Grouped(r.Equal),
			words.Grouped(r.Different))
		if r.Different > 0 {
			fmt.Fprintf(b, ": %s", fateOfRepeats(write))
		}
		b.WriteString("\n")
	}
	for _, e := range r.Repeats {
		what := "different"
		if e.Equal {
			what = "equal"
		}
		fmt.Fprintf(b, "%-9s %s  (%s and %s)\n", what, keyText(&e.Collision), lineText(e.First), lineText(e.Other))
	}
	for _, e := range r.Examples {
		fmt.Fprintf(b, "collision %s  (%s, record %s and %s, record %s)\n", keyText(&e),
			printable(e.First.File), words.Grouped(e.First.Record), printable(e.Other.File), words.Grouped(e.Other.Record))
	}
}

// fateOfRepeats describes how a load treats different records of one key.
func fateOfRepeats(w *pipeline.Write) string {
	switch {
	case w.Mode == table.Increment:
		return "a load adds all of them up"
	case w.Mode == table.Update && w.Order == plan.OrderNone:
		return "a load applies all of them, in any order; where two write the same column, either value may win"
	case w.Mode == table.Update:
		return "a load applies all of them, one after the other; where two write the same column, the later value wins"
	case w.Condition == table.ExpectNotExist:
		return "a load writes the first record of each key and rejects the others"
	case w.Order == plan.OrderNone:
		return "a load keeps any one record of each key, and the values of the others are lost"
	}
	return "a load keeps only the last record of each key, and the values of the others are lost"
}

func keyText(e *verify.Collision) string {
	text := e.Key.String()
	if e.Table != "" {
		text = e.Table + ": " + text
	}
	return printable(text)
}

// lineText formats the position of a record: its line if the file has lines, or else its number.
func lineText(p verify.Place) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d", printable(p.File), p.Line)
	}
	return fmt.Sprintf("%s, record %s", printable(p.File), words.Grouped(p.Record))
}
