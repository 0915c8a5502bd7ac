package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

func inspectCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show format, columns and types of files",
		ArgsUsage: "FILE... | ADDRESS",
		Description: inputsHelp + "\n" + lookedHelp +
			"\nLooks at the beginning of each file or table; --count reads all of it. Without --count, files of the same " +
			"format and columns are\nshown as one.",
		Flags: append(flagsOf(options.Looking), []cli.Flag{
			&cli.BoolFlag{Name: "count", Usage: "read whole files: count the records, check every value"},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory for reading, such as 512MiB, at least 16MiB; the process " +
				"may use 64MiB more (default: a quarter of the machine's, at most 1GiB)"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, one object a line for each file"},
		}...),
		Action: in.with(options.Looking, inspect),
	}
}

func inspect(c *call) error {
	if err := refuseArchives(c); err != nil {
		return err
	}
	if !c.Args().Present() {
		return usagef("no input: name the files to read, or - for standard input")
	}
	read, err := parseRead(c)
	if err != nil {
		return usagef("%v", err)
	}
	memory, err := parseMemory(c)
	if err != nil {
		return usagef("%v", err)
	}
	limitMemory(memory, false)
	read.Memory = plan.ReadingMemory(memory)
	found, err := inspectAll(c, read)
	if err != nil && len(found) == 0 {
		return usagef("%v", err)
	}
	if c.of.JSON {
		for i := range found {
			if err := printJSONLine(c.App.Writer, &found[i]); err != nil {
				return err
			}
		}
	} else if err := printInspections(results(c), found, c.Bool("count")); err != nil {
		return err
	}
	if context.Cause(c.Context) != nil {
		return context.Cause(c.Context)
	}
	return err
}

// inspectAll inspects files, or a table of a database or of the service.
func inspectAll(c *call, read plan.Read) ([]plan.Inspection, error) {
	args := c.Args().Slice()
	origin, stop, err := lookedAt(c, args, true)
	if err != nil {
		return nil, err
	}
	defer stop()
	if origin == nil {
		return plan.Inspect(c.Context, args, read, c.Bool("count"))
	}
	one, err := plan.InspectTable(c.Context, args[0], origin, read, c.Bool("count"))
	if err != nil && len(one.Columns) == 0 {
		return nil, err
	}
	return []plan.Inspection{one}, err
}

// printInspections prints files in one block if they differ only in their values, unless every value was read.
func printInspections(w io.Writer, found []plan.Inspection, whole bool) error {
	var blocks []plan.Inspection // the first file of each block, with the block's totals of rows and splits
	var alike []int
	at := map[string]int{}
	for _, in := range found {
		key := blockKey(&in)
		i, known := at[key]
		if !known || key == "" || whole {
			at[key] = len(blocks)
			blocks, alike = append(blocks, in), append(alike, 0)
			continue
		}
		b := &blocks[i]
		alike[i]++
		b.Rows, b.Splits, b.Exact, b.Bytes = b.Rows+in.Rows, b.Splits+in.Splits, b.Exact && in.Exact, min(b.Bytes, in.Bytes)
	}
	for i := range blocks {
		if err := printInspection(w, &blocks[i], alike[i], i > 0); err != nil {
			return err
		}
	}
	return printTogether(w, found)
}

// blockKey returns the same text for files of one block, and "" for a file with something to report.
func blockKey(in *plan.Inspection) string {
	if in.Error != "" || in.Hint != "" || in.Rejected > 0 || len(in.Notes) > 0 || len(in.Decisions) > 0 {
		return ""
	}
	like := []string{in.Format, in.Compression, in.Encoding, in.Dialect}
	for _, col := range in.Columns {
		like = append(like, col.Name, col.Type, col.Unit)
	}
	return fmt.Sprintf("%q", like)
}

func printInspection(w io.Writer, in *plan.Inspection, alike int, gap bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if gap {
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "file\t%s\n", printable(in.Path))
	if alike > 0 {
		fmt.Fprintf(t, "alike\t%s more; rows and splits are of all files, the values of the first\n",
			counted(int64(alike), "file"))
	}
	if in.Error != "" {
		fmt.Fprintf(t, "error\t%s\n", printable(in.Error))
	}
	for _, note := range in.Notes {
		fmt.Fprintf(t, "note\t%s\n", printable(note))
	}
	if in.Format == "" {
		return t.Flush()
	}
	fmt.Fprintf(t, "format\t%s\ncompression\t%s\n", in.Format, in.Compression)
	if in.Encoding != "" {
		fmt.Fprintf(t, "encoding\t%s\n", in.Encoding)
	}
	if in.Dialect != "" {
		fmt.Fprintf(t, "dialect\t%s\n", in.Dialect)
	}
	if in.Hint != "" && !slices.Contains(in.Notes, in.Hint) {
		fmt.Fprintf(t, "hint\t%s\n", printable(in.Hint))
	}
	rows := words.Grouped(in.Rows)
	switch {
	case in.Exact:
	case in.Bytes < 0: // the size is unknown
		rows += " or more"
	default:
		rows = "about " + rows
	}
	fmt.Fprintf(t, "rows\t%s\n", rows)
	if in.Rejected > 0 {
		fmt.Fprintf(t, "unreadable\t%s of %s looked at; the first: %s\n", words.Grouped(in.Rejected),
			words.Grouped(in.Looked), printable(in.FirstReject))
	}
	fmt.Fprintf(t, "splits\t%s\n\ncolumn\ttype\tnulls\tmin\tmax\tlongest\texample\n", words.Grouped(int64(in.Splits)))
	for _, col := range in.Columns {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", shown(col.Name), col.Type+plan.UnitText(col.Type, col.Unit),
			words.Grouped(col.Nulls), shown(col.Min), shown(col.Max), col.Longest, shown(col.Example))
	}
	for i, d := range in.Decisions {
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "decided\t%s\n", printable(d.String()))
	}
	return t.Flush()
}

func printTogether(w io.Writer, found []plan.Inspection) error {
	if len(found) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, d := range found[len(found)-1].Together {
		if i == 0 {
			fmt.Fprintln(t, "\nthe files together")
		}
		fmt.Fprintf(t, "differ in\t%s\n", printable(d.String()))
	}
	return t.Flush()
}

// shown shortens a value to one line of a terminal table.
func shown(text string) string {
	const most = 28
	runes := []rune(text)
	for i, r := range runes {
		if acts(r) || r == '\n' || r == '\t' {
			runes[i] = '·'
		}
	}
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}
