package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
)

// writeOutput writes to the file or device of a path (atomicfile.Find), or to stdout.
func writeOutput(ctx context.Context, path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		if err := openForRows(stdout); err != nil {
			return err
		}
		return write(stdout)
	}
	o, err := atomicfile.Find(path)
	if err != nil {
		return err
	}
	return o.WriteTo(ctx, 0o666, write)
}

// createOutput opens the file of a flag for writing while the command runs.
func createOutput(c *call, path string, flag int) (*os.File, error) {
	o, err := atomicfile.Find(path)
	if err != nil {
		return nil, err
	}
	return o.Open(c.Context, flag, 0o644)
}

// checkedOutput is stdout. It remembers write errors, which code that prints help and lists ignores.
type checkedOutput struct {
	io.Writer
	used bool
	err  error
}

// silent reports whether nothing was printed to stdout or stderr.
func (o *checkedOutput) silent(stderr *display) bool { return !o.used && !stderr.used.Load() }

func (o *checkedOutput) Write(b []byte) (int, error) {
	o.used = true
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("print the result: %w", err)
	}
	return n, err
}

// end combines a command's error with write errors. Some file systems report a failed write only on close.
func (o *checkedOutput) end(err error) error {
	if o.Writer == os.Stdout {
		if closed := os.Stdout.Close(); closed != nil && o.err == nil {
			o.err = fmt.Errorf("print the result: %w", closed)
		}
	}
	return cmp.Or(err, o.err)
}

// openForRows refuses to write rows to a stdout that was closed at the start, which Go replaces with the null device.
func openForRows(stdout io.Writer) error {
	if o, ok := stdout.(*checkedOutput); ok && o.Writer == os.Stdout && closedAtStart() {
		return usagef("standard output is closed or the null device; name a file with -o, or give -o %s", os.DevNull)
	}
	return nil
}

const numbersHelp = "The service fills an auto-increment key column (--pk NAME:auto, never the first) with rising " +
	"numbers, in input order for each\n" +
	"value of the columns before it. It suits a stream of rows per partition key, read in order, but not finding\n" +
	"one row, whose number you must know (--returned-keys), or ids of a table: numbers have gaps and are unique\n" +
	"only within a partition-key value."

// sayNumbers reports generated keys, and rows that were sent more than once.
func sayNumbers(say words.Say, r *pipeline.Report) {
	if r.ReturnedKeys != "" && !r.DryRun {
		say.Line("keys of the rows: %s", r.ReturnedKeys)
	}
	if r.Found > 0 || r.SurplusDeleted > 0 {
		say.Line("%s rows of unknown outcome were already in the table, %s surplus copies were deleted",
			words.Grouped(r.Found), words.Grouped(r.SurplusDeleted))
	}
	if r.MaybeTwice > 0 {
		say.Warn("%s sent again may be in the table twice (--at-least-once)", counted(r.MaybeTwice, "row"))
	}
	if r.ExtraVersions > 0 {
		say.Warn("%s may have left an extra version each, because the timestamps had become too old for the table's "+
			"maximum deviation", counted(r.ExtraVersions, "repeated update"))
	}
	if r.MaybeApplied > 0 {
		what := "be in the table"
		if r.Deletes {
			what = "have been deleted"
		}
		say.Warn("%s may %s: an earlier attempt may have been applied (maybe_applied in rejects.jsonl)",
			counted(r.MaybeApplied, "rejected row"), what)
	}
}
