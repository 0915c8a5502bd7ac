package options

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/csv"
)

// Read parses how inputs are read. The caller adds the function for files that are not data, and keys of object stores.
func Read(r *Request) (to plan.Read, err error) {
	for _, parse := range []func(*Request, *plan.Read) error{parseHeader, parseDialect, parseValues} {
		if err := parse(r, &to); err != nil {
			return to, err
		}
	}
	if to.Format, err = reader.ParseFormat(cmp.Or(r.Format, "auto")); err != nil {
		return to, fmt.Errorf("--%w", err)
	}
	to.Named.Table, to.Encoding, to.Flatten = r.SourceTable, r.Encoding, r.Flatten
	to.Named.Known = slices.Concat(r.Columns, r.Exclude)
	if err := parseChanges(r, &to); err != nil {
		return to, err
	}
	to.Find.PathColumns = r.PathColumns
	return to, nil
}

func parseHeader(r *Request, to *plan.Read) error {
	to.NoHeader, to.Names, to.HeaderLine = r.NoHeader, r.Names, r.SkipLines+1
	if len(r.Names) > 0 && !r.NoHeader {
		return errors.New("--names needs --no-header")
	}
	return nil
}

// DialectFlags are the options that describe how CSV records are written.
var DialectFlags = []string{"dialect", "delimiter", "quote", "escape", "comment", "record-end"}

func parseDialect(r *Request, to *plan.Read) (err error) {
	given := slices.ContainsFunc(DialectFlags[1:], r.IsSet)
	name := r.Dialect
	if name == "auto" {
		if given {
			return errors.New("--dialect auto detects how the text is written; leave out either --dialect or --delimiter, " +
				"--quote, --escape, --comment and --record-end")
		}
		to.Sniff = true
		return nil
	}
	if name == "" && !given {
		return nil
	}
	d, emptyIsText, known := csv.Named(name)
	to.Convert.EmptyIsText = emptyIsText
	d.Comment = cmp.Or(r.Comment, d.Comment)
	if r.Delimiter != "" {
		if d.Delimiter, err = csv.Unescape(r.Delimiter); err != nil {
			return fmt.Errorf("--delimiter: %w", err)
		}
	}
	if r.RecordEnd != "" {
		if d.RecordEnd, err = csv.Unescape(r.RecordEnd); err != nil {
			return fmt.Errorf("--record-end: %w", err)
		}
	}
	if !known || r.Quote != "" {
		if d.Quote, err = oneByte("quote", cmp.Or(r.Quote, `"`)); err != nil {
			return err
		}
	}
	if !known || r.Escape != "" {
		if d.Escape, err = oneByte("escape", r.Escape); err != nil {
			return err
		}
	}
	if known && r.Escape != "" {
		d.SetEscape(d.Escape)
	}
	checked := d
	checked.Delimiter = cmp.Or(d.Delimiter, ",") // without one, the input's name decides
	if err := checked.Check(); err != nil {
		return fmt.Errorf("--delimiter, --quote, --escape, --comment and --record-end: %w", err)
	}
	to.Dialect = d
	return nil
}

func oneByte(flag, text string) (byte, error) {
	if text == "none" || text == "" {
		return 0, nil
	}
	text, err := csv.Unescape(text)
	if err != nil || len(text) != 1 {
		return 0, fmt.Errorf("--%s %q: want one single-byte character, or none", flag, text)
	}
	return text[0], nil
}

func parseValues(r *Request, to *plan.Read) error {
	var nulls, quoted []string
	quotes := r.Quote != "none" && (r.Dialect == "" || r.Dialect == "auto" || to.Dialect.Quote != 0)
	for _, n := range r.Null {
		if inner, begins := strings.CutPrefix(n, `"`); quotes && begins && strings.HasSuffix(inner, `"`) {
			quoted = append(quoted, strings.TrimSuffix(inner, `"`))
		} else {
			nulls = append(nulls, n)
		}
	}
	if to.Dialect.Escape == '\\' {
		// The reader of such a text already takes \N for null. A \N that appears after unescaping is text.
		nulls = slices.DeleteFunc(nulls, func(n string) bool { return n == `\N` })
	}
	c := &to.Convert
	c.Nulls, c.Trim, c.VersionColumn, c.QuotedNulls = nulls, r.Trim, r.VersionColumn, quoted
	to.TrimNames = r.Trim
	c.Ragged = map[string]convert.Ragged{"pad": convert.PadRagged, "truncate": convert.TruncateRagged}[r.Ragged]
	to.Named.Missing, c.Missing = r.Missing == "null", r.Missing == "null"
	if r.Empty != "" { // if not given, the dialect decides
		c.EmptyIsText = r.Empty == "string"
	}
	return nil
}

// NotData returns a function that recognizes files and folders that are not inputs of globs and folders because loads
// wrote them, such as rejects beside inputs. It returns what they are, or "". store is the folder of an embedded store.
func NotData(r *Request, store string) func(name string, folder bool) string {
	outputs := map[string]string{"run-dir": r.RunDir, "returned-keys": r.ReturnedKeys, "store": store}
	return func(name string, folder bool) string {
		for option, output := range outputs {
			if Same(name, output) {
				return "what --" + option + " names,"
			}
		}
		switch {
		case !folder:
			return ""
		case rundir.IsRoot(name):
			return "folder of earlier runs"
		case rundir.IsRun(name):
			return "run folder"
		}
		return ""
	}
}

// Same reports whether two names refer to one file or folder.
func Same(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return rundir.SameFile(a, b) || filepath.Clean(a) == filepath.Clean(b)
}

// LocksDir returns the folder for locks of this user's loads in all working folders, or "" if there is none.
func LocksDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "tsimport", "locks")
}
